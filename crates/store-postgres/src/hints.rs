//! Hints between processes through LISTEN and NOTIFY: one connection of a store receives all of its
//! channels. A slow listener loses hints, and a broken connection loses those in between; no sender
//! waits.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgListener, PgNotification};
use tidegate_core::bounds::HINTS_WAITING_MAX;
use tidegate_core::fingerprint::Fingerprint;
use tidegate_store::{Error, Result, StoreErrorKind};
use tokio::sync::{mpsc, oneshot};

use crate::checks;
use crate::errors::unreachable;
use crate::session::Sessions;

/// The longest hint that the server accepts, in bytes.
const HINT_LEN_MAX: usize = 7_999;
/// The pause between two attempts to listen again.
const PAUSE: Duration = Duration::from_millis(500);

/// A hint may be lost, so the commit does not wait for the disk.
pub(crate) const NOTIFY: &str =
    "SELECT 1 FROM (SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)) AS sent";

/// The channel of a topic: a name that the server accepts, whatever the topic is.
pub(crate) fn channel(schema: &str, topic: &str) -> String {
    let topic = Fingerprint::of("hints").part(schema.as_bytes()).part(topic.as_bytes()).short();
    format!("tidegate_{topic:032x}")
}

/// Checks that the server accepts a hint.
pub(crate) fn check_hint(hint: &str) -> Result<()> {
    checks::name_can_be_kept(hint)?;
    if hint.len() > HINT_LEN_MAX {
        let message = format!("a hint of {} bytes is too long; the most is {HINT_LEN_MAX}", hint.len());
        return Err(Error::new(StoreErrorKind::Invalid, message));
    }
    Ok(())
}

type SubscribeRequest = (String, mpsc::Sender<String>, oneshot::Sender<Result<()>>);

/// The listeners of this store.
pub(crate) struct Subscriber {
    sessions: Sessions,
    task: Mutex<Option<mpsc::UnboundedSender<SubscribeRequest>>>,
}

impl Subscriber {
    pub(crate) fn new(sessions: Sessions) -> Self {
        Self { sessions, task: Mutex::default() }
    }

    /// Starts to listen to a channel.
    pub(crate) async fn listen(&self, channel: String) -> Result<mpsc::Receiver<String>> {
        let (ear, hints) = mpsc::channel(HINTS_WAITING_MAX);
        let (answer, answered) = oneshot::channel();
        let mut asked = (channel, ear, answer);
        loop {
            let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let task = match task.filter(|task| !task.is_closed()) {
                Some(task) => task,
                None => self.start().await?,
            };
            match task.send(asked) {
                Ok(()) => break,
                Err(back) => asked = back.0,
            }
        }
        let gone = || {
            Error::new(
                StoreErrorKind::Unavailable,
                format!("the listener of {} has ended", self.sessions.place),
            )
        };
        answered.await.unwrap_or_else(|_| Err(gone()))?;
        Ok(hints)
    }

    async fn start(&self) -> Result<mpsc::UnboundedSender<SubscribeRequest>> {
        let listener = PgListener::connect_with(&self.sessions.listener_pool()).await;
        let listener = listener.map_err(|cause| unreachable(&self.sessions.place, &cause))?;
        let (task, asked) = mpsc::unbounded_channel();
        let hearing =
            SubscriberTask { listener, listeners: HashMap::new(), place: self.sessions.place.to_string() };
        tokio::spawn(hearing.run(asked));
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.clone());
        Ok(task)
    }
}

struct SubscriberTask {
    listener: PgListener,
    listeners: HashMap<String, Vec<mpsc::Sender<String>>>,
    place: String,
}

impl SubscriberTask {
    /// Runs until the store is dropped.
    async fn run(mut self, mut asked: mpsc::UnboundedReceiver<SubscribeRequest>) {
        loop {
            tokio::select! {
                heard = self.listener.recv() => match heard {
                    Ok(hint) => self.pass_on(&hint),
                    // The listener reconnects by itself; an unreachable server is given a moment.
                    Err(_) => tokio::time::sleep(PAUSE).await,
                },
                wish = asked.recv() => match wish {
                    Some((channel, ear, answer)) => drop(answer.send(self.add(channel, ear).await)),
                    None => return,
                },
            }
        }
    }

    async fn add(&mut self, channel: String, ear: mpsc::Sender<String>) -> Result<()> {
        if !self.listeners.contains_key(&channel) {
            let listening = self.listener.listen(&channel).await;
            listening.map_err(|cause| unreachable(&self.place, &cause))?;
        }
        let ears = self.listeners.entry(channel).or_default();
        ears.retain(|ear| !ear.is_closed());
        ears.push(ear);
        Ok(())
    }

    fn pass_on(&mut self, hint: &PgNotification) {
        let Some(ears) = self.listeners.get_mut(hint.channel()) else { return };
        ears.retain(|ear| !ear.is_closed());
        for ear in ears {
            // A listener whose queue is full loses this hint.
            drop(ear.try_send(hint.payload().to_owned()));
        }
    }
}
