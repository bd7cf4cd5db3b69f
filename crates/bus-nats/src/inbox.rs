//! The inbox of a connection: one subscription to which the server's answers and this connection's
//! own echoes return, in their order.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_nats::{Client, Message, StatusCode};
use bytes::Bytes;
use tokio::sync::oneshot;

/// What came back first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EchoOutcome {
    /// The echo: everything sent before it was processed by the server.
    Echo,
    /// The server's answer to a message that no one subscribes to.
    NoResponders,
    /// Neither: the connection was lost, or the inbox may not be used.
    Lost,
}

/// The inbox, and who waits for an echo.
pub(crate) struct Inbox {
    name: String,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<EchoOutcome>>>,
}

/// An echo that is expected. Dropping it forgets it.
pub(crate) struct ExpectedEcho<'a> {
    inbox: &'a Inbox,
    number: u64,
    outcome: oneshot::Receiver<EchoOutcome>,
}

impl Inbox {
    /// Creates an inbox with a name that no other connection has.
    pub(crate) fn new() -> Self {
        let random = RandomState::new();
        let name = format!("_INBOX.tidegate{:016x}{:016x}", random.hash_one(0), random.hash_one(1));
        Self { name, next: AtomicU64::new(0), waiting: Mutex::default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The subject to subscribe to.
    pub(crate) fn filter(&self) -> String {
        format!("{}.*", self.name)
    }

    /// Registers an echo, before anything that it follows is sent.
    pub(crate) fn expect_echo(&self) -> ExpectedEcho<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, outcome) = oneshot::channel();
        self.waiting().insert(number, sender);
        ExpectedEcho { inbox: self, number, outcome }
    }

    /// Passes a message of the inbox to who waits for it. The first one counts.
    pub(crate) fn receive(&self, message: &Message) {
        let number = message.subject.rsplit('.').next().and_then(|number| number.parse().ok());
        if let Some(waiter) = number.and_then(|number: u64| self.waiting().remove(&number)) {
            let is_absent = message.status == Some(StatusCode::NO_RESPONDERS);
            let _ = waiter.send(if is_absent { EchoOutcome::NoResponders } else { EchoOutcome::Echo });
        }
    }

    /// Ends every wait: nothing that was sent before comes back.
    pub(crate) fn lose_all(&self) {
        self.waiting().clear();
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<EchoOutcome>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ExpectedEcho<'_> {
    /// The subject that the echo returns to.
    pub(crate) fn subject(&self) -> String {
        format!("{}.{}", self.inbox.name, self.number)
    }

    /// Sends the echo and waits for what comes back.
    pub(crate) async fn wait(mut self, client: &Client) -> EchoOutcome {
        if client.publish(self.subject(), Bytes::new()).await.is_err() {
            return EchoOutcome::Lost;
        }
        (&mut self.outcome).await.unwrap_or(EchoOutcome::Lost)
    }
}

impl Drop for ExpectedEcho<'_> {
    fn drop(&mut self) {
        self.inbox.waiting().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(subject: String, status: Option<StatusCode>) -> Message {
        Message {
            subject: subject.into(),
            reply: None,
            payload: Bytes::new(),
            headers: None,
            status,
            description: None,
            length: 0,
        }
    }

    #[test]
    fn the_first_reply_counts_and_nothing_is_left() {
        let inbox = Inbox::new();
        let (mut absent, mut echoed) = (inbox.expect_echo(), inbox.expect_echo());
        inbox.receive(&message(absent.subject(), Some(StatusCode::NO_RESPONDERS)));
        inbox.receive(&message(absent.subject(), None));
        inbox.receive(&message(echoed.subject(), None));
        inbox.receive(&message("foreign".to_owned(), None));
        assert_eq!(absent.outcome.try_recv(), Ok(EchoOutcome::NoResponders));
        assert_eq!(echoed.outcome.try_recv(), Ok(EchoOutcome::Echo));
        assert!(inbox.waiting().is_empty());
    }

    /// HYD-26: a caller that gives up leaves no waiter behind.
    #[test]
    fn a_forgotten_echo_leaves_no_waiter() {
        let inbox = Inbox::new();
        drop(inbox.expect_echo());
        assert!(inbox.waiting().is_empty());
        let mut lost = inbox.expect_echo();
        inbox.lose_all();
        assert!(lost.outcome.try_recv().is_err());
    }
}
