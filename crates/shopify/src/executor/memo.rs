//! What the executor remembers between two polls of a bulk operation, as JSON.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidegate_limits::LeaseToken;

use super::encode_result;
use crate::bulk::PollIntervals;

/// The memo of a bulk operation in progress. What cannot be read counts as nothing remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct BulkMemo {
    /// The pause before the poll, in milliseconds; 0 starts from the shortest again.
    pause_ms: u64,
    /// What its calls have cost so far, in micro-points.
    pub(super) spent: u64,
    /// The place of the shop's lease that it holds, and its fence.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<(String, u64)>,
}

impl BulkMemo {
    pub(super) fn new(spent: u64, lease: Option<LeaseToken>) -> Self {
        Self { spent, ..Self::default() }.with_lease(lease)
    }

    pub(super) fn with_lease(mut self, lease: Option<LeaseToken>) -> Self {
        self.lease = lease.map(|LeaseToken { place, fence }| (place, fence));
        self
    }

    /// The slot of the shop's lease that it holds.
    pub(super) fn lease(&self) -> Option<LeaseToken> {
        self.lease.clone().map(|(place, fence)| LeaseToken { place, fence })
    }

    pub(super) fn decode(memo: &[u8]) -> Self {
        serde_json::from_slice(memo).unwrap_or_default()
    }

    pub(super) fn encode(&self) -> Bytes {
        encode_result(self)
    }

    /// Lets the next pause be the shortest one.
    pub(super) const fn restart_pauses(&mut self) {
        self.pause_ms = 0;
    }

    /// The pause before the last poll.
    pub(super) const fn last_pause(&self) -> Duration {
        Duration::from_millis(self.pause_ms)
    }

    /// Returns the pause before the next poll, and remembers it.
    pub(super) fn next_pause(&mut self, intervals: PollIntervals) -> Duration {
        let pause = intervals.next_after(self.last_pause()).max(intervals.first);
        self.pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_memo_to_memo() {
        let intervals = PollIntervals::default();
        let lease = Some(LeaseToken { place: "bulk-lock:acme:2".into(), fence: u64::MAX });
        let mut memo = BulkMemo::decode(b"not a memo").with_lease(lease.clone());
        let mut pauses = Vec::new();
        for _ in 0..11 {
            pauses.push(memo.next_pause(intervals).as_millis());
            memo = BulkMemo::decode(&memo.encode());
        }
        assert_eq!(
            pauses,
            [1_000, 1_500, 2_250, 3_375, 5_062, 7_593, 11_389, 17_083, 25_624, 30_000, 30_000]
        );
        assert_eq!(memo.lease(), lease);
        memo.restart_pauses();
        assert_eq!(memo.next_pause(intervals), intervals.first);
    }
}
