//! The gauges that are read when `/metrics` is scraped. A scrape costs the same with ten groups as
//! with a hundred thousand.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate::{Engine, PartitionLoad};
use tidegate_core::Time;
use tidegate_core::fact::LimitShape;
use tidegate_core::model::{Counts, LimitView};
use tidegate_core::operation::MICRO;
use tokio::time::timeout;

use crate::generations::providers::{self, Availability, ProviderStatus};
use crate::state::ServerState;

/// How long a scrape waits for what only the store knows; without it, the last figures stand.
const STORE_PATIENCE: Duration = Duration::from_secs(2);
/// The gauges of a limit.
const LIMIT_GAUGES: [&str; 5] = [
    "tidegate_limit_level",
    "tidegate_limit_capacity",
    "tidegate_limit_waiting",
    "tidegate_limit_in_flight",
    "tidegate_limit_closed",
];

/// The limits that this process has reported. A gauge lives as long as the process: those of a
/// partition that moved to another node are set to zero.
#[derive(Default)]
pub(crate) struct ReportedLimits(Mutex<BTreeSet<Arc<str>>>);

impl ReportedLimits {
    /// Remembers what is reported now, and returns what was and is not any more.
    fn replace(&self, now: BTreeSet<Arc<str>>) -> Vec<Arc<str>> {
        let mut reported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = reported.difference(&now).cloned().collect();
        *reported = now;
        gone
    }
}

/// Refreshes the gauges for every engine of this process. What cannot be read keeps its last value.
pub(crate) async fn refresh(server: &ServerState, engines: &[Engine]) {
    let mut loads = Vec::with_capacity(engines.len());
    let mut all_read = true;
    for engine in engines {
        match engine.load().await {
            Ok(load) => loads.push(load),
            Err(_) => all_read = false,
        }
    }
    metrics::gauge!("tidegate_work_waiting").set(server.work.waiting_count() as f64);
    if all_read {
        report_load(server, &loads);
        report_limits(server, loads);
    }
    if server.archiving.is_some() {
        report_backlog(server, engines);
    }
    if let Ok(Ok(stats)) = timeout(STORE_PATIENCE, server.store.stats()).await {
        metrics::gauge!("tidegate_store_bytes").set(stats.bytes as f64);
        metrics::gauge!("tidegate_store_operations").set(stats.operations as f64);
        metrics::gauge!("tidegate_idempotency_keys").set(stats.records as f64);
    }
    if let Some(outbox) = server.store.outbox()
        && let Ok(Ok(seen)) = timeout(STORE_PATIENCE, outbox.status(None, 0)).await
    {
        metrics::gauge!("tidegate_outbox_waiting").set(seen.waiting as f64);
    }
}

fn report_load(server: &ServerState, loads: &[PartitionLoad]) {
    let mut counts = Counts::default();
    for load in loads {
        counts += load.activity.counts;
    }
    let states = [
        ("queued", counts.queued),
        ("waiting", counts.waiting),
        ("running", counts.running),
        ("unknown", counts.unknown),
    ];
    for (state, count) in states {
        metrics::gauge!("tidegate_operations", "state" => state).set(count as f64);
    }
    metrics::gauge!("tidegate_awaiting").set(counts.awaiting as f64);
    metrics::gauge!("tidegate_groups").set(counts.groups as f64);
    metrics::gauge!("tidegate_groups_stopped").set(counts.stopped as f64);
    let sum = |of: fn(&PartitionLoad) -> usize| loads.iter().map(of).sum::<usize>() as f64;
    metrics::gauge!("tidegate_workers").set(sum(|load| load.workers));
    metrics::gauge!("tidegate_workers_busy").set(sum(|load| load.busy));
    metrics::gauge!("tidegate_limits_opened").set(sum(|load| load.opened_limits));
    let oldest = loads.iter().filter_map(|load| load.activity.oldest_waiting).min();
    metrics::gauge!("tidegate_oldest_waiting_seconds").set(age(server, oldest));
}

