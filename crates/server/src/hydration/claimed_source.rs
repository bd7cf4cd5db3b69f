//! A source that several nodes have: of those that receive a question one answers it, and while one
//! of them reads an entity the others do not, however often it is asked for. The node that reads
//! keeps a window open in the store. When it dies the window closes, and those that still want the
//! entity ask again.

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::shared::window::OpenWindowOutcome;
use tidegate_hydration::{
    ANSWER_REUSE, EntityQuestion, EntitySource, Hydrator, SourceAnswer, SourceError, SourceFuture,
};
use tidegate_store::SharedState;
use tokio::time::{Instant, sleep, timeout};

/// How long a question stays claimed: longer than any bus takes to deliver it to the others.
const CLAIM_TTL: Duration = Duration::from_secs(10);
/// How long the store may take; then every node answers.
const STORE_TIMEOUT: Duration = Duration::from_millis(500);
/// The shortest time between two heartbeats of a read.
const HEARTBEAT_MIN: Duration = Duration::from_millis(300);
/// Most heartbeats of a read.
const HEARTBEATS_MAX: u32 = 200;
/// Heartbeats after which a read without them is over.
const HEARTBEATS_LOST: u32 = 3;
/// How often a node that wants an entity looks whether another node still reads it.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long an answer may take from the node that read to the others.
const ANSWER_GRACE: Duration = Duration::from_millis(50);
/// How long a failed read counts for all nodes: they look more often than that.
const FAILURE_TTL: Duration = Duration::from_secs(1);
/// Closes a window.
const CLOSED: Duration = Duration::from_millis(1);

/// What a node does about an entity, as the store compares it. Looking claims nothing; each
/// heartbeat of a read raises its level.
const LOOKING: u8 = 0;
const READING: u8 = 1;
const FAILED: u8 = 254;
const ENDED: u8 = 255;

/// Which node is to read an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadTurn {
    This,
    Other,
    /// Another node has read a moment ago, and failed.
    Failed,
}

pub(super) struct ClaimedSource {
    source: Arc<dyn EntitySource>,
    store: Arc<dyn SharedState>,
    /// Who asks in this process.
    hydrator: Hydrator,
    /// How long a read may take.
    window: Duration,
    heartbeat: Duration,
}

impl ClaimedSource {
    pub(super) fn new(
        source: Arc<dyn EntitySource>,
        store: Arc<dyn SharedState>,
        hydrator: Hydrator,
        window: Duration,
    ) -> Self {
        let heartbeat = HEARTBEAT_MIN.max(window / HEARTBEATS_MAX);
        Self { source, store, hydrator, window, heartbeat }
    }

    async fn load_once(&self, question: &EntityQuestion) -> Result<SourceAnswer, SourceError> {
        let key = read_key(question);
        match self.turn(&key, READING, self.heartbeat * HEARTBEATS_LOST).await {
            ReadTurn::This if self.is_claimed_elsewhere(question).await => {
                self.open(&key, ENDED, CLOSED).await;
                Ok(SourceAnswer::Later)
            }
            ReadTurn::This => self.read(&key, question).await,
            ReadTurn::Other => {
                self.follow(&key, question).await;
                Ok(SourceAnswer::Later)
            }
            ReadTurn::Failed => Err("another node could not read the entity; its log says why".into()),
        }
    }

    async fn turn(&self, key: &str, level: u8, ttl: Duration) -> ReadTurn {
        match self.open(key, level, ttl).await {
            Some(OpenWindowOutcome::Wait(window)) if window.level == FAILED => ReadTurn::Failed,
            Some(OpenWindowOutcome::Wait(_)) => ReadTurn::Other,
            Some(OpenWindowOutcome::Ask(_)) | None => ReadTurn::This,
        }
    }

    /// Waits for the read of another node as long as anyone here wants the entity. If it ended
    /// without an answer that counts here, because it failed, because that node died, or because it
    /// had begun before anyone here asked, the entity is asked for again.
    async fn follow(&self, key: &str, question: &EntityQuestion) {
        let (entity, deadline) = (&question.key, Instant::now() + self.window);
        while self.hydrator.is_awaited(entity) && Instant::now() < deadline {
            sleep(LOOK_EVERY).await;
            if self.turn(key, LOOKING, CLOSED).await != ReadTurn::Other {
                // Its answer may be on its way.
                sleep(ANSWER_GRACE).await;
                return self.hydrator.ask_again(entity);
            }
        }
    }

    /// Whether another node answers, or has answered, this very question: one of them may be late
    /// to receive it.
    async fn is_claimed_elsewhere(&self, question: &EntityQuestion) -> bool {
        let tenant = question.key.tenant().as_bytes();
        let id = Fingerprint::of("hydration answer").part(tenant);
        let id = hex(&id.part(question.correlation_id.as_str().as_bytes()).finish());
        matches!(self.open(&id, READING, CLAIM_TTL).await, Some(OpenWindowOutcome::Wait(_)))
    }

    /// Reads, and lets the other nodes know for as long as it takes, and how it ended.
    async fn read(&self, key: &str, question: &EntityQuestion) -> Result<SourceAnswer, SourceError> {
        let answer = tokio::select! {
            answer = self.source.load(question) => answer,
            never = self.keep_open(key) => match never {},
        };
        let (level, ttl) = match &answer {
            // Until then this node gives the same answer again.
            Ok(SourceAnswer::Found { .. }) => (ENDED, ANSWER_REUSE),
            Ok(SourceAnswer::NotFound { .. } | SourceAnswer::Later) => (ENDED, CLOSED),
            Err(_) => (FAILED, FAILURE_TTL),
        };
        self.open(key, level, ttl).await;
        answer
    }

    async fn keep_open(&self, key: &str) -> Infallible {
        let mut level = READING;
        loop {
            sleep(self.heartbeat).await;
            level = level.saturating_add(1).min(FAILED - 1);
            self.open(key, level, self.heartbeat * HEARTBEATS_LOST).await;
        }
    }

    async fn open(&self, key: &str, level: u8, ttl: Duration) -> Option<OpenWindowOutcome> {
        timeout(STORE_TIMEOUT, self.store.open_window(key, level, ttl)).await.ok()?.ok()
    }
}

/// The window of a read: of an entity, and of how much is asked for.
fn read_key(question: &EntityQuestion) -> String {
    let (key, mode) = (&question.key, &question.mode);
    let parts = [key.tenant(), key.entity_type(), key.id(), mode.name()];
    let fields = mode.fields().into_iter().flatten().map(String::as_str);
    let read = Fingerprint::of("hydration read");
    hex(&parts.into_iter().chain(fields).fold(read, |hash, part| hash.part(part.as_bytes())).finish())
}

impl EntitySource for ClaimedSource {
    fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a> {
        Box::pin(self.load_once(question))
    }

    fn module(&self) -> Option<String> {
        self.source.module()
    }
}
