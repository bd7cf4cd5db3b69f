//! The settings of an engine.

use std::time::Duration;

use tidegate_core::bounds;
use tidegate_core::id::Partition;
use tidegate_core::operation::FailureRule;

use crate::calls::InFlightCalls;
use crate::completion::CompletionKey;

/// Settings of an engine. Every one has a default.
#[derive(Clone, Debug)]
pub struct Options {
    /// This node's name.
    pub node: String,
    /// The partition it owns. A store that is not shared has one.
    pub partition: Partition,
    /// The maximum number of calls in flight.
    pub workers: usize,
    /// How long a claim holds without renewal; renewed at a third of it.
    pub lease: Duration,
    /// How long the partition is owned without renewal; renewed at a third of it.
    pub partition_lease: Duration,
    /// How long a dedupe key is remembered.
    pub dedupe_window: Duration,
    /// What follows a failure where a submission does not specify it; the first matching rule
    /// counts.
    pub on_failure: Vec<FailureRule>,
    /// How long an ended operation is kept.
    pub retention: Duration,
    /// Calls of earlier engines of this process on the same partition, which this one settles.
    pub in_flight: InFlightCalls,
    /// How long a drain waits for calls in flight.
    pub drain: Duration,
    /// The maximum number of commands applied in one batch.
    pub batch_max: usize,
    /// Commands that may wait for the owner before callers are told to retry later.
    pub backlog_max: usize,
    /// Bytes of payloads kept in memory for operations that may run soon.
    pub payload_cache_bytes: usize,
    /// The number of facts after which a snapshot is taken.
    pub snapshot_after_facts: u64,
    /// Makes the tokens by which jobs are completed from outside; without it there are none.
    pub completion_key: Option<CompletionKey>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            node: "tidegate".into(),
            partition: 0,
            workers: 64,
            lease: bounds::LEASE_TTL_DEFAULT,
            partition_lease: bounds::PARTITION_TTL_DEFAULT,
            dedupe_window: bounds::DEDUPE_WINDOW_DEFAULT,
            on_failure: Vec::new(),
            retention: Duration::from_secs(7 * 24 * 3_600),
            in_flight: InFlightCalls::default(),
            drain: Duration::from_secs(25),
            batch_max: 512,
            backlog_max: 16_384,
            payload_cache_bytes: 16 * 1024 * 1024,
            snapshot_after_facts: 2_000_000,
            completion_key: None,
        }
    }
}
