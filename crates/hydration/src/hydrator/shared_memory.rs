//! What all nodes that share a store remember together: that a question was asked a moment ago, and
//! that an entity was not found.
//!
//! A question opens a short window; a node that finds one open does not publish and waits for the
//! other's answer, which every node receives. The window is shorter than the time to a retry, so a
//! node that dies or misses the answer costs the others that time and nothing else. Nodes that are
//! connected learn of absence from the bus; the store tells those that were not. Without the store
//! every node asks for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::hydration::{Absence, AbsenceReason, EntityKey, EntityStamp, HydrationMode, Question};
use tidegate_core::shared::window::{HydrationWindow, OpenWindowOutcome};
use tidegate_store::SharedState;
use tokio::time::timeout;

use crate::counters::HydrationCount;

/// How long the store may take; then the node asks for itself.
const STORE_TIMEOUT: Duration = Duration::from_millis(100);
/// The longest time that absence is remembered together. Whoever was connected when it was found
/// out remembers it for longer.
const ABSENCE_TTL_MAX: Duration = Duration::from_secs(60);

/// What is known of an entity's absence, as the store compares it: who knows more wins.
const NOTHING: u8 = 0;
const DELETED: u8 = 1;
const INACCESSIBLE: u8 = 2;
const CAME_INTO_BEING: u8 = 3;

/// What to do with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SharedAdmission {
    /// Publish it.
    Publish,
    /// Another node has published it.
    AskedElsewhere,
    /// Another node knows until then that there is no such entity.
    NotFound(Absence, Time),
}

pub(super) struct SharedMemory {
    store: Arc<dyn SharedState>,
    window_ttl: Duration,
    absence_ttl: Duration,
    /// Until when absence is not believed, in microseconds: news of the opposite may have been
    /// lost.
    distrusted_until: AtomicU64,
}

impl SharedMemory {
    pub(super) fn new(store: Arc<dyn SharedState>, retry_backoff: Duration, negative_ttl: Duration) -> Self {
        let absence_ttl = negative_ttl.min(ABSENCE_TTL_MAX);
        let distrusted_until = AtomicU64::new(0);
        Self { store, window_ttl: retry_backoff * 3 / 4, absence_ttl, distrusted_until }
    }

    /// Whether this node is to publish the question.
    pub(super) async fn admit(&self, question: &Question, now: Time) -> SharedAdmission {
        if let Some((absence, until)) = self.absence(&question.key, now).await {
            HydrationCount::AbsentElsewhere.count();
            return SharedAdmission::NotFound(absence, until);
        }
        let key = record_key("hydration", &question.key);
        match self.open(&key, level(&question.mode), self.window_ttl).await {
            Some(OpenWindowOutcome::Wait(_)) => {
                HydrationCount::AskedElsewhere.count();
                SharedAdmission::AskedElsewhere
            }
            Some(OpenWindowOutcome::Ask(_)) | None => SharedAdmission::Publish,
        }
    }

    async fn absence(&self, key: &EntityKey, now: Time) -> Option<(Absence, Time)> {
        if now.as_micros() < self.distrusted_until.load(Ordering::Relaxed) {
            return None;
        }
        let found = self.open(&record_key("absence", key), NOTHING, Duration::from_millis(1)).await?;
        let OpenWindowOutcome::Wait(HydrationWindow { level, until }) = found else { return None };
        let reason = match level {
            DELETED => AbsenceReason::DeletedOrNeverExisted,
            INACCESSIBLE => AbsenceReason::Inaccessible,
            _ => return None,
        };
        // By its own clock it expires no later than if this node had found it out just now.
        let until = until.min(now.after(self.absence_ttl));
        Some((Absence { reason, stamp: EntityStamp::default() }, until))
    }

    /// Remembers for all nodes that an entity was not found, unless it came into being just now.
    pub(super) async fn remember_absence(&self, key: &EntityKey, reason: AbsenceReason) {
        let level = match reason {
            AbsenceReason::DeletedOrNeverExisted => DELETED,
            AbsenceReason::Inaccessible => INACCESSIBLE,
        };
        self.open(&record_key("absence", key), level, self.absence_ttl).await;
    }

    /// An entity came into being: its absence is forgotten, and for a while not believed.
    pub(super) async fn forget_absence(&self, key: &EntityKey) {
        self.open(&record_key("absence", key), CAME_INTO_BEING, self.window_ttl).await;
    }

    /// Messages may have been lost: what other nodes knew before that may be outdated.
    pub(super) fn distrust(&self, now: Time) {
        self.distrusted_until.fetch_max(now.after(self.absence_ttl).as_micros(), Ordering::Relaxed);
    }

    async fn open(&self, key: &str, level: u8, ttl: Duration) -> Option<OpenWindowOutcome> {
        match timeout(STORE_TIMEOUT, self.store.open_window(key, level, ttl)).await {
            Ok(Ok(outcome)) => Some(outcome),
            Ok(Err(error)) => {
                tracing::warn!(target: "tidegate::hydration", "the shared memory failed: {error}");
                None
            }
            Err(_) => None,
        }
    }
}

fn record_key(purpose: &str, key: &EntityKey) -> String {
    let parts = [key.tenant(), key.entity_type(), key.id()];
    hex(&parts.iter().fold(Fingerprint::of(purpose), |hash, part| hash.part(part.as_bytes())).finish())
}

/// Levels as the store compares them. Of two that want different fields the later one is answered
/// by its retry.
const fn level(mode: &HydrationMode) -> u8 {
    match mode {
        HydrationMode::Existence => 1,
        HydrationMode::Partial(_) => 2,
        HydrationMode::Full => 3,
    }
}
