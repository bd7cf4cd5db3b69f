//! `deploy` through a server: the server does the work, this command only watches.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde_json::{Value, json};
use tidegate_discord::deploy::{DeployReport, DeployRequest, FOUND_DONE};
use tidegate_server::ErrorCode;
use tokio::time::{Instant, sleep};

use super::progress::Progress;
use super::shown_plan::ShownPlan;
use super::{StatusArgs, StoreArgs, approval, events, failure, local, status, summary};
use crate::client::{Client, encode_segment, query};
use crate::error::CliError;
use crate::output::{Output, text};
use crate::signals::Signals;

const PATH: &str = "/v1/deployments";
/// How long the server may take to plan.
const PLANNED: Duration = Duration::from_secs(60);
/// The time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long the server may be unreachable while its deployment is watched.
const OUTAGE_MAX: Duration = Duration::from_secs(60);

pub(super) async fn plan(client: &Client, wanted: &DeployRequest) -> Result<ShownPlan, CliError> {
    wanted.read().map_err(|problems| local::template_error(&problems))?;
    ShownPlan::from_json(post_deployment(client, wanted, true, "plan").await?)
}

/// Shows the plan, and asks unless `yes`. Returns the request for exactly this plan.
async fn approve(
    client: &Client,
    wanted: &DeployRequest,
    yes: bool,
    output: &Output,
) -> Result<DeployRequest, CliError> {
    let shown = ShownPlan::from_json(post_deployment(client, wanted, true, "plan").await?)?;
    shown.print_remarks(output);
    shown.check_conflicts()?;
    if !yes && shown.writes() > 0 {
        approval::ask(wanted, shown.writes(), output).await?;
    }
    let agreed = wanted.plan_digest.clone().unwrap_or(shown.digest);
    Ok(wanted.clone().with_plan_digest(agreed))
}

async fn post_deployment(
    client: &Client,
    wanted: &DeployRequest,
    dry_run: bool,
    mark: &str,
) -> Result<Value, CliError> {
    let body = json!({
        "guild": wanted.guild, "upstream": wanted.upstream, "template": wanted.template, "prune": wanted.prune,
        "trust_journal": wanted.trust_journal, "skip_preflight": wanted.skip_preflight,
        "audit_channel": wanted.audit_channel, "dry_run": dry_run, "plan_digest": wanted.plan_digest,
    });
    client.call(Method::POST, PATH, Some(Bytes::from(body.to_string())), PLANNED, mark).await
}

pub(super) async fn apply(
    client: &Client,
    place: &StoreArgs,
    wanted: &DeployRequest,
    yes: bool,
    output: &Output,
) -> Result<(), CliError> {
    wanted.read().map_err(|problems| local::template_error(&problems))?;
    let wanted = &approve(client, wanted, yes, output).await?;
    let mut signals = Signals::new()?;
    let begun = post_deployment(client, wanted, false, "id").await.map_err(explain_refusal)?;
    let id = text(&begun, "id");
    let progress = Progress::new(output);
    let watched = tokio::select! {
        watched = watch(client, &id, &progress) => watched,
        () = signals.next() => {
            let message = format!("Stopped watching. The server continues deployment {id}.");
            Err(CliError::new(message).hint(format!("show it with `tidegate deploy status --guild {} --server URL`", wanted.guild)))
        }
    };
    progress.end();
    let ended = watched?;
    if ended["stage"] == "done" {
        summary::print_summary(wanted, &report(&ended), output);
        return Ok(());
    }
    let begun = failure::BegunDeployment { id: &id, guild: wanted.guild, place };
    Err(begun.name_in(ended_error(&ended)).detail(failure::ended_detail(&ended)))
}

/// The error of a deployment that has failed, with what to do.
fn ended_error(ended: &Value) -> CliError {
    let note = ended["note"].as_str().unwrap_or("The deployment failed.");
    let trouble = CliError::new(note).coded(ErrorCode::NoAnswer);
    if note.starts_with("The guild and the template do not fit together") {
        return trouble.coded(ErrorCode::NotNow).hint(summary::CONFLICTS);
    }
    let hints: Vec<_> = summary::failure_hints(failure_causes(note)).collect();
    if hints.is_empty() {
        return trouble.hint(summary::AGAIN);
    }
    hints.into_iter().fold(trouble, CliError::hint)
}

/// Says what to do when a plan is not applied.
fn explain_refusal(error: CliError) -> CliError {
    let is_changed = error.message == tidegate_discord::deploy::Error::Changed.to_string();
    if is_changed { error.hint(summary::PLAN_AGAIN) } else { error }
}

/// Returns the causes of failures that a note lists: each has a line of its own, and the cause in
/// brackets at its end.
fn failure_causes(note: &str) -> impl Iterator<Item = &str> {
    note.lines().skip(1).filter_map(|line| Some(line.strip_suffix(')')?.rsplit_once('(')?.1))
}

