//! Changes as server-sent events. A client that reconnects with `Last-Event-ID` gets the events it
//! missed; one that missed more than are kept gets `reset` and should reload. A stream opens with
//! the id that it starts after, so that a client can resume before its first event too. A single
//! node streams the events of its engine; [`routing::events`](crate::routing::events) those of a
//! cluster.

mod filter;
mod position;
mod send;
mod text;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use axum::response::sse::Event as Message;
use futures_util::StreamExt;
use futures_util::stream::{once, unfold};
use tidegate::Subscription;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

pub(crate) use filter::EventFilter;
pub(crate) use position::{ClusterPosition, LastEvent, NodeKey, NodePosition};
pub(crate) use send::{StreamItem, respond};
pub(crate) use text::{EngineLookup, EventRenderer, EventText};

use super::HandlerResult;
use crate::edge::query::{Query, bad_parameter};
use crate::state::SharedPartition;

const LAST: HeaderName = HeaderName::from_static("last-event-id");
/// Tells a reverse proxy to forward each event at once.
pub(crate) const UNBUFFERED: [(&str, &str); 1] = [("x-accel-buffering", "no")];
/// How often a comment is sent, so that no proxy closes an idle connection.
pub(crate) const COMMENT_EVERY: Duration = Duration::from_secs(15);

pub(super) async fn stream(
    State(app): State<SharedPartition>,
    headers: HeaderMap,
    mut query: Query,
) -> HandlerResult {
    let after = LastEvent::read(&headers, &mut query)?.map(|last| match last {
        LastEvent::Number(number) => number,
        // What followed in that cluster is not known here: before every event of this engine.
        LastEvent::Cluster(_) => 0,
    });
    let wanted = EventFilter::read(&mut query)?;
    query.finish()?;
    let engine = app.engine.clone();
    let find: EngineLookup = Arc::new(move |_| Some(engine.clone()));
    let renderer = EventRenderer { wanted, find };
    let Subscription { missed, gap, position, live } = app.engine.events(after);
    let queue = EventQueue::new(missed, live, app.server.stopping.clone());
    let items = unfold((queue, renderer), |(mut queue, renderer)| async move {
        let item = match queue.next().await? {
            QueueItem::Gap => StreamItem::Message(reset()),
            QueueItem::Event(event) => {
                let id = event.id.to_string();
                match renderer.render(&event).await {
                    Some(text) => StreamItem::Message(text.into_message(id)),
                    None => StreamItem::Position(id),
                }
            }
        };
        Some((item, (queue, renderer)))
    });
    let opening = StreamItem::Message(opening(position.to_string(), gap));
    Ok(respond(once(async { opening }).chain(items)))
}

/// The id of the event that a client saw last: in a header, or in the query.
fn last_event_text(headers: &HeaderMap, query: &mut Query) -> Option<String> {
    let from_query = query.take("last_event_id");
    let last = headers.get(&LAST).and_then(|id| id.to_str().ok()).map(str::to_owned).or(from_query);
    last.filter(|id| !id.is_empty())
}

fn wrong_last_event() -> crate::error::Error {
    bad_parameter("last_event_id", "must be the id of an event")
}

/// The number of the event that a client saw last, where events are numbered.
pub(crate) fn last_event_id(headers: &HeaderMap, query: &mut Query) -> crate::error::Result<Option<u64>> {
    let last = last_event_text(headers, query);
    last.map(|id| id.parse::<u64>().map_err(|_| wrong_last_event())).transpose()
}

/// The first message of a stream: where it starts, which is no event to the client, unless it
/// missed some. Then the id comes with the `reset`, not before it.
pub(crate) fn opening(position: String, has_gap: bool) -> Message {
    let message = if has_gap { reset() } else { Message::default() };
    message.id(position)
}

/// The message that tells the client to reload, because it missed events.
pub(crate) fn reset() -> Message {
    Message::default().event("reset").data("{}")
}

/// The events for one client: those it missed, then the live ones.
pub(crate) struct EventQueue<T> {
    missed: VecDeque<T>,
    live: Receiver<T>,
    end: CancellationToken,
}

/// What a queue of events has next.
pub(crate) enum QueueItem<T> {
    Event(T),
    /// Events are missing.
    Gap,
}

impl<T: Clone> EventQueue<T> {
    /// A queue that ends with `end`.
    pub(crate) fn new(missed: Vec<T>, live: Receiver<T>, end: CancellationToken) -> Self {
        Self { missed: missed.into(), live, end }
    }

    /// Waits for the next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<QueueItem<T>> {
        if let Some(event) = self.missed.pop_front() {
            return Some(QueueItem::Event(event));
        }
        let event = tokio::select! {
            // First, so that everything before the end is sent.
            biased;
            event = self.live.recv() => event,
            () = self.end.cancelled() => return None,
        };
        match event {
            Ok(event) => Some(QueueItem::Event(event)),
            Err(RecvError::Lagged(_)) => Some(QueueItem::Gap),
            Err(RecvError::Closed) => None,
        }
    }
}
