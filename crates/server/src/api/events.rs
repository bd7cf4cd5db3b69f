//! Changes as server-sent events. A client that reconnects with `Last-Event-ID` gets the events it
//! missed; one that missed more than are kept gets `reset` and should reload.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::Serialize;
use tidegate::{Change, Engine, Event, OperationView, Subscription};
use tidegate_core::OperationId;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::HandlerResult;
use crate::edge::query::{Query, bad_parameter};
use crate::state::{ServerState, SharedPartition};
use crate::wire::response::EndOut;
use crate::wire::time::Timestamp;

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
    let after = last_event_id(&headers, &mut query)?;
    let wanted = EventFilter::read(&mut query)?;
    query.finish()?;
    let engine = app.engine.clone();
    let find: EngineLookup = Arc::new(move |_| Some(engine.clone()));
    Ok(respond(app.engine.events(after), wanted, find, &app.server))
}

/// The event that a client saw last: in a header, or in the query.
pub(crate) fn last_event_id(headers: &HeaderMap, query: &mut Query) -> crate::error::Result<Option<u64>> {
    let from_query = query.take("last_event_id");
    let last = headers.get(&LAST).and_then(|id| id.to_str().ok()).map(str::to_owned).or(from_query);
    let wrong = |_| bad_parameter("last_event_id", "must be the id of an event");
    last.filter(|id| !id.is_empty()).map(|id| id.parse::<u64>().map_err(wrong)).transpose()
}

/// The filter of events.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventFilter {
    group: Option<String>,
    id: Option<OperationId>,
    kind: Option<String>,
    /// Whether the end of an operation includes its result and its fault.
    results: bool,
}

impl EventFilter {
    pub(crate) fn read(query: &mut Query) -> crate::error::Result<Self> {
        let wrong = |_| bad_parameter("id", "must be the id of an operation");
        let id = query.take("id").map(|text| text.parse::<OperationId>().map_err(wrong)).transpose()?;
        let results = match query.take("results").as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(bad_parameter("results", "must be true or false")),
        };
        Ok(Self { group: query.take("group"), id, kind: query.take("kind"), results })
    }

    /// Whether a change passes. A change that is not about an operation has neither an id nor a
    /// kind.
    fn passes(&self, change: &Change) -> bool {
        let (of_group, of_id, of_kind) = match change {
            Change::Operation { id, group, kind, .. } => (Some(group), Some(*id), Some(kind)),
            Change::Group { group, .. } => (Some(group), None, None),
            _ => (None, None, None),
        };
        let is = |wanted: &Option<String>, own: Option<&Arc<str>>| {
            wanted.as_ref().is_none_or(|wanted| own.is_some_and(|own| **own == **wanted))
        };
        is(&self.group, of_group) && is(&self.kind, of_kind) && self.id.is_none_or(|id| of_id == Some(id))
    }
}

/// Finds the engine that has the operation of an id.
pub(crate) type EngineLookup = Arc<dyn Fn(OperationId) -> Option<Engine> + Send + Sync>;

/// Streams events until the server shuts down.
pub(crate) fn respond(
    from: Subscription,
    wanted: EventFilter,
    find: EngineLookup,
    server: &ServerState,
) -> Response {
    let messages = messages(from, wanted, find, server.stopping.clone());
    let stream = Sse::new(messages).keep_alive(KeepAlive::new().interval(COMMENT_EVERY).text(""));
    (UNBUFFERED, stream).into_response()
}

struct EventStream {
    due: VecDeque<Arc<Event>>,
    gap: bool,
    live: Receiver<Arc<Event>>,
    wanted: EventFilter,
    find: EngineLookup,
    stopping: CancellationToken,
}

impl EventStream {
    /// The event as it is sent, if it passes the filter.
    async fn message(&self, event: &Event) -> Option<Message> {
        if !self.wanted.passes(&event.change) {
            return None;
        }
        let (wanted, with_result) = match &event.change {
            Change::Operation { id, state, labels, .. } => {
                let with_result = self.wanted.results && state.is_ended();
                (Some(*id).filter(|_| with_result || labels.is_none()), with_result)
            }
            _ => (None, false),
        };
        // An operation that was removed, or that this node no longer owns, comes without its
        // result.
        let view = match wanted.and_then(|id| Some(((self.find)(id)?, id))) {
            Some((engine, id)) => engine.get(id).await.ok(),
            None => None,
        };
        message(event, view.as_ref(), with_result)
    }
}

fn messages(
    from: Subscription,
    wanted: EventFilter,
    find: EngineLookup,
    stopping: CancellationToken,
) -> impl Stream<Item = Result<Message, Infallible>> {
    let Subscription { missed, gap, live } = from;
    let listener = EventStream { due: missed.into(), gap, live, wanted, find, stopping };
    unfold(listener, |mut listener| async move {
        loop {
            if std::mem::take(&mut listener.gap) {
                return Some((Ok(reset()), listener));
            }
            if let Some(event) = listener.due.pop_front() {
                if let Some(message) = listener.message(&event).await {
                    return Some((Ok(message), listener));
                }
                continue;
            }
            let event = tokio::select! {
                event = listener.live.recv() => event,
                () = listener.stopping.cancelled() => return None,
            };
            match event {
                Ok(event) => listener.due.push_back(event),
                Err(RecvError::Lagged(_)) => listener.gap = true,
                Err(RecvError::Closed) => return None,
            }
        }
    })
}

/// The message that tells the client to reload, because it missed events.
fn reset() -> Message {
    Message::default().event("reset").data("{}")
}

#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Operation {
        at: Timestamp,
        id: String,
        state: &'static str,
        group: &'a str,
        kind: &'a str,
        attempt: u16,
        #[serde(skip_serializing_if = "Option::is_none")]
        upstream: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        dedupe_key: Option<&'a str>,
        #[serde(flatten)]
        ended: Option<EndOut<'a>>,
    },
    Group {
        at: Timestamp,
        group: &'a str,
        now: &'static str,
    },
    Limit {
        at: Timestamp,
        limit: &'a str,
        now: &'static str,
    },
}

fn message(event: &Event, view: Option<&OperationView>, with_result: bool) -> Option<Message> {
    let at = Timestamp(event.at);
    let (name, data) = match &event.change {
        Change::Operation { id, group, kind, state, attempt, labels } => {
            let (id, state, attempt) = (id.to_string(), state.as_str(), *attempt);
            let ended = view.filter(|_| with_result).map(EndOut::new);
            let (upstream, dedupe_key) = match (labels, view) {
                (Some(labels), _) => (labels.upstream.as_deref(), labels.dedupe_key.as_deref()),
                (None, Some(view)) => (view.upstream.as_deref(), view.dedupe_key.as_deref()),
                (None, None) => (None, None),
            };
            (
                "operation",
                Data::Operation { at, id, state, group, kind, attempt, upstream, dedupe_key, ended },
            )
        }
        Change::Group { group, now } => ("group", Data::Group { at, group, now }),
        Change::Limit { limit, now } => ("limit", Data::Limit { at, limit, now }),
        _ => return None,
    };
    let data = serde_json::to_string(&data).ok()?;
    Some(Message::default().id(event.id.to_string()).event(name).data(data))
}
