//! A stream of changes for listeners, with a bounded ring: a listener that reconnects soon resumes
//! where it was, and one that was away too long is told to reload.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_core::{OperationId, State, Time};
use tokio::sync::broadcast;

/// Events kept for listeners that reconnect.
const RING_LEN: usize = 4_096;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Increases; the value of `Last-Event-ID`.
    pub id: u64,
    /// When it happened.
    pub at: Time,
    /// What changed.
    pub change: Change,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// An operation entered a state.
    Operation {
        /// Its id.
        id: OperationId,
        /// Its group.
        group: Arc<str>,
        /// Its kind.
        kind: Arc<str>,
        /// The new state.
        state: State,
        /// Attempts made.
        attempt: u16,
        /// Its labels; `None` if they were not at hand.
        labels: Option<OperationLabels>,
    },
    /// A group was paused, held or resumed.
    Group {
        /// The name of the group.
        group: Arc<str>,
        /// `paused`, `held` or `resumed`.
        now: &'static str,
    },
    /// A limit was set, closed or reopened.
    Limit {
        /// The name of the limit.
        limit: Arc<str>,
        /// `set`, `closed` or `opened`.
        now: &'static str,
    },
}

/// What an operation was submitted with, by which its caller knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationLabels {
    /// The caller's dedupe key.
    pub dedupe_key: Option<Arc<str>>,
    /// The upstream it is for.
    pub upstream: Option<Arc<str>>,
    /// The user it is for.
    pub user: Option<Arc<str>>,
}

/// A listener's subscription.
#[derive(Debug)]
pub struct Subscription {
    /// The events it missed, oldest first.
    pub missed: Vec<Arc<Event>>,
    /// Whether more was missed than is kept: reload everything.
    pub gap: bool,
    /// The id of the event that `missed` and `live` follow. A listener that reconnects with it
    /// misses none of them.
    pub position: u64,
    /// The live events.
    pub live: broadcast::Receiver<Arc<Event>>,
}

/// Receives every event of an engine from its start, in order and without a gap.
#[derive(Clone)]
pub struct EventSink(Arc<dyn Fn(Arc<Event>) + Send + Sync>);

impl EventSink {
    /// Calls `receive` from the task that owns the partition, which it must not block.
    pub fn new(receive: impl Fn(Arc<Event>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSink(..)")
    }
}

/// How long events are kept for a listener that left and may reconnect.
const REMEMBERED: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Events {
    ring: Mutex<Ring>,
    live: broadcast::Sender<Arc<Event>>,
    sink: Option<EventSink>,
}

#[derive(Debug)]
struct Ring {
    last: u64,
    kept: VecDeque<Arc<Event>>,
    /// Whether anyone listened since the last change.
    was_heard: bool,
    heard_until: Time,
}

impl Events {
    pub(crate) fn new(first: u64, sink: Option<EventSink>) -> Self {
        let ring = Ring { last: first, kept: VecDeque::new(), was_heard: false, heard_until: Time::ZERO };
        Self { ring: Mutex::new(ring), live: broadcast::channel(RING_LEN).0, sink }
    }

    /// Whether anyone listens, or did a moment ago.
    pub(crate) fn has_listeners(&self, now: Time) -> bool {
        let Ok(mut ring) = self.ring.lock() else { return false };
        let is_heard = self.sink.is_some() || self.live.receiver_count() > 0;
        // One that has left since, however quiet it was, may come back for this change.
        if std::mem::replace(&mut ring.was_heard, is_heard) || is_heard {
            ring.heard_until = now.after(REMEMBERED);
        }
        ring.heard_until > now
    }

    /// Skips the ids of changes that no one listens to.
    pub(crate) fn skip(&self, changes: usize) {
        let Ok(mut ring) = self.ring.lock() else { return };
        ring.last += changes as u64;
        ring.kept.clear();
    }

    pub(crate) fn publish(&self, at: Time, changes: impl IntoIterator<Item = Change>) {
        let Ok(mut ring) = self.ring.lock() else { return };
        for change in changes {
            ring.last += 1;
            let event = Arc::new(Event { id: ring.last, at, change });
            if ring.kept.len() == RING_LEN {
                ring.kept.pop_front();
            }
            ring.kept.push_back(Arc::clone(&event));
            if let Some(EventSink(receive)) = &self.sink {
                receive(Arc::clone(&event));
            }
            // There may be no listener.
            let _ = self.live.send(event);
        }
    }

    pub(crate) fn subscribe(&self, after: Option<u64>) -> Subscription {
        let Ok(mut ring) = self.ring.lock() else {
            return Subscription { missed: Vec::new(), gap: true, position: 0, live: self.live.subscribe() };
        };
        let live = self.live.subscribe();
        ring.was_heard = true;
        let Some(after) = after else {
            return Subscription { missed: Vec::new(), gap: false, position: ring.last, live };
        };
        let oldest = ring.kept.front().map_or(ring.last + 1, |event| event.id);
        let gap = after + 1 < oldest || after > ring.last;
        let missed =
            if gap { Vec::new() } else { ring.kept.iter().filter(|e| e.id > after).cloned().collect() };
        Subscription { missed, gap, position: if gap { ring.last } else { after }, live }
    }
}