/// Polls until the deployment has ended. A restarted server resumes it, so a short outage does not
/// end the watch.
async fn watch(client: &Client, id: &str, progress: &Progress<'_>) -> Result<Value, CliError> {
    let mut seen = Instant::now();
    loop {
        match client.get(&format!("{PATH}/{}", encode_segment(id)), "stage").await {
            Ok(one) if one["stage"] != "running" => return Ok(one),
            Ok(one) => {
                seen = Instant::now();
                let of = steps(&one).filter(|step| step["action"] != "skip").count();
                let done = steps(&one).filter(|step| is_applied(step) && step["action"] != "skip").count();
                progress.set_progress(done, of);
            }
            Err(trouble) if seen.elapsed() >= OUTAGE_MAX => return Err(trouble),
            Err(_) => {}
        }
        sleep(POLL_INTERVAL).await;
    }
}

fn steps(one: &Value) -> impl Iterator<Item = &Value> {
    one["steps"].as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

fn is_applied(step: &Value) -> bool {
    step["state"] == "applied"
}

/// Builds the report from the steps in the journal.
fn report(ended: &Value) -> DeployReport {
    // Without an operation, nothing was sent for it.
    let count = |action: &str| {
        let is_counted = |step: &&Value| is_applied(step) && step["action"] == action;
        steps(ended)
            .filter(is_counted)
            .filter(|step| action == "skip" || !step["operation"].is_null())
            .count()
    };
    let mut report = DeployReport::default();
    report.deployment = text(ended, "id");
    report.rounds = ended["plans"].as_u64().and_then(|plans| u32::try_from(plans).ok()).unwrap_or_default();
    report.created = count("create");
    report.updated = count("update");
    report.moved = count("order");
    report.removed = count("remove");
    report.found = steps(ended).filter(|step| step["note"] == FOUND_DONE).count();
    report.skipped = count("skip");
    report
}

/// Lists the deployments of the guild, and returns the id of the one that was asked for.
async fn find(client: &Client, args: &StatusArgs) -> Result<(Vec<Value>, String), CliError> {
    let pairs = [("guild", Some(args.guild.to_string())), ("limit", Some(status::LISTED.to_string()))];
    let mut all = client.get(&format!("{PATH}{}", query(&pairs)), "deployments").await?;
    let all: Vec<Value> = serde_json::from_value(all["deployments"].take()).unwrap_or_default();
    let asked = args.deployment.as_deref();
    match all.iter().find(|one| asked.is_none_or(|id| one["id"] == id)).map(|one| text(one, "id")) {
        Some(id) => Ok((all, id)),
        None => Err(status::no_deployments(args)),
    }
}

pub(super) async fn status(client: &Client, args: &StatusArgs, output: &Output) -> Result<(), CliError> {
    let (all, id) = find(client, args).await?;
    let one = client.get(&format!("{PATH}/{}", encode_segment(&id)), "stage").await?;
    status::show(&one, &all, output);
    Ok(())
}

pub(super) async fn events(client: &Client, args: &StatusArgs, output: &Output) -> Result<(), CliError> {
    let (_, id) = find(client, args).await?;
    let found = client.get(&format!("{PATH}/{}/events", encode_segment(&id)), "events").await?;
    events::show(&found, output);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-19: the hints fit the failures, whoever deployed.
    #[test]
    fn ops_19_causes_are_read_from_a_note() {
        let note = "2 steps failed, 1 not tried, 6 writes were accepted.\n\
                    create channel ideas: POST /x was answered 400: (no) (validation)\n\
                    update channel news: it did not stick (not_kept)\n\
                    order of channels: not tried, because it needs the channel ideas";
        assert_eq!(failure_causes(note).collect::<Vec<_>>(), ["validation", "not_kept"]);
        assert_eq!(failure_causes("The guild could not be read: x (forbidden)").count(), 0);
    }

    /// OPS-19: a step counts as done only if something was sent for it, and a failure has its steps
    /// for scripts.
    #[test]
    fn ops_19_the_steps_of_a_server_are_counted() {
        let step = |action: &str, state: &str, operation: Value, note: Value| json!({ "kind": "role", "key": "a", "action": action, "state": state, "operation": operation, "note": note });
        let ended = json!({ "id": "d1", "plans": 2, "steps": [
            step("create", "applied", "op_1".into(), Value::Null),
            step("create", "applied", Value::Null, FOUND_DONE.into()),
            step("order", "applied", Value::Null, tidegate_discord::deploy::NOT_NEEDED.into()),
            step("skip", "applied", Value::Null, Value::Null),
            step("update", "failed", "op_2".into(), "POST /x was answered 400: (no) (validation)".into()),
            step("remove", "planned", Value::Null, Value::Null),
        ]});
        let counted = report(&ended);
        assert_eq!((counted.created, counted.found, counted.moved, counted.skipped), (1, 1, 0, 1));
        let detail = failure::ended_detail(&ended);
        let (failed, untried) = (&detail["failed"][0], &detail["not_tried"][0]);
        assert_eq!((&detail["deployment"], &failed["class"]), (&"d1".into(), &"validation".into()));
        assert_eq!(failed["reason"], "POST /x was answered 400: (no)");
        assert_eq!(untried["action"], "remove");
    }
}
