//! The metrics at `/metrics`. What the engine counts itself is not counted again.

use std::sync::{Mutex, PoisonError};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tidegate::Engine;
use tidegate_core::fact::LimitShape;
use tidegate_core::model::{Counts, LimitView};
use tidegate_core::operation::MICRO;
use tokio::time::Instant;

use crate::error::{Error, ErrorCode, Result};
use crate::state::ServerState;

const SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];
const COUNTS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];

static INSTALLED: Mutex<Option<PrometheusHandle>> = Mutex::new(None);

/// Installs the recorder of this process, once.
pub(crate) fn install() -> Result<PrometheusHandle> {
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = &*installed {
        return Ok(handle.clone());
    }
    let failed = |what: String| Error::new(ErrorCode::Internal, format!("Cannot set up metrics: {what}."));
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)
        .and_then(|builder| builder.set_buckets(&COUNTS))
        .map_err(|error| failed(error.to_string()))?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|error| failed(error.to_string()))?;
    describe();
    *installed = Some(handle.clone());
    Ok(handle)
}

fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_histogram!(
        "tidegate_accept_seconds",
        "From the first byte of a submission's body to its durable acceptance."
    );
    describe_counter!("tidegate_operations_accepted_total", "Operations that were accepted.");
    describe_counter!("tidegate_webhooks_total", "Webhooks of providers, by provider and outcome.");
    describe_counter!("tidegate_operations_ended_total", "Operations that ended, by state.");
    describe_counter!("tidegate_attempts_total", "Attempts that were settled, by result.");
    describe_histogram!("tidegate_batch_calls", "Attempts that were settled with one append.");
    describe_counter!("tidegate_operations_deduplicated_total", "Submissions that were deduplicated.");
    describe_counter!("tidegate_operations_refused_total", "Submissions that were not accepted, by code.");
    describe_counter!("tidegate_requests_refused_total", "Requests answered with an error, by code.");
    describe_counter!("tidegate_outbox_accepted_total", "Outbox rows that were accepted.");
    describe_counter!(
        "tidegate_outbox_refused_total",
        "Outbox rows that were refused and moved aside, by code."
    );
    describe_gauge!("tidegate_outbox_waiting", "Rows waiting in the outbox, over all partitions.");
    describe_counter!("tidegate_work_taken_total", "Operations that were handed to remote workers.");
    describe_counter!(
        "tidegate_work_settled_total",
        "Claims that remote workers settled, by kind and by result."
    );
    describe_counter!(
        "tidegate_work_stale_total",
        "Reports of remote workers on claims that they no longer held."
    );
    describe_gauge!("tidegate_work_waiting", "Remote workers that wait for work at this node.");
    describe_gauge!("tidegate_operations", "Operations that have not ended, by state.");
    describe_gauge!("tidegate_groups", "Groups that are not empty.");
    describe_gauge!("tidegate_groups_stopped", "Groups that wait for an operator.");
    describe_gauge!(
        "tidegate_limits_opened",
        "Limits opened by calls, such as those of routes; they have no metrics of their own."
    );
    describe_gauge!("tidegate_limit_level", "What is left of a limit, in tokens or slots.");
    describe_gauge!("tidegate_limit_capacity", "The capacity of a limit, in tokens or slots.");
    describe_gauge!("tidegate_limit_waiting", "Groups that wait for a limit.");
    describe_gauge!("tidegate_limit_in_flight", "Calls in flight that charge a limit.");
    describe_gauge!("tidegate_limit_closed", "1 while an upstream has closed a limit.");
    describe_gauge!("tidegate_store_bytes", "Size of the store in bytes.");
    describe_gauge!("tidegate_store_operations", "Operations in the store.");
    describe_counter!("tidegate_archived_total", "Operations that were copied to the archive.");
    describe_gauge!("tidegate_archive_waiting", "Operations that ended and are not in the archive yet.");
    describe_gauge!(
        "tidegate_archive_oldest_seconds",
        "Age of the oldest ended operation that is not archived yet."
    );
    describe_keys();
    describe_hydration();
}

