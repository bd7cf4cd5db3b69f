//! The state of providers in the store, for people who look into Redis. It is written after changes
//! and at most once a second, by the node that has the generations, and no one reads it back.

use std::sync::Arc;
use std::time::Duration;

use tidegate::Engine;
use tidegate_core::fact::LimitShape;
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;
use tidegate_core::{OperationId, Time};
use tidegate_dispatch::{Dispatch, GenerationQuery, GenerationStatus, Generations};
use tidegate_store::status_board::{StatusBoard, StatusEntry, StatusValue};
use tidegate_store::{Clock, Store};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::providers::{ProviderStatus, read_all};
use crate::error::{Error, Result};

/// The shortest time between two writes.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// The longest time between two writes, so that nothing expires while the node is well.
const AT_LEAST_EVERY: Duration = Duration::from_secs(10);
/// How long what was written stays when nothing is written any more.
const TTL: Duration = Duration::from_secs(30);
/// The most leases that are written for all providers together.
const LEASES_MAX: usize = 200;
/// The most characters of an error.
const ERROR_LEN_MAX: usize = 500;

/// Writes the state of providers.
pub(crate) struct ProviderMirror {
    pub dispatch: Dispatch,
    pub engine: Engine,
    pub generations: Generations,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl ProviderMirror {
    /// Writes until the engine ends.
    pub(crate) async fn run(self) {
        let mut live = self.engine.events(None).live;
        loop {
            let written = Instant::now();
            if let Some(board) = self.store.status_board()
                && let Err(error) = self.write(board).await
            {
                tracing::debug!(%error, "the state of providers was not written");
            }
            let next = tokio::time::timeout(AT_LEAST_EVERY, live.recv()).await;
            if matches!(next, Ok(Err(RecvError::Closed))) {
                return;
            }
            tokio::time::sleep_until(written + AT_MOST_EVERY).await;
            // All changes in the meantime count as one.
            live = live.resubscribe();
        }
    }

    async fn write(&self, board: &dyn StatusBoard) -> Result<()> {
        let statuses = read_all(&self.dispatch, &self.engine, &self.generations).await?;
        let query = GenerationQuery {
            user: None,
            status: Some(GenerationStatus::Processing),
            before: None,
            limit: LEASES_MAX,
        };
        let mut active = Vec::new();
        for one in self.generations.list(&query).await.map_err(Error::from)?.generations {
            let Some(current) = self.engine.current_attempt(one.id).await? else { continue };
            let alternative = current.alternative.as_deref().unwrap_or_default();
            if let Some((provider, _)) = alternative.split_once('/') {
                let since = current.awaiting_since.unwrap_or(one.created_at);
                active.push(ActiveLease { provider: provider.to_owned(), generation: one.id, since });
            }
        }
        let now = self.clock.now();
        for status in &statuses {
            board.publish_status("provider", &status.name, entries(status, &active, now), TTL).await?;
        }
        Ok(())
    }
}

/// A slot that a generation holds.
struct ActiveLease {
    provider: String,
    generation: OperationId,
    /// When the provider accepted its job, or it was created.
    since: Time,
}

/// The keys of one provider.
fn entries(status: &ProviderStatus, active: &[ActiveLease], now: Time) -> Vec<StatusEntry> {
    let leases = active.iter().filter(|lease| lease.provider == status.name);
    let leases = leases.map(|lease| (lease.generation.to_string(), lease.since.as_millis()));
    let mut entries = vec![
        StatusEntry::new("active", StatusValue::Ranked(leases.collect())),
        StatusEntry::new("state", StatusValue::Fields(state_fields(status, now))),
        StatusEntry::new("errors", StatusValue::Text(status.breaker.failures.to_string())),
    ];
    if let Some(window) = window_fields(&status.rpm) {
        entries.push(StatusEntry::new("window", StatusValue::Fields(window)));
    }
    if let Some(error) = &status.last_error {
        let message: String = error.message.chars().take(ERROR_LEN_MAX).collect();
        let fields = vec![
            ("at", error.at.to_string()),
            ("generation", error.generation.to_string()),
            ("message", message),
        ];
        entries.push(StatusEntry::new("last_error", StatusValue::Fields(fields)));
    }
    entries
}

fn state_fields(status: &ProviderStatus, now: Time) -> Vec<(&'static str, String)> {
    let (state, until) = status.state(now);
    let mut fields = vec![
        ("state", state.as_str().to_owned()),
        ("because", status.because(now)),
        ("written_at", now.to_string()),
        ("waiting", status.waiting().to_string()),
    ];
    fields.extend(until.map(|until| ("until", until.to_string())));
    if let LimitShape::Cap { at_once } = status.slots.shape {
        fields.push(("max_concurrent", at_once.to_string()));
        fields.push(("in_use", status.slots.in_flight.to_string()));
    }
    fields
}

fn window_fields(limit: &LimitView) -> Option<Vec<(&'static str, String)>> {
    let most = match limit.shape {
        LimitShape::Window { limit, .. } => limit,
        LimitShape::Drip { capacity, .. } => capacity,
        _ => return None,
    };
    let left = limit.level.min(most);
    let mut fields = vec![
        ("limit", (most / MICRO).to_string()),
        ("left", (left / MICRO).to_string()),
        ("used", ((most - left) / MICRO).to_string()),
    ];
    fields.extend(limit.reset_at.map(|at| ("reset_at", at.to_string())));
    Some(fields)
}
