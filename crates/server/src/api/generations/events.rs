//! The changes of one generation as server-sent events: its status, its position in the queue and
//! its provider. A client that reconnects with `Last-Event-ID` gets what it missed. The stream ends
//! with the generation.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream::unfold;
use tidegate_core::{OperationId, Time};
use tidegate_dispatch::{Generation, GenerationChange, GenerationChanges, GenerationStatus, Generations};
use tidegate_store::Clock;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::super::HandlerResult;
use super::super::events::{COMMENT_EVERY, UNBUFFERED, last_event_id};
use super::find;
use crate::edge::query::Query;
use crate::state::SharedPartition;
use crate::wire::generation::{EventDetailsOut, GenerationEventOut};
use crate::wire::time::Timestamp;

/// How often the position in the queue and the progress are looked at, which change without an
/// event of the generation itself.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(crate) async fn stream(
    State(app): State<SharedPartition>,
    Path(text): Path<String>,
    headers: HeaderMap,
    mut query: Query,
) -> HandlerResult {
    let after = last_event_id(&headers, &mut query)?;
    query.finish()?;
    // Subscribed first: nothing that follows is missed.
    let generations = app.generations()?.clone();
    let changes = generations.changes(after);
    let one = find(&app, &text).await?;
    let mut look = interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stream = GenerationStream {
        id: one.id,
        generations,
        changes,
        look,
        shown: None,
        has_ended: false,
        clock: Arc::clone(&app.server.clock),
        stopping: app.server.stopping.clone(),
    };
    let stream = Sse::new(messages(stream)).keep_alive(KeepAlive::new().interval(COMMENT_EVERY).text(""));
    Ok((UNBUFFERED, stream).into_response())
}

/// What a client was shown last, as far as it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ShownState {
    status: GenerationStatus,
    provider: Option<String>,
    queue_position: Option<usize>,
    progress: Option<u8>,
}

impl ShownState {
    fn of(one: &Generation) -> Self {
        Self {
            status: one.status,
            provider: one.provider.clone(),
            queue_position: one.queue_position,
            progress: one.progress,
        }
    }
}

struct GenerationStream {
    id: OperationId,
    generations: Generations,
    changes: GenerationChanges,
    look: Interval,
    shown: Option<ShownState>,
    has_ended: bool,
    clock: Arc<dyn Clock>,
    stopping: CancellationToken,
}

/// What woke the stream.
enum StreamWake {
    Change(GenerationChange),
    Look,
    End,
}

impl GenerationStream {
    /// The next message; `None` at the end.
    async fn next(&mut self) -> Option<Message> {
        while !self.has_ended {
            let wake = tokio::select! {
                biased;
                () = self.stopping.cancelled() => StreamWake::End,
                change = self.changes.next() => change.map_or(StreamWake::End, StreamWake::Change),
                _ = self.look.tick() => StreamWake::Look,
            };
            let message = match wake {
                StreamWake::End => return None,
                StreamWake::Change(change) if change.id == self.id => self.on_change(&change).await,
                StreamWake::Change(_) => None,
                StreamWake::Look => self.on_look().await,
            };
            if message.is_some() {
                return message;
            }
        }
        None
    }

    async fn on_change(&mut self, change: &GenerationChange) -> Option<Message> {
        let one = self.generations.get(self.id).await.ok()?;
        self.has_ended = change.status.is_ended();
        let is_current = one.status == change.status;
        if is_current {
            self.shown = Some(ShownState::of(&one));
        }
        let message = message(change.id, change.status, change.at, is_current.then_some(&one))?;
        Some(message.id(change.event_id.to_string()))
    }

    /// Shows the generation if it is not as it was shown last.
    async fn on_look(&mut self) -> Option<Message> {
        let one = self.generations.get(self.id).await.ok()?;
        let state = ShownState::of(&one);
        if self.shown.as_ref() == Some(&state) {
            return None;
        }
        self.shown = Some(state);
        self.has_ended = one.status.is_ended();
        message(one.id, one.status, self.clock.now(), Some(&one))
    }
}

fn message(id: OperationId, status: GenerationStatus, at: Time, one: Option<&Generation>) -> Option<Message> {
    let details = one.map(EventDetailsOut::new);
    let event =
        GenerationEventOut { id: id.to_string(), status: status.as_str(), at: Timestamp(at), details };
    let data = serde_json::to_string(&event).ok()?;
    Some(Message::default().event("status").data(data))
}

fn messages(stream: GenerationStream) -> impl Stream<Item = Result<Message, Infallible>> {
    unfold(stream, |mut stream| async move {
        let message = stream.next().await?;
        Some((Ok(message), stream))
    })
}