/// Describes the metrics of requests with an idempotency key.
fn describe_keys() {
    let counters = [
        ("idempotency.hit", "Repeats that got the stored response."),
        ("idempotency.miss", "Requests with a new key, which ran."),
        ("idempotency.conflict", "Requests whose key belongs to another request."),
        ("idempotency.processing_collision", "Repeats that arrived while the first request was processing."),
        ("idempotency.takeover", "Keys taken over from a holder that had died."),
        ("idempotency.lease_lost", "Requests still running whose key another request has taken over."),
        ("idempotency.outcome_unknown", "Requests whose outcome is unknown, and their repeats."),
        ("idempotency.not_replayable", "Responses that were too large to be stored."),
        ("idempotency.damaged", "Stored responses that could not be read."),
        ("idempotency.store_error", "Store calls that failed or timed out."),
        ("idempotency.unprotected", "Requests forwarded without protection while the store was unavailable."),
        ("idempotency.body_too_slow", "Requests whose body arrived too slowly."),
        ("idempotency.bodies_full", "Requests that found no memory for their body."),
        ("idempotency.cleanup.count", "Expired keys that were removed."),
    ];
    for (name, what) in counters {
        metrics::describe_counter!(name, what);
        // Registered at the start: a rate over a counter that appears with its first count misses
        // that count.
        metrics::counter!(name).increment(0);
    }
    metrics::describe_counter!(
        "tidegate_proxy_faults_total",
        "Requests that got no response from the service behind the proxy, by code."
    );
}

/// Describes the metrics of entities of other modules.
fn describe_hydration() {
    let counters = [
        ("hydration.local_hit", "Reads that the local copy satisfied."),
        ("hydration.absent_elsewhere", "Reads of entities that another node knew as not found."),
        ("hydration.negative_hit", "Reads of entities that were remembered as not found."),
        ("hydration.failure_hit", "Reads that failed at once, because no one had answered before."),
        ("hydration.joined", "Reads that waited for a question that was already asked."),
        ("hydration.published", "Questions that were published."),
        ("hydration.asked_elsewhere", "Questions that another node had asked."),
        ("hydration.upgraded", "Questions for more than was asked before."),
        ("hydration.updated", "Updates that were stored."),
        ("hydration.not_found", "Entities that turned out not to be there."),
        ("hydration.timeout", "Reads without an answer in time."),
        ("hydration.source_absent", "Reads of entities that no source answers for."),
        ("hydration.bus_failed", "Questions and answers that could not be published."),
        ("hydration.refused", "Reads that a bound refused."),
        ("hydration.deferred", "Reads that were put off."),
        ("hydration.degraded", "Reads that went on without an answer."),
        ("hydration.late_answer", "Updates that no one waited for."),
        ("hydration.outdated_answer", "Answers that were older than what was known."),
        ("hydration.malformed_event", "Events that could not be read."),
        ("hydration.gap", "Times that events may have been lost."),
        ("hydration.copy_failed", "Local copies that could not be read or written."),
        ("hydration.source.loaded", "Questions that a source loaded an entity for."),
        ("hydration.source.collapsed", "Questions that another load answered too."),
        ("hydration.source.failed", "Questions that a source could not answer."),
        ("hydration.source.dropped", "Questions that a source had no room for."),
    ];
    for (name, what) in counters {
        metrics::describe_counter!(name, what);
        metrics::counter!(name).increment(0);
    }
    metrics::describe_gauge!("hydration.flights", "Entities that are being asked for, or were not answered.");
    metrics::describe_gauge!("hydration.waiters", "Reads that wait.");
    metrics::describe_gauge!("hydration.deferred.waiting", "Reads that were put off and wait.");
    metrics::describe_gauge!("hydration.negatives", "Entities that are remembered as not found.");
}

pub(crate) fn record_accepted(started: Instant, deduplicated: bool) {
    metrics::histogram!("tidegate_accept_seconds").record(started.elapsed().as_secs_f64());
    if deduplicated {
        metrics::counter!("tidegate_operations_deduplicated_total").increment(1);
    }
}

pub(crate) fn record_refused(error: &Error) {
    metrics::counter!("tidegate_operations_refused_total", "code" => error.code.to_string()).increment(1);
}