fn age(server: &ServerState, since: Option<Time>) -> f64 {
    since.map_or(0.0, |since| server.clock.now().since(since).as_secs_f64())
}

/// Reports the limits of the configuration, and the providers that they are the limits of. There
/// are as many limits that calls opened as there are routes and channels, so those are only
/// counted.
fn report_limits(server: &ServerState, loads: Vec<PartitionLoad>) {
    let limits: Vec<LimitView> = loads.into_iter().flat_map(|load| load.limits).collect();
    limits.iter().for_each(report_limit);
    let names = limits.iter().map(|limit| Arc::clone(&limit.name)).collect();
    for gone in server.reported_limits.replace(names) {
        LIMIT_GAUGES.into_iter().for_each(|metric| report_limit_gauge(metric, &gone, 0.0));
    }
    if let Some(service) = &server.generations {
        let now = server.clock.now();
        let known = providers::from_limits(&service.dispatch, limits);
        for provider in &service.dispatch.config().providers {
            // Elsewhere in a cluster, another node reports it.
            let status = known.iter().find(|status| status.name == provider.name);
            report_provider(&provider.name, status, now);
        }
    }
}

fn report_provider(name: &str, status: Option<&ProviderStatus>, now: Time) {
    let gauge = |metric: &'static str, value: f64| {
        metrics::gauge!(metric, "provider" => name.to_owned()).set(value);
    };
    let is_available = status.is_some_and(|status| status.state(now).0 == Availability::Free);
    gauge("tidegate_provider_available", f64::from(u8::from(is_available)));
    gauge("tidegate_provider_jobs", status.map_or(0.0, |status| f64::from(status.slots.in_flight)));
    gauge("tidegate_provider_waiting", status.map_or(0.0, |status| status.waiting() as f64));
}

fn report_backlog(server: &ServerState, engines: &[Engine]) {
    let (mut waiting, mut oldest) = (0, None);
    for backlog in engines.iter().filter_map(Engine::backlog) {
        waiting += backlog.waiting;
        oldest = oldest.into_iter().chain(backlog.oldest).min();
    }
    metrics::gauge!("tidegate_archive_waiting").set(waiting as f64);
    metrics::gauge!("tidegate_archive_oldest_seconds").set(age(server, oldest));
}

fn report_limit(limit: &LimitView) {
    let tokens = |micro: u64| micro as f64 / MICRO as f64;
    let (level, capacity) = match limit.shape {
        LimitShape::Drip { capacity, .. } => (tokens(limit.level), tokens(capacity)),
        LimitShape::Window { limit: most, .. } => (tokens(limit.level), tokens(most)),
        LimitShape::Cap { at_once } => (limit.level as f64, f64::from(at_once)),
        LimitShape::Gate | LimitShape::Breaker { .. } => (0.0, 0.0),
    };
    let gauge = |metric: &'static str, value: f64| report_limit_gauge(metric, &limit.name, value);
    if !matches!(limit.shape, LimitShape::Gate | LimitShape::Breaker { .. }) {
        gauge("tidegate_limit_level", level);
        gauge("tidegate_limit_capacity", capacity);
    }
    gauge("tidegate_limit_waiting", limit.waiters() as f64);
    gauge("tidegate_limit_in_flight", f64::from(limit.in_flight));
    gauge("tidegate_limit_closed", f64::from(u8::from(limit.frozen_until.is_some())));
}

fn report_limit_gauge(metric: &'static str, limit: &str, value: f64) {
    metrics::gauge!(metric, "limit" => limit.to_owned()).set(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A limit that moved to another node is found once, and again after it came back and left.
    #[test]
    fn limits_that_are_gone_are_found_once() {
        let reported = ReportedLimits::default();
        let now = |names: &[&str]| {
            let gone = reported.replace(names.iter().map(|name| Arc::from(*name)).collect());
            gone.join(" ")
        };
        assert_eq!(now(&["a", "b"]), "");
        assert_eq!(now(&["b"]), "a");
        assert_eq!(now(&["b"]), "");
        assert_eq!(now(&["a", "b"]), "");
        assert_eq!(now(&[]), "a b");
    }
}
