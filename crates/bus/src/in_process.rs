//! A bus within one process. A message is in the subscribers' queues when `publish` returns.

use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use crate::{
    Bus, BusError, BusFuture, BusMessage, BusSubscription, Delivery, Subject, SubjectFilter,
    SubscriptionSender, check_payload,
};

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
        Box::pin(async move { self.publish_now(subject, &payload) })
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
    use crate::BusEvent;

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
}
