//! An in-process upstream that responds at once, and counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::{Charge, OnUnknown, Verdict};
use tidegate_upstream::{Call, CallFuture, CallRequirements, FieldRefusal, Outcome, Upstream};
use tokio::sync::Notify;

/// Responds at once. Every call charges `limits`, one token each.
#[derive(Debug, Default)]
pub(crate) struct InstantUpstream {
    limits: Vec<Arc<str>>,
    carried: AtomicU64,
    moved: Notify,
}

impl InstantUpstream {
    /// Creates an upstream with these limits, which the engine must know.
    pub(crate) fn charging(limits: Vec<Arc<str>>) -> Self {
        Self { limits, ..Self::default() }
    }

    pub(crate) fn carried(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// Waits until at least this many calls were made.
    pub(crate) async fn wait_for_calls(&self, calls: u64) {
        loop {
            let moved = self.moved.notified();
            if self.carried() >= calls {
                return;
            }
            moved.await;
        }
    }
}

impl Upstream for InstantUpstream {
    fn check(
        &self,
        _payload: &[u8],
        _cost: &BTreeMap<String, u64>,
    ) -> Result<CallRequirements, FieldRefusal> {
        let charges = self.limits.iter().map(|limit| Charge::tokens(Arc::clone(limit), 1)).collect();
        Ok(CallRequirements::new(charges).with_on_unknown(OnUnknown::Repeat))
    }

    fn carry<'a>(&'a self, _call: Call<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            self.carried.fetch_add(1, Ordering::Relaxed);
            self.moved.notify_waiters();
            Outcome::unanswered(Verdict::Done).with_body(&b"{\"status\":200}"[..]).with_status(200)
        })
    }
}
