//! Brings jobs forward in time and reports their ends.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tidegate_core::Time;
use tokio::task::JoinSet;

use super::Shared;
use super::signature::WebhookSigner;
use super::webhook::{WebhookMessage, WebhookPlan};

/// A job's end, ready to be reported.
struct EndReport {
    plan: WebhookPlan,
    url: Arc<str>,
    id: String,
    body: Value,
}

/// Runs until it is aborted.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut changes = shared.changes.subscribe();
    let mut deliveries = JoinSet::new();
    loop {
        changes.mark_unchanged();
        let (reports, pause) = advance(&shared);
        for report in reports {
            let shared = Arc::clone(&shared);
            deliveries.spawn(async move { deliver(&shared, report).await });
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            Ok(()) = changes.changed() => {}
            Some(_) = deliveries.join_next() => {}
        }
    }
}

/// Ends a job at once and reports it before the caller continues.
pub(super) async fn end_early(shared: &Shared, number: u64) {
    let report = {
        let (mut state, now) = shared.state();
        if !state.jobs.finish_now(number, now) {
            return;
        }
        state.plan_webhook();
        report(shared, &state, number, WebhookPlan::default())
    };
    shared.notify();
    if let Some(report) = report {
        deliver(shared, report).await;
    }
}

/// Brings jobs to now, and returns what is to be reported and how long nothing will happen.
fn advance(shared: &Shared) -> (Vec<EndReport>, std::time::Duration) {
    let (mut state, now) = shared.state();
    let ended = state.jobs.advance(now);
    let mut reports = Vec::new();
    for number in &ended {
        let plan = state.plan_webhook();
        reports.extend(report(shared, &state, *number, plan));
    }
    let idle = std::time::Duration::from_secs(3_600);
    let pause = state.jobs.next_end().map_or(idle, |at| at.since(now));
    drop(state);
    if !ended.is_empty() {
        shared.notify();
    }
    (reports, pause)
}

fn report(
    shared: &Shared,
    state: &super::ProviderSimState,
    number: u64,
    plan: WebhookPlan,
) -> Option<EndReport> {
    let job = state.jobs.by_number(number)?;
    let url = Arc::from(job.spec.webhook.as_deref()?);
    let body = shared.api.webhook(&shared.view(state, job))?;
    Some(EndReport { plan, url, id: job.id.clone(), body })
}

async fn deliver(shared: &Shared, report: EndReport) {
    let EndReport { plan, url, id, body } = report;
    if plan.is_forged {
        let forged = message(shared, &shared.forger, &url, &id, &forged_body(body.clone()));
        shared.state().0.webhooks.forged += 1;
        count(shared, (1, matches!(forged.post().await, Some(200..=299))));
    }
    if plan.is_lost {
        return;
    }
    if plan.is_late {
        tokio::time::sleep(shared.late_by).await;
    }
    let message = message(shared, &shared.signer, &url, &id, &body);
    count(shared, message.deliver().await);
    if plan.is_doubled {
        count(shared, message.deliver().await);
    }
}

fn count(shared: &Shared, (sent, is_answered): (u64, bool)) {
    let (mut state, _) = shared.state();
    state.webhooks.sent += sent;
    state.webhooks.answered += u64::from(is_answered);
}

fn message(
    shared: &Shared,
    signer: &WebhookSigner,
    url: &Arc<str>,
    id: &str,
    body: &Value,
) -> WebhookMessage {
    let body = Bytes::from(body.to_string());
    let now: Time = shared.state().1;
    WebhookMessage { url: Arc::clone(url), headers: shared.api.sign(signer, id, &body, now), body }
}

/// A message that claims a failure.
fn forged_body(mut body: Value) -> Value {
    if let Some(fields) = body.as_object_mut() {
        if fields.contains_key("status") {
            fields.insert("status".into(), "failed".into());
        }
        fields.insert("error".into(), "forged".into());
        fields.remove("output");
        fields.remove("images");
        fields.remove("payload");
    }
    body
}
