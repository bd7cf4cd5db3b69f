//! The events of this node's partitions, numbered, with a bounded ring for those who reconnect.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate::Event;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::FeedStart;
use crate::api::events::{EventQueue, NodeKey, NodePosition};
use crate::routing::handshake;

/// How many events are kept, and how many a slow listener may lag behind.
const RING_LEN: usize = 4_096;

/// An event of this node.
#[derive(Clone, Debug)]
pub(crate) struct NodeEvent {
    pub number: u64,
    /// `None` where events of a partition may be missing.
    pub event: Option<Arc<Event>>,
}

/// What a reader gets of this node's events.
pub(super) struct NodeReading {
    pub queue: EventQueue<NodeEvent>,
    /// The position that the reader has.
    pub from: NodePosition,
    /// The position that the queue follows, if events between the two are missing.
    pub after_gap: Option<NodePosition>,
}

/// The events of this node's partitions.
pub(crate) struct NodeEvents {
    node: NodeKey,
    run: u32,
    ring: Mutex<Ring>,
    live: broadcast::Sender<NodeEvent>,
    /// Cancelled when this node has handed over its partitions: no event follows.
    ended: CancellationToken,
}

#[derive(Default)]
struct Ring {
    last: u64,
    kept: VecDeque<NodeEvent>,
}

impl NodeEvents {
    /// The events of a node that has just started.
    pub(crate) fn new(node: &str) -> Self {
        let [.., a, b, c, d] = handshake::random_run().to_be_bytes();
        Self {
            node: NodeKey::of(node),
            run: u32::from_be_bytes([a, b, c, d]),
            ring: Mutex::default(),
            live: broadcast::channel(RING_LEN).0,
            ended: CancellationToken::new(),
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn publish(&self, event: Arc<Event>) {
        self.push(Some(event));
    }

    /// Records that events may be missing here.
    pub(crate) fn publish_gap(&self) {
        self.push(None);
    }

    fn push(&self, event: Option<Arc<Event>>) {
        let mut ring = self.ring();
        ring.last += 1;
        let event = NodeEvent { number: ring.last, event };
        if ring.kept.len() == RING_LEN {
            ring.kept.pop_front();
        }
        ring.kept.push_back(event.clone());
        // There may be no listener. Sent under the lock, so that numbers arrive in order.
        let _ = self.live.send(event);
    }

    /// Ends the streams of other nodes: no event follows.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// The position of an event of this run.
    pub(super) const fn position(&self, number: u64) -> NodePosition {
        NodePosition { node: self.node, run: self.run, number }
    }

    /// The live events.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<NodeEvent> {
        self.live.subscribe()
    }

    /// The events from a start.
    pub(super) fn read_from(&self, start: FeedStart) -> NodeReading {
        let ring = self.ring();
        let from = match start {
            FeedStart::Now => ring.last,
            FeedStart::After(position) if position.run == self.run => position.number,
            FeedStart::Beginning | FeedStart::After(_) => 0,
        };
        let oldest = ring.kept.front().map_or(ring.last + 1, |event| event.number);
        let has_gap = from > ring.last || from + 1 < oldest;
        let after = if has_gap { ring.last } else { from };
        let missed = ring.kept.iter().filter(|event| event.number > after).cloned().collect();
        let queue = EventQueue::new(missed, self.live.subscribe(), self.ended.clone());
        let after_gap = has_gap.then(|| self.position(after));
        NodeReading { queue, from: self.position(from), after_gap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::events::QueueItem;

    /// What is due at once: numbers, and 0 for a gap.
    async fn due(events: &NodeEvents, start: FeedStart) -> (Vec<u64>, NodePosition) {
        let NodeReading { mut queue, from, after_gap } = events.read_from(start);
        events.end();
        let mut due = Vec::from_iter(after_gap.map(|_| 0));
        while let Some(item) = queue.next().await {
            due.push(match item {
                QueueItem::Event(event) => event.number,
                QueueItem::Gap => 0,
            });
        }
        (due, after_gap.unwrap_or(from))
    }

    fn filled(len: usize) -> NodeEvents {
        let events = NodeEvents::new("ann");
        (0..len).for_each(|_| events.publish_gap());
        events
    }

    #[tokio::test]
    async fn a_reader_resumes_within_the_ring() {
        let events = filled(3);
        let at = |number| FeedStart::After(events.position(number));
        assert_eq!(due(&events, at(1)).await, (vec![2, 3], events.position(1)));
        assert_eq!(due(&events, at(3)).await, (vec![], events.position(3)));
        assert_eq!(due(&events, FeedStart::Now).await, (vec![], events.position(3)));
        assert_eq!(due(&events, FeedStart::Beginning).await, (vec![1, 2, 3], events.position(0)));
        let other = NodePosition { run: !events.run, ..events.position(2) };
        assert_eq!(due(&events, FeedStart::After(other)).await.0, [1, 2, 3], "another run is read whole");
    }

    #[tokio::test]
    async fn a_reader_is_told_of_what_the_ring_no_longer_has() {
        let events = filled(RING_LEN + 2);
        let last = events.position(RING_LEN as u64 + 2);
        let at = |number| FeedStart::After(events.position(number));
        assert_eq!(due(&events, at(1)).await, (vec![0], last));
        assert_eq!(due(&events, FeedStart::Beginning).await, (vec![0], last));
        assert_eq!(due(&events, at(u64::MAX >> 1)).await, (vec![0], last), "a number that was never given");
        assert_eq!(due(&events, at(2)).await.0.len(), RING_LEN);
    }

    /// A run is told apart from the one before it.
    #[test]
    fn each_start_is_a_run_of_its_own() {
        assert_ne!(NodeEvents::new("ann").position(1), NodeEvents::new("ann").position(1));
    }
}
