//! The settings of an engine.

use std::time::Duration;

use tidegate_core::bounds;
use tidegate_core::id::Partition;
use tidegate_core::operation::FailureRule;

use crate::calls::InFlightCalls;
use crate::completion::CompletionKey;
use crate::events::EventSink;
use crate::journey::JourneySink;
use crate::outage::StoreOutages;

/// Settings of an engine. Every one has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// Receives the way of each operation that ends.
    pub journey_sink: Option<JourneySink>,
    /// Receives every event.
    pub event_sink: Option<EventSink>,
    /// Which engines the store is unavailable to. Those whose options are clones log it once.
    pub(crate) outages: StoreOutages,
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
            journey_sink: None,
            event_sink: None,
            outages: StoreOutages::default(),
        }
    }
}

impl Options {
    /// Sets this node's name.
    #[must_use]
    pub fn with_node(mut self, node: impl Into<String>) -> Self {
        self.node = node.into();
        self
    }

    /// Sets the partition it owns.
    #[must_use]
    pub fn with_partition(mut self, partition: Partition) -> Self {
        self.partition = partition;
        self
    }

    /// Sets the maximum number of calls in flight; 64 by default.
    #[must_use]
    pub fn with_workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets how long a claim holds without renewal.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how long the partition is owned without renewal.
    #[must_use]
    pub fn with_partition_lease(mut self, partition_lease: Duration) -> Self {
        self.partition_lease = partition_lease;
        self
    }

    /// Sets how long a dedupe key is remembered.
    #[must_use]
    pub fn with_dedupe_window(mut self, dedupe_window: Duration) -> Self {
        self.dedupe_window = dedupe_window;
        self
    }

    /// Sets what follows a failure where a submission does not specify it.
    #[must_use]
    pub fn with_on_failure(mut self, on_failure: Vec<FailureRule>) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// Sets how long an ended operation is kept; 7 days by default.
    #[must_use]
    pub fn with_retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// Takes over the calls of earlier engines of this process on the same partition.
    #[must_use]
    pub fn with_in_flight(mut self, in_flight: InFlightCalls) -> Self {
        self.in_flight = in_flight;
        self
    }

    /// Lets jobs be completed from outside, by tokens of this key.
    #[must_use]
    pub fn with_completion_key(mut self, completion_key: CompletionKey) -> Self {
        self.completion_key = Some(completion_key);
        self
    }

    /// Passes the way of each operation that ends to a sink, if there is one.
    #[must_use]
    pub fn with_journey_sink(mut self, sink: Option<JourneySink>) -> Self {
        self.journey_sink = sink;
        self
    }

    /// Passes every event to a sink.
    #[must_use]
    pub fn with_event_sink(mut self, sink: EventSink) -> Self {
        self.event_sink = Some(sink);
        self
    }

    /// Sets how long a drain waits for calls in flight; 25 s by default.
    #[must_use]
    pub fn with_drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// Sets the maximum number of commands applied in one batch.
    #[must_use]
    pub fn with_batch_max(mut self, batch_max: usize) -> Self {
        self.batch_max = batch_max;
        self
    }

    /// Sets how many commands may wait for the owner.
    #[must_use]
    pub fn with_backlog_max(mut self, backlog_max: usize) -> Self {
        self.backlog_max = backlog_max;
        self
    }

    /// Sets the bytes of payloads kept in memory.
    #[must_use]
    pub fn with_payload_cache_bytes(mut self, payload_cache_bytes: usize) -> Self {
        self.payload_cache_bytes = payload_cache_bytes;
        self
    }

    /// Sets the number of facts after which a snapshot is taken.
    #[must_use]
    pub fn with_snapshot_after_facts(mut self, snapshot_after_facts: u64) -> Self {
        self.snapshot_after_facts = snapshot_after_facts;
        self
    }
}
