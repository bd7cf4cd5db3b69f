//! Changes as they happen, for those who listen: a bounded ring, so a listener that was away for a moment can go on
//! where it was, and one that was away too long is told to look again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_core::{OperationId, State, Time};
use tokio::sync::broadcast;

/// Events kept for those who come back.
const RING_LEN: usize = 4_096;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Grows; what `Last-Event-ID` holds.
    pub id: u64,
    /// When.
    pub at: Time,
    /// What changed.
    pub change: Change,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An operation came into a state.
    Operation {
        /// Which.
        id: OperationId,
        /// Its group.
        group: Arc<str>,
        /// Its kind.
        kind: Arc<str>,
        /// The state.
        state: State,
        /// Attempts made.
        attempt: u16,
    },
    /// A group was paused, held or resumed.
    Group {
        /// Which.
        group: Arc<str>,
        /// `paused`, `held` or `resumed`.
        now: &'static str,
    },
    /// A limit was set, closed or opened.
    Limit {
        /// Which.
        limit: Arc<str>,
        /// `set`, `closed` or `opened`.
        now: &'static str,
    },
}

/// What a listener gets first.
#[derive(Debug)]
pub struct Subscription {
    /// What it missed, oldest first.
    pub missed: Vec<Arc<Event>>,
    /// Whether more was missed than is kept: look at everything again.
    pub gap: bool,
    /// What comes.
    pub live: broadcast::Receiver<Arc<Event>>,
}

/// For how long events are kept for a listener that left and may come back.
const REMEMBERED: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(crate) struct Events {
    ring: Mutex<Ring>,
    live: broadcast::Sender<Arc<Event>>,
}

#[derive(Debug)]
struct Ring {
    last: u64,
    kept: VecDeque<Arc<Event>>,
    heard_until: Time,
}

impl Events {
    pub(crate) fn new(first: u64) -> Self {
        let ring = Ring { last: first, kept: VecDeque::new(), heard_until: Time::ZERO };
        Self { ring: Mutex::new(ring), live: broadcast::channel(RING_LEN).0 }
    }

    /// Whether anybody listens, or did a moment ago.
    pub(crate) fn has_listeners(&self, now: Time) -> bool {
        let Ok(mut ring) = self.ring.lock() else { return false };
        if self.live.receiver_count() > 0 {
            ring.heard_until = now.after(REMEMBERED);
        }
        ring.heard_until > now
    }

    /// Passes over changes that nobody hears of.
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
            // Nobody may be listening.
            let _ = self.live.send(event);
        }
    }

    pub(crate) fn subscribe(&self, after: Option<u64>) -> Subscription {
        let Ok(ring) = self.ring.lock() else {
            return Subscription { missed: Vec::new(), gap: true, live: self.live.subscribe() };
        };
        let live = self.live.subscribe();
        let Some(after) = after else { return Subscription { missed: Vec::new(), gap: false, live } };
        let oldest = ring.kept.front().map_or(ring.last + 1, |event| event.id);
        let gap = after + 1 < oldest || after > ring.last;
        let missed =
            if gap { Vec::new() } else { ring.kept.iter().filter(|e| e.id > after).cloned().collect() };
        Subscription { missed, gap, live }
    }
}
