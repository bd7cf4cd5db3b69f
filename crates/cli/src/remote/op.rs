//! `op`: submits, shows, lists, cancels, reruns, resolves and completes operations.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use hyper::Method;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::bulk::{self, CommandBody, SelectionArgs};
use super::filter::FilterArgs;
use super::submit::{self, SubmitArgs};
use crate::client::{self, Client, RemoteArgs, encode_segment, query};
use crate::error::CliError;
use crate::output::{Output, text};
use crate::reply::ServerReply;
use tidegate_core::bounds::WAIT_MS_MAX;

/// The parameter by which a list continues.
const CURSOR: &str = "cursor";
/// How many empty pages are skipped to find one with operations.
const EMPTY_PAGES_MAX: usize = 500;

#[derive(Args, Debug)]
pub(crate) struct OpArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(subcommand)]
    command: OpCommand,
}

#[derive(Subcommand, Debug)]
enum OpCommand {
    /// Submit an operation and print its id.
    #[command(after_help = submit::EXAMPLES)]
    Submit(Box<SubmitArgs>),
    /// Show an operation with its request, without secrets, its attempts and its result.
    Show {
        /// Its id, as `op submit` printed it.
        #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
        id: String,
        /// Wait up to this long for it to end, at most 60000.
        #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=WAIT_MS_MAX))]
        wait_ms: Option<u64>,
    },
    /// List operations, newest first.
    List {
        #[command(flatten)]
        filter: FilterArgs,
        /// Only the operation submitted with this dedupe key, within the dedupe window.
        #[arg(long)]
        key: Option<String>,
        /// List at most this many, 1 to 200. Default: 50.
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// Continue a list with the cursor it printed.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Explain why an operation is not running, and when it will.
    Why {
        /// Its id, as `op submit` printed it.
        #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
        id: String,
    },
    /// Cancel an operation, or all that a filter finds; one that is running is asked to stop.
    Cancel(SelectionArgs),
    /// Queue a failed or canceled operation again, at the end of its group (or as the first, if the
    /// group is held for it), or all that a filter finds.
    Rerun(SelectionArgs),
    /// Record the outcome of an operation whose outcome is unknown, so that its group can resume,
    /// or of all that a filter finds.
    Resolve {
        #[command(flatten)]
        selection: SelectionArgs,
        /// The outcome: succeeded, failed (it did not happen and should not), repeat (send it
        /// again).
        #[arg(long = "as", value_enum, value_name = "OUTCOME", hide_possible_values = true)]
        outcome: ResolvedOutcome,
        /// With an id and `--as succeeded`: the result, as JSON, kept as if the upstream had
        /// answered it.
        #[arg(long, value_name = "JSON", value_parser = parse_json, requires = "id")]
        result: Option<Box<RawValue>>,
    },
    /// Report how the job of an operation ended that awaits its completion.
    Complete {
        /// Its id, as `op submit` printed it.
        #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
        id: String,
        /// The outcome: succeeded, failed, retry (submit it again).
        #[arg(long = "as", value_enum, value_name = "OUTCOME", hide_possible_values = true)]
        outcome: ReportedOutcome,
        /// With `--as succeeded`: the result, as JSON.
        #[arg(long, value_name = "JSON", value_parser = parse_json)]
        result: Option<Box<RawValue>>,
        /// Why it did not succeed.
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum ResolvedOutcome {
    /// It happened.
    Succeeded,
    /// It did not happen, and should not.
    Failed,
    /// Send it again.
    Repeat,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum ReportedOutcome {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// Submit it again.
    Retry,
}

#[derive(Serialize)]
struct ResolveBody {
    #[serde(rename = "as")]
    outcome: ResolvedOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct CompleteBody {
    outcome: ReportedOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<Value>,
}

/// Checks JSON, and keeps it as it is written.
fn parse_json(text: &str) -> Result<Box<RawValue>, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
}

pub(crate) async fn run(args: OpArgs, output: &Output) -> Result<(), CliError> {
    let client = Client::new(&args.remote)?;
    match args.command {
        OpCommand::Submit(args) => return submit::run(&client, *args, output).await,
        OpCommand::Show { id, wait_ms } => {
            let wait = wait_ms.unwrap_or_default();
            let path = path(&id, &query(&[("wait_ms", wait_ms.map(|wait| wait.to_string()))]));
            let wait = Duration::from_millis(wait);
            show(&client.call_for_reply(Method::GET, &path, None, wait, "id").await?, output);
        }
        OpCommand::List { filter, key, limit, cursor } => {
            let others = [("dedupe_key", key), ("limit", limit.map(|limit| limit.to_string()))];
            let pairs = filter.pairs().chain(others).collect();
            list(&first_page(&client, pairs, cursor).await?, output);
        }
        OpCommand::Why { id } => why(&client.get(&path(&id, "/why"), "because").await?, &id, output),
        OpCommand::Cancel(selection) => {
            command(&client, selection, "cancel", &json!({}), output).await?;
        }
        OpCommand::Rerun(selection) => command(&client, selection, "rerun", &json!({}), output).await?,
        OpCommand::Resolve { selection, outcome, result } => {
            command(&client, selection, "resolve", &ResolveBody { outcome, result }, output).await?;
        }
        OpCommand::Complete { id, outcome, result, message } => {
            let fault = message.map(|message| json!({ "message": message }));
            show(&post(&client, &id, "/complete", &CompleteBody { outcome, result, fault }).await?, output);
        }
    }
    Ok(())
}

/// Commands something about one operation, or about all that a filter finds.
async fn command(
    client: &Client,
    selection: SelectionArgs,
    verb: &str,
    body: &impl Serialize,
    output: &Output,
) -> Result<(), CliError> {
    let body = CommandBody { command: body, reason: selection.reason.as_deref() };
    match &selection.id {
        Some(id) => show(&post(client, id, &format!("/{verb}"), &body).await?, output),
        None => bulk::run(client, &selection, verb, &body, output).await?,
    }
    Ok(())
}

fn path(id: &str, rest: &str) -> String {
    format!("/v1/operations/{}{rest}", encode_segment(id))
}

async fn post(
    client: &Client,
    id: &str,
    command: &str,
    body: &impl Serialize,
) -> Result<ServerReply, CliError> {
    let body = Some(client::json(body)?);
    client.call_for_reply(Method::POST, &path(id, command), body, Duration::ZERO, "id").await
}

/// Prints one operation.
pub(super) fn show(reply: &ServerReply, output: &Output) {
    if output.json {
        return output.print_data(&reply.text);
    }
    let value = &reply.value;
    let result = &value["result"];
    let answer = match result["status"].as_u64() {
        Some(status) => format!("status {status}"),
        None => String::new(),
    };
    let attempts = value["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let state = match value["cancel_requested"] == true {
        true => format!("{}, a cancel was requested", text(value, "state")),
        false => text(value, "state"),
    };
    output.print_facts(&[
        ("id", text(value, "id")),
        ("state", state),
        ("kind", text(value, "kind")),
        ("group", text(value, "group")),
        ("upstream", text(value, "upstream")),
        ("request", request_line(value)),
        ("request headers", request_headers(value)),
        ("request body", reply.request_body()),
        ("job", text(value, "job_id")),
        ("attempt", format!("{} of {}", text(value, "attempt"), text(value, "max_attempts"))),
        ("attempts", attempts.iter().map(attempt).collect::<Vec<_>>().join("; ")),
        ("journey", journey(value)),
        ("rules", rules(value)),
        ("key", text(value, "dedupe_key")),
        ("request id", text(value, "request_id")),
        ("deployment", text(value, "deployment_id")),
        ("created", text(value, "created_at")),
        ("deadline", text(value, "deadline_at")),
        ("finished", text(value, "finished_at")),
        ("fault", fault(value)),
        ("result", answer),
        ("body", reply.result_body()),
    ]);
}

/// The time in each step of its way.
fn journey(value: &Value) -> String {
    let journey = &value["journey"];
    if !journey.is_object() {
        return String::new();
    }
    let time = |(step, field): (&str, &str)| match journey[field].as_u64() {
        Some(millis) => format!("{step} {millis} ms"),
        None => format!("{step} not recorded"),
    };
    let steps = [
        ("turn", "turn_ms"),
        ("limit", "limit_ms"),
        ("decision", "decision_ms"),
        ("sent", "sent_ms"),
        ("answer", "answer_ms"),
    ];
    // Most operations need no decision.
    let is_shown = |(_, field): &(&str, &str)| *field != "decision_ms" || journey[field].as_u64() > Some(0);
    steps.into_iter().filter(is_shown).map(time).collect::<Vec<_>>().join(", ")
}

/// What it was submitted with, as far as that is not the default.
fn rules(value: &Value) -> String {
    let named = ["priority", "cost", "on_unknown", "on_failure"].map(|name| (name, text(value, name)));
    let shown = named.iter().filter(|(_, rule)| !["", "0"].contains(&rule.as_str()));
    shown.map(|(name, rule)| format!("{name} {rule}")).collect::<Vec<_>>().join(", ")
}

fn request_line(value: &Value) -> String {
    let request = &value["request"];
    let query = request["query"].as_str().map(|query| format!("?{query}")).unwrap_or_default();
    format!("{} {}{query}", text(request, "method"), text(request, "path")).trim().to_owned()
}

fn request_headers(value: &Value) -> String {
    let Some(headers) = value["request"]["headers"].as_object() else { return String::new() };
    let shown = headers.iter().map(|(name, value)| format!("{name}: {}", value.as_str().unwrap_or_default()));
    shown.collect::<Vec<_>>().join(", ")
}

/// One attempt, in a line.
fn attempt(value: &Value) -> String {
    let named = [
        ("granted", "granted_at"),
        ("sent", "sent_at"),
        ("accepted", "accepted_at"),
        ("ended", "ended_at"),
        ("status", "status"),
        ("fault", "fault_class"),
        ("upstream", "upstream"),
        ("job", "job_id"),
        ("cost", "cost"),
    ];
    let shown = named.map(|(name, field)| (name, text(value, field)));
    let shown = shown.iter().filter(|(_, value)| !value.is_empty());
    let shown: String = shown.map(|(name, value)| format!(", {name} {value}")).collect();
    format!("{} {}{shown}", text(value, "attempt"), text(value, "state"))
}

fn fault(value: &Value) -> String {
    let fault = &value["fault"];
    if fault.is_null() {
        String::new()
    } else {
        let doubt = if fault["may_have_happened"] == true { " (it may have happened)" } else { "" };
        format!("{}: {}{doubt}", text(fault, "class"), text(fault, "message"))
    }
}

/// Returns the first page that is not empty. The server scans a bounded number of operations for
/// each page, so a page can be empty although more follow.
async fn first_page(
    client: &Client,
    mut pairs: Vec<(&str, Option<String>)>,
    mut cursor: Option<String>,
) -> Result<Value, CliError> {
    let mut pages = 1;
    loop {
        pairs.retain(|(name, _)| *name != CURSOR);
        pairs.push((CURSOR, cursor));
        let page = client.get(&format!("/v1/operations{}", query(&pairs)), "operations").await?;
        let is_empty = page["operations"].as_array().is_some_and(Vec::is_empty);
        match page["next_cursor"].as_str().filter(|_| is_empty && pages < EMPTY_PAGES_MAX) {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(page),
        }
        pages += 1;
    }
}

fn list(value: &Value, output: &Output) {
    if output.json {
        return output.print_json(value);
    }
    let none = Vec::new();
    let operations = value["operations"].as_array().unwrap_or(&none);
    let row = |op: &Value| {
        vec![
            text(op, "id"),
            text(op, "state"),
            text(op, "kind"),
            text(op, "group"),
            format!("{} {}", text(op, "upstream"), request_line(op)).trim().to_owned(),
            text(op, "attempt"),
            text(op, "created_at"),
            fault(op),
        ]
    };
    let rows: Vec<_> = operations.iter().map(row).collect();
    let next = value["next_cursor"].as_str();
    if rows.is_empty() {
        return match next {
            Some(cursor) => {
                output.print_status(&format!("no operation matches so far; to continue: --cursor {cursor}"));
            }
            None => output.print_status("no operation matches"),
        };
    }
    output.print_table(&["ID", "STATE", "KIND", "GROUP", "REQUEST", "TRY", "CREATED", "FAULT"], &rows);
    if let Some(cursor) = next {
        output.print_status(&format!("showing {}; for more: --cursor {cursor}", rows.len()));
    }
}

fn why(value: &Value, id: &str, output: &Output) {
    if output.json {
        return output.print_json(value);
    }
    output.print_data(&text(value, "because"));
    let expected = [("until", "until"), ("starts about", "starts_at"), ("behind", "behind")];
    output.print_facts(&expected.map(|(name, field)| (name, text(value, field))));
    if value["waiting_for"] == "person" {
        output.print_status(&format!("to resume: tidegate op resolve {id} --as … if its outcome is unknown, otherwise tidegate group resume …"));
    }
}
