//! What happens to the connection: it is lost and comes back, the server forbids something, the
//! driver drops messages, the bus is closed. Subscriptions follow its status.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_nats::{Client, Event, ServerError, Subscriber};
use futures_util::StreamExt;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::CALL_TIMEOUT;
use crate::denials::{Denials, DeniedUse, parse_denial};
use crate::inbox::{EchoOutcome, Inbox};

/// What subscriptions follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinkStatus {
    /// How often messages may have been lost.
    pub(crate) gaps: u64,
    /// How often something was forbidden.
    pub(crate) denials: u64,
    pub(crate) is_closed: bool,
}

/// The state of a connection, shared by its tasks.
pub(crate) struct Link {
    pub(crate) inbox: Inbox,
    pub(crate) denials: Denials,
    status: watch::Sender<LinkStatus>,
    is_lost: AtomicBool,
    reconnected: Notify,
}

impl Link {
    pub(crate) fn new() -> Self {
        Self {
            inbox: Inbox::new(),
            denials: Denials::default(),
            status: watch::Sender::new(LinkStatus::default()),
            is_lost: AtomicBool::new(false),
            reconnected: Notify::new(),
        }
    }

    /// Handles what the driver reports.
    pub(crate) fn handle(&self, event: Event) {
        match event {
            Event::Disconnected => {
                // The driver reports each attempt that fails; the loss is one.
                if !self.is_lost.swap(true, Ordering::AcqRel) && !self.is_closed() {
                    tracing::warn!("the connection to NATS is lost; connecting again");
                }
                self.inbox.lose_all();
            }
            Event::Connected => self.handle_connected(),
            Event::SlowConsumer(_) | Event::ServerError(ServerError::SlowConsumer(_)) => self.count_gap(),
            Event::ServerError(ServerError::Other(error)) => self.handle_error(&error),
            _ => {}
        }
    }

    /// The first connection is no reconnect.
    fn handle_connected(&self) {
        if self.is_lost.swap(false, Ordering::AcqRel) {
            self.reconnected.notify_one();
        }
    }

    fn handle_error(&self, error: &str) {
        let Some((used, subject)) = parse_denial(error) else {
            tracing::warn!(error, "the NATS server reports an error");
            return;
        };
        tracing::error!(subject, "the NATS server does not allow this user to {used} this subject");
        if subject.starts_with(self.inbox.name()) {
            self.denials.insert(used, self.inbox.name());
            self.inbox.lose_all();
        } else {
            self.denials.insert(used, subject);
        }
        self.status.send_modify(|status| status.denials += u64::from(used == DeniedUse::Subscribe));
    }

    pub(crate) fn status(&self) -> watch::Receiver<LinkStatus> {
        self.status.subscribe()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.status.borrow().is_closed
    }

    pub(crate) fn close(&self) {
        self.status.send_modify(|status| status.is_closed = true);
        self.inbox.lose_all();
    }

    fn count_gap(&self) {
        self.status.send_modify(|status| status.gaps += 1);
    }

    async fn closed(&self) {
        // The sender lives as long as the link.
        let _ = self.status().wait_for(|status| status.is_closed).await;
    }
}

/// Passes on what arrives in the inbox, until the bus is closed.
pub(crate) async fn receive_replies(link: Arc<Link>, mut replies: Subscriber) {
    loop {
        tokio::select! {
            () = link.closed() => return,
            reply = replies.next() => match reply {
                Some(reply) => link.inbox.receive(&reply),
                None => return,
            },
        }
    }
}

/// Reports a gap after each reconnect, once the server has confirmed every subscription again. Ends
/// the connection when the bus is closed.
pub(crate) async fn confirm_reconnects(link: Arc<Link>, client: Client) {
    loop {
        tokio::select! {
            () = link.closed() => break,
            () = link.reconnected.notified() => {}
        }
        // The driver subscribes again before it sends anything else, so an echo confirms it.
        loop {
            match timeout(CALL_TIMEOUT, link.inbox.expect_echo().wait(&client)).await {
                Ok(EchoOutcome::Echo | EchoOutcome::NoResponders) => {
                    tracing::info!("NATS is connected again");
                    link.count_gap();
                    break;
                }
                // Another reconnect will follow, or the bus is closed.
                Ok(EchoOutcome::Lost) => break,
                Err(_) => {}
            }
        }
    }
    if client.drain().await.is_err() {
        tracing::debug!("the NATS connection had ended before the bus was closed");
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Mutex, PoisonError};

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct LogText(Arc<Mutex<Vec<u8>>>);

    impl Write for LogText {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for LogText {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    /// HYD-23: a loss is one warning, however often it is reported until the connection is back;
    /// the end of a bus that was closed is none.
    #[test]
    fn hyd_23_the_loss_of_the_bus_is_one_warning() {
        let log = LogText::default();
        let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            let link = Link::new();
            for event in [Event::Disconnected, Event::Disconnected, Event::Connected, Event::Disconnected] {
                link.handle(event);
            }
            link.handle(Event::Connected);
            link.close();
            link.handle(Event::Disconnected);
        });
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.matches("WARN").count(), 2, "{text}");
    }
}