pub(crate) fn record_drained(accepted: usize) {
    metrics::counter!("tidegate_outbox_accepted_total").increment(accepted as u64);
}

pub(crate) fn record_outbox_refused(error: &Error) {
    metrics::counter!("tidegate_outbox_refused_total", "code" => error.code.to_string()).increment(1);
}

/// Refreshes the gauges that are only read on a scrape, for every engine of this process. What
/// cannot be read keeps its last value.
pub(crate) async fn refresh(house: &ServerState, engines: &[Engine]) {
    let mut counts = Counts::default();
    let (mut all_read, mut opened) = (true, 0_u32);
    for engine in engines {
        match engine.counts().await {
            Ok(some) => counts += some,
            Err(_) => all_read = false,
        }
        for limit in engine.limits().await.unwrap_or_default() {
            // There are as many of these as routes and channels, and each gauge would live as long
            // as the process.
            if limit.opened { opened += 1 } else { report_limit(&limit) }
        }
    }
    metrics::gauge!("tidegate_work_waiting").set(house.work.waiting_count() as f64);
    metrics::gauge!("tidegate_limits_opened").set(f64::from(opened));
    if all_read {
        let states = [
            ("queued", counts.queued),
            ("waiting", counts.waiting),
            ("running", counts.running),
            ("unknown", counts.unknown),
        ];
        for (state, count) in states {
            metrics::gauge!("tidegate_operations", "state" => state).set(count as f64);
        }
        metrics::gauge!("tidegate_groups").set(counts.groups as f64);
        metrics::gauge!("tidegate_groups_stopped").set(counts.stopped as f64);
    }
    if house.archiving.is_some() {
        report_backlog(house, engines);
    }
    if let Ok(stats) = house.store.stats().await {
        metrics::gauge!("tidegate_store_bytes").set(stats.bytes as f64);
        metrics::gauge!("tidegate_store_operations").set(stats.operations as f64);
    }
    if let Some(outbox) = house.store.outbox()
        && let Ok(seen) = outbox.status(None, 0).await
    {
        metrics::gauge!("tidegate_outbox_waiting").set(seen.waiting as f64);
    }
}

fn report_backlog(house: &ServerState, engines: &[Engine]) {
    let (mut waiting, mut oldest) = (0, None);
    for backlog in engines.iter().filter_map(Engine::backlog) {
        waiting += backlog.waiting;
        oldest = oldest.into_iter().chain(backlog.oldest).min();
    }
    let age = oldest.map_or(0.0, |oldest| house.clock.now().since(oldest).as_secs_f64());
    metrics::gauge!("tidegate_archive_waiting").set(waiting as f64);
    metrics::gauge!("tidegate_archive_oldest_seconds").set(age);
}

fn report_limit(limit: &LimitView) {
    let tokens = |micro: u64| micro as f64 / MICRO as f64;
    let (level, capacity) = match limit.shape {
        LimitShape::Drip { capacity, .. } => (tokens(limit.level), tokens(capacity)),
        LimitShape::Window { limit: most, .. } => (tokens(limit.level), tokens(most)),
        LimitShape::Cap { at_once } => (limit.level as f64, f64::from(at_once)),
        LimitShape::Gate | LimitShape::Breaker { .. } => (0.0, 0.0),
    };
    let name = limit.name.to_string();
    if !matches!(limit.shape, LimitShape::Gate | LimitShape::Breaker { .. }) {
        metrics::gauge!("tidegate_limit_level", "limit" => name.clone()).set(level);
        metrics::gauge!("tidegate_limit_capacity", "limit" => name.clone()).set(capacity);
    }
    metrics::gauge!("tidegate_limit_waiting", "limit" => name.clone()).set(limit.waiting as f64);
    metrics::gauge!("tidegate_limit_in_flight", "limit" => name.clone()).set(f64::from(limit.in_flight));
    let closed = if limit.frozen_until.is_some() { 1.0 } else { 0.0 };
    metrics::gauge!("tidegate_limit_closed", "limit" => name).set(closed);
}
