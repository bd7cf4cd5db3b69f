//! A bus within one process. A message is in the subscribers' queues when `publish` returns.

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use crate::{
    Bus, BusError, BusFuture, BusMessage, BusSubscription, Delivery, Subject, SubjectFilter,
    SubscriptionSender, check_payload,
};

/// How often a publisher lets other tasks run before it adds to a queue that is half full: a burst
/// is then read while it is written, and a subscriber that does not read delays no one for long.
const YIELDS_MAX: usize = 64;

/// A bus within one process. Clones are the same bus.
#[derive(Clone, Debug, Default)]
pub struct InProcessBus(Arc<RwLock<Subscribers>>);

#[derive(Debug, Default)]
struct Subscribers {
    senders: Vec<(SubjectFilter, SubscriptionSender)>,
    is_closed: bool,
}

impl InProcessBus {
    /// Creates a bus without subscribers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives subscribers that are behind a chance to read.
    async fn wait_for_readers(&self, subject: &Subject) {
        for _ in 0..YIELDS_MAX {
            if !self.is_crowded(subject) {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    fn is_crowded(&self, subject: &Subject) -> bool {
        let subscribers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut matching = subscribers.senders.iter().filter(|(filter, _)| filter.matches(subject));
        matching.any(|(_, sender)| sender.is_half_full() && !sender.is_unsubscribed())
    }

    fn publish_now(&self, subject: &Subject, payload: &Bytes) -> Result<Delivery, BusError> {
        check_payload(payload)?;
        let subscribers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if subscribers.is_closed {
            return Err(BusError::closed());
        }
        let mut delivery = Delivery::NoSubscriber;
        for (_, sender) in subscribers.senders.iter().filter(|(filter, _)| filter.matches(subject)) {
            if sender.send(BusMessage { subject: subject.clone(), payload: payload.clone() }) {
                delivery = Delivery::Received;
            }
        }
        Ok(delivery)
    }

    fn subscribe_now(&self, filter: &SubjectFilter) -> Result<BusSubscription, BusError> {
        let mut subscribers = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if subscribers.is_closed {
            return Err(BusError::closed());
        }
        subscribers.senders.retain(|(_, sender)| !sender.is_unsubscribed());
        let (sender, subscription) = BusSubscription::with_sender();
        subscribers.senders.push((filter.clone(), sender));
        Ok(subscription)
    }
}

impl Bus for InProcessBus {
    fn publish<'a>(&'a self, subject: &'a Subject, payload: Bytes) -> BusFuture<'a, Delivery> {
        Box::pin(async move {
            self.wait_for_readers(subject).await;
            self.publish_now(subject, &payload)
        })
    }

    fn subscribe<'a>(&'a self, filter: &'a SubjectFilter) -> BusFuture<'a, BusSubscription> {
        Box::pin(async move { self.subscribe_now(filter) })
    }

    fn close(&self) {
        let mut subscribers = self.0.write().unwrap_or_else(PoisonError::into_inner);
        subscribers.is_closed = true;
        subscribers.senders.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BusEvent, FilterToken};

    /// HYD-12, HYD-23: a clone is the same bus, and a dropped subscription is no receiver.
    #[tokio::test]
    async fn hyd_12_hyd_23_modules_reach_each_other_and_notice_absence() {
        let (asking, source) = {
            let bus = InProcessBus::new();
            (bus.clone(), bus)
        };
        let question = Subject::new(["tg", "unknown"]).unwrap();
        let mut questions = source.subscribe(&(&question).into()).await.unwrap();
        assert_eq!(asking.publish(&question, Bytes::from_static(b"7")).await.unwrap(), Delivery::Received);
        assert!(matches!(questions.next().await, Some(BusEvent::Message(message)) if message.payload == "7"));
        drop(questions);
        assert_eq!(asking.publish(&question, Bytes::new()).await.unwrap(), Delivery::NoSubscriber);
    }

    /// HYD-24, HYD-19: a burst that is longer than a queue is read while it is written, so nothing
    /// is lost and nothing has to be asked again.
    #[tokio::test]
    async fn hyd_24_a_burst_is_read_while_it_is_written() {
        let bus = InProcessBus::new();
        let subject = Subject::new(["burst"]).unwrap();
        let filter = SubjectFilter::new([FilterToken::Rest]).unwrap();
        let mut subscription = bus.subscribe(&filter).await.unwrap();
        let messages = 3 * tidegate_core::bounds::BUS_QUEUE_LEN_MAX;
        let writers: Vec<_> = (0..messages)
            .map(|_| {
                let (bus, subject) = (bus.clone(), subject.clone());
                tokio::spawn(async move { bus.publish(&subject, Bytes::from_static(b"x")).await })
            })
            .collect();
        for _ in 0..messages {
            assert!(matches!(subscription.next().await, Some(BusEvent::Message(_))), "a gap");
        }
        for writer in writers {
            assert_eq!(writer.await.unwrap().unwrap(), Delivery::Received);
        }
    }
}
