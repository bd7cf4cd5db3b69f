//! Attempts whose job ends elsewhere: what the executor must remember until then, and what became
//! of them. A row is written in the append that settles the claim as awaiting, and its end in the
//! one that ends it; it is kept as long as the operation. An attempt of unknown outcome has a row
//! too: it names the claim that a late report may still resolve.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::{Fence, Seq, Time};

/// One attempt of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredAttempt {
    /// The sequence number of the operation.
    pub seq: Seq,
    /// The fence of the claim; with the sequence number, it identifies the attempt.
    pub fence: Fence,
    /// The number of the attempt; the first is 1.
    pub number: u16,
    /// When its job was accepted; of one that used an alternative, when that was picked.
    pub at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// Its current state.
    pub state: AttemptState,
    /// The id by which the upstream knows the job.
    pub external_id: Option<Arc<str>>,
    /// What it may have cost, in millionths of the unit that the executor counts in.
    pub cost: Option<u64>,
    /// What the executor must remember until the job ends, opaque to the store. Of an attempt whose
    /// outcome is unknown and whose job was not accepted, the response. Of one that used an
    /// alternative and of which its executor left no note, the name of the alternative.
    pub memo: Bytes,
}

impl StoredAttempt {
    /// Applies a later row of the same claim. One that has not ended replaces this one; the end of
    /// an attempt keeps what it does not mention.
    #[must_use]
    pub fn merge(self, later: Self) -> Self {
        if later.ended_at.is_none() {
            return later;
        }
        Self {
            external_id: later.external_id.or(self.external_id),
            cost: later.cost.or(self.cost),
            memo: if later.memo.is_empty() { self.memo } else { later.memo },
            ..later
        }
    }
}

/// The state of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptState {
    /// Its job is not finished, as far as known.
    Awaiting,
    /// Its job succeeded.
    Succeeded,
    /// Its job failed for good.
    Failed,
    /// Its job failed, and the operation is tried again.
    Retried,
    /// It was canceled.
    Canceled,
    /// Its completion did not come in time.
    Unknown,
}

impl AttemptState {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Awaiting, Self::Succeeded, Self::Failed, Self::Retried, Self::Canceled, Self::Unknown];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Awaiting => "awaiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Retried => "retried",
            Self::Canceled => "canceled",
            Self::Unknown => "unknown",
        }
    }

    /// Parses a stable name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}
