//! The real HTTP executor with counters: how many calls ended, how many of them failed, and whether
//! calls may be sent yet. Producers wait here when they are too far ahead.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_core::Verdict;
use tidegate_upstream::{Call, CallFuture, CallRequirements, FieldRefusal, HttpUpstreams, Outcome, Upstream};
use tokio::sync::{Semaphore, watch};

/// How long a call that is never sent is held.
const IDLE: Duration = Duration::from_millis(50);

/// A wrapper around the measured executor.
#[derive(Debug)]
pub(super) struct MeteredUpstream {
    http: HttpUpstreams,
    released: watch::Sender<bool>,
    /// Whether no call is ever sent.
    is_idle: bool,
    /// How many more operations may be submitted.
    room: Semaphore,
    ended: AtomicU64,
    failed: AtomicU64,
}

impl MeteredUpstream {
    /// Holds calls back until they are released.
    pub(super) fn holding(http: HttpUpstreams, outstanding: usize) -> Self {
        Self {
            http,
            released: watch::Sender::new(false),
            is_idle: false,
            room: Semaphore::new(outstanding),
            ended: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Sends no call: each is returned after a moment, so that the engine can stop.
    pub(super) fn idle(http: HttpUpstreams) -> Self {
        Self { is_idle: true, ..Self::holding(http, 0) }
    }

    /// Releases the calls.
    pub(super) fn release(&self) {
        self.released.send_replace(true);
    }

    /// Waits until another operation may be submitted.
    pub(super) async fn wait_for_room(&self) {
        if let Ok(permit) = self.room.acquire().await {
            permit.forget();
        }
    }

    /// Returns the number of calls that ended.
    pub(super) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Returns how many of them failed.
    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

impl Upstream for MeteredUpstream {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        self.http.check(payload, cost)
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            if self.is_idle {
                tokio::time::sleep(IDLE).await;
                return Outcome::unanswered(Verdict::Returned);
            }
            if !*self.released.borrow() {
                // The sender is part of `self`: it is not dropped during the wait.
                let _ = self.released.subscribe().wait_for(|released| *released).await;
            }
            let outcome = self.http.carry(call).await;
            if outcome.verdict != Verdict::Done {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
            self.ended.fetch_add(1, Ordering::Relaxed);
            self.room.add_permits(1);
            outcome
        })
    }
}
