//! One subscription: passes messages and gaps on until the subscriber is gone, the bus is closed or
//! the server withdraws the permission.

use std::sync::Arc;

use async_nats::Subscriber;
use futures_util::StreamExt;
use tidegate_bus::{BusMessage, SubjectFilter, SubscriptionSender};
use tokio::sync::watch;

use crate::denials::DeniedUse;
use crate::link::{Link, LinkStatus};

pub(crate) async fn forward(
    link: Arc<Link>,
    mut status: watch::Receiver<LinkStatus>,
    mut known_gaps: u64,
    filter: SubjectFilter,
    mut messages: Subscriber,
    sender: SubscriptionSender,
) {
    loop {
        tokio::select! {
            () = sender.unsubscribed() => return,
            changed = status.changed() => {
                let now = *status.borrow_and_update();
                let is_denied = link.denials.contains(DeniedUse::Subscribe, filter.as_str());
                if changed.is_err() || now.is_closed || is_denied {
                    return;
                }
                if now.gaps != known_gaps {
                    known_gaps = now.gaps;
                    sender.gap();
                }
            }
            message = messages.next() => {
                let Some(message) = message else { return };
                match BusMessage::from_wire(message.subject.as_str(), message.payload) {
                    Some(message) => { sender.send(message); }
                    None => tracing::debug!(subject = message.subject.as_str(), "dropped a foreign message"),
                }
            }
        }
    }
}
