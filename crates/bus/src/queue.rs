//! The queue between a bus and a subscriber. It is bounded in messages and bytes and never blocks
//! the bus: when it is full, messages are dropped until the subscriber has read all of it, and then
//! the subscriber finds one gap. So a slow subscriber finds one gap for each full queue at most.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::bounds::{BUS_QUEUE_BYTES_MAX, BUS_QUEUE_LEN_MAX};
use tokio::sync::Notify;

use crate::{BusEvent, BusMessage};

/// A subscription, confirmed by the bus. Dropping it unsubscribes.
pub struct BusSubscription(Arc<Queue>);

/// The bus's end of a subscription. Dropping it ends the subscription after what is queued.
pub struct SubscriptionSender(Arc<Queue>);

#[derive(Default)]
struct Queue {
    state: Mutex<QueueState>,
    /// Wakes the subscriber: an event arrived, or no more will.
    arrived: Notify,
    /// Wakes the bus: the subscriber is gone.
    unsubscribed: Notify,
}

#[derive(Default)]
struct QueueState {
    events: VecDeque<BusEvent>,
    /// The payloads and subjects queued.
    bytes: usize,
    /// Whether messages are dropped, until the queue is empty.
    is_lagging: bool,
    has_ended: bool,
    is_unsubscribed: bool,
}

impl BusSubscription {
    /// Creates a subscription and the sender that feeds it, for implementations of a bus.
    #[must_use]
    pub fn with_sender() -> (SubscriptionSender, Self) {
        let queue = Arc::new(Queue::default());
        (SubscriptionSender(Arc::clone(&queue)), Self(queue))
    }

    /// Waits for the next event; `None` once the bus is closed and everything queued was read. May
    /// be cancelled without losing an event.
    pub async fn next(&mut self) -> Option<BusEvent> {
        loop {
            {
                let mut state = self.0.state();
                if let Some(event) = state.pop() {
                    return Some(event);
                }
                if state.has_ended {
                    return None;
                }
            }
            self.0.arrived.notified().await;
        }
    }

    /// How many events have arrived and were not read yet.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.0.state().events.len()
    }

    /// Returns the next event if it has arrived already.
    pub fn try_next(&mut self) -> Option<BusEvent> {
        self.0.state().pop()
    }
}

impl SubscriptionSender {
    /// Queues a message. When the queue is full, the message is dropped and a gap is queued.
    /// Returns whether the subscriber is still there.
    pub fn send(&self, message: BusMessage) -> bool {
        let mut state = self.0.state();
        let is_there = !state.is_unsubscribed;
        if is_there && state.push(message) {
            drop(state);
            self.0.arrived.notify_one();
        }
        is_there
    }

    /// Queues a gap, unless one is last already.
    pub fn gap(&self) {
        let mut state = self.0.state();
        if state.push_gap() {
            drop(state);
            self.0.arrived.notify_one();
        }
    }

    /// Whether the queue is at least half full.
    pub(crate) fn is_half_full(&self) -> bool {
        let state = self.0.state();
        state.events.len() >= BUS_QUEUE_LEN_MAX / 2 || state.bytes >= BUS_QUEUE_BYTES_MAX / 2
    }

    /// Whether the subscriber is gone.
    #[must_use]
    pub fn is_unsubscribed(&self) -> bool {
        self.0.state().is_unsubscribed
    }

    /// Resolves when the subscriber is gone. For one task at a time.
    pub async fn unsubscribed(&self) {
        while !self.is_unsubscribed() {
            self.0.unsubscribed.notified().await;
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    /// Returns whether anything was queued.
    fn push(&mut self, message: BusMessage) -> bool {
        if self.is_lagging {
            return false;
        }
        let bytes = size_of(&message);
        if self.events.len() >= BUS_QUEUE_LEN_MAX || self.bytes + bytes > BUS_QUEUE_BYTES_MAX {
            self.is_lagging = true;
            return self.push_gap();
        }
        self.bytes += bytes;
        self.events.push_back(BusEvent::Message(message));
        true
    }

    /// Returns whether a gap was queued.
    fn push_gap(&mut self) -> bool {
        let is_new = self.events.back() != Some(&BusEvent::Gap);
        if is_new {
            self.events.push_back(BusEvent::Gap);
        }
        is_new
    }

    fn pop(&mut self) -> Option<BusEvent> {
        let event = self.events.pop_front();
        if let Some(BusEvent::Message(message)) = &event {
            self.bytes -= size_of(message);
        }
        self.is_lagging &= !self.events.is_empty();
        event
    }
}

fn size_of(message: &BusMessage) -> usize {
    message.payload.len() + message.subject.as_str().len()
}

impl Drop for BusSubscription {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_unsubscribed = true;
        state.events = VecDeque::new();
        state.bytes = 0;
        drop(state);
        self.0.unsubscribed.notify_one();
    }
}

impl Drop for SubscriptionSender {
    fn drop(&mut self) {
        self.0.state().has_ended = true;
        self.0.arrived.notify_one();
    }
}

impl fmt::Debug for BusSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusSubscription").field("queued", &self.0.state().events.len()).finish()
    }
}

