//! The descriptions of all metrics, which operators read next to their figures. `docs/metrics.md`
//! lists the same names.

/// Describes every metric.
pub(super) fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_histogram!(
        "tidegate_accept_seconds",
        "From the first byte of a submission's body to its durable acceptance."
    );
    describe_counter!("tidegate_operations_accepted_total", "Operations that were accepted.");
    describe_counter!("tidegate_webhooks_total", "Webhooks of providers, by provider and outcome.");
    describe_counter!("tidegate_operations_ended_total", "Operations that ended, by state.");
    describe_counter!("tidegate_attempts_total", "Attempts that were settled, by upstream and result.");
    describe_histogram!("tidegate_upstream_seconds", "How long calls took, by upstream.");
    describe_counter!(
        "tidegate_responses_total",
        "Calls that were made, by upstream and the class of the response's status; 429 is its own."
    );
    describe_histogram!("tidegate_batch_calls", "Attempts that were settled with one append.");
    describe_counter!("tidegate_operations_deduplicated_total", "Submissions that were deduplicated.");
    describe_counter!("tidegate_operations_refused_total", "Submissions that were not accepted, by code.");
    describe_counter!("tidegate_requests_refused_total", "Requests answered with an error, by code.");
    describe_counter!(
        "tidegate_auth_failures_total",
        "Calls whose token was refused, by reason: unknown, expired, or blocked after too many."
    );
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
    describe_gauge!(
        "tidegate_awaiting",
        "Operations in flight whose job ends elsewhere; they are among the running ones."
    );
    describe_gauge!(
        "tidegate_oldest_waiting_seconds",
        "How long the operation has waited that has waited longest."
    );
    describe_gauge!("tidegate_workers", "Calls that may be in flight at once, over all partitions.");
    describe_gauge!("tidegate_workers_busy", "Calls in flight.");
    describe_gauge!("tidegate_groups", "Groups that are not empty.");
    describe_gauge!("tidegate_groups_stopped", "Groups that wait for an operator.");
    describe_gauge!("tidegate_idempotency_keys", "Idempotency keys in the store.");
    describe_gauge!("tidegate_store_bytes", "Size of the store in bytes.");
    describe_gauge!("tidegate_store_operations", "Operations in the store.");
    describe_counter!("tidegate_traces_exported_total", "Operations whose traces a collector took.");
    describe_counter!(
        "tidegate_traces_dropped_total",
        "Operations whose traces were dropped, by reason: queue_full, unreachable or refused."
    );
    describe_counter!("tidegate_archived_total", "Operations that were copied to the archive.");
    describe_gauge!("tidegate_archive_waiting", "Operations that ended and are not in the archive yet.");
    describe_gauge!(
        "tidegate_archive_oldest_seconds",
        "Age of the oldest ended operation that is not archived yet."
    );
    describe_limits();
    describe_keys();
    describe_hydration();
}

/// Describes the metrics of limits and providers.
fn describe_limits() {
    use metrics::describe_gauge;
    describe_gauge!(
        "tidegate_limits_opened",
        "Limits opened by calls, such as those of routes; they have no metrics of their own."
    );
    describe_gauge!("tidegate_limit_level", "What is left of a limit, in tokens or slots.");
    describe_gauge!("tidegate_limit_capacity", "The capacity of a limit, in tokens or slots.");
    describe_gauge!(
        "tidegate_limit_waiting",
        "Groups that wait for a limit, or for any of several of which it is one."
    );
    describe_gauge!("tidegate_limit_in_flight", "Calls in flight that charge a limit.");
    describe_gauge!("tidegate_limit_closed", "1 while an upstream has closed a limit.");
    describe_gauge!("tidegate_provider_available", "1 while a provider takes jobs.");
    describe_gauge!("tidegate_provider_jobs", "Jobs in progress at a provider.");
    describe_gauge!("tidegate_provider_waiting", "Generations that wait for a provider.");
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