impl fmt::Debug for SubscriptionSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionSender").field("queued", &self.0.state().events.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::Subject;

    fn message(payload: impl Into<Bytes>) -> BusMessage {
        BusMessage { subject: Subject::new(["a"]).unwrap(), payload: payload.into() }
    }

    /// HYD-24: a slow subscriber finds one gap for each queue it reads, not one for each message.
    #[test]
    fn lag_is_one_gap_where_messages_were_lost() {
        let (sender, mut subscription) = BusSubscription::with_sender();
        for _ in 0..2 {
            for _ in 0..BUS_QUEUE_LEN_MAX + 100 {
                assert!(sender.send(message("x")));
            }
            for _ in 0..BUS_QUEUE_LEN_MAX {
                assert_eq!(subscription.try_next(), Some(BusEvent::Message(message("x"))));
                sender.send(message("dropped"));
            }
            assert_eq!(subscription.try_next(), Some(BusEvent::Gap));
            assert_eq!(subscription.try_next(), None);
        }
    }

    /// HYD-26: the queue is bounded in bytes too.
    #[test]
    fn large_messages_fill_the_queue() {
        let (sender, mut subscription) = BusSubscription::with_sender();
        let large = Bytes::from(vec![0; BUS_QUEUE_BYTES_MAX / 4]);
        for _ in 0..10 {
            sender.send(message(large.clone()));
        }
        let mut events = Vec::new();
        while let Some(event) = subscription.try_next() {
            events.push(event == BusEvent::Gap);
        }
        assert_eq!(events, [false, false, false, true]);
    }

    #[test]
    fn gaps_in_a_row_are_one() {
        let (sender, mut subscription) = BusSubscription::with_sender();
        sender.gap();
        sender.gap();
        sender.send(message("x"));
        assert_eq!(subscription.try_next(), Some(BusEvent::Gap));
        assert_eq!(subscription.try_next(), Some(BusEvent::Message(message("x"))));
    }

    #[tokio::test]
    async fn an_ended_subscription_is_read_to_its_end() {
        let (sender, mut subscription) = BusSubscription::with_sender();
        sender.send(message("x"));
        drop(sender);
        assert_eq!(subscription.next().await, Some(BusEvent::Message(message("x"))));
        assert_eq!(subscription.next().await, None);
    }

    #[tokio::test]
    async fn a_waiting_subscriber_wakes_for_a_message_a_gap_and_the_end() {
        let (sender, mut subscription) = BusSubscription::with_sender();
        let read = tokio::spawn(async move {
            let events = (subscription.next().await, subscription.next().await);
            (events, subscription.next().await)
        });
        tokio::task::yield_now().await;
        sender.send(message("x"));
        tokio::task::yield_now().await;
        sender.gap();
        tokio::task::yield_now().await;
        drop(sender);
        let expected = ((Some(BusEvent::Message(message("x"))), Some(BusEvent::Gap)), None);
        assert_eq!(read.await.unwrap(), expected);
    }

    #[tokio::test]
    async fn a_sender_learns_that_the_subscriber_is_gone() {
        let (sender, subscription) = BusSubscription::with_sender();
        let waiting = tokio::spawn(async move {
            sender.unsubscribed().await;
            sender
        });
        tokio::task::yield_now().await;
        drop(subscription);
        let sender = waiting.await.unwrap();
        assert!(!sender.send(message("x")));
    }
}
