//! Changes as they happen, as server-sent events. A listener that comes back with `Last-Event-ID` gets what it
//! missed; one that missed more than is kept gets `reset` and should look again.

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
use tidegate::{Change, Event, Subscription};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::Answer;
use crate::app::{House, Shared};
use crate::edge::query::{Query, bad};
use crate::wire::time::At;

const LAST: HeaderName = HeaderName::from_static("last-event-id");
/// Tells a proxy in between to pass each event on at once.
pub(crate) const UNBUFFERED: [(&str, &str); 1] = [("x-accel-buffering", "no")];
/// A comment this often keeps what is between us from closing the connection.
const COMMENT_EVERY: Duration = Duration::from_secs(15);

pub(super) async fn stream(State(app): State<Shared>, headers: HeaderMap, mut query: Query) -> Answer {
    let from_query = query.take("last_event_id");
    query.finish()?;
    let last = headers.get(&LAST).and_then(|id| id.to_str().ok()).map(str::to_owned).or(from_query);
    let after = last
        .filter(|id| !id.is_empty())
        .map(|id| id.parse::<u64>().map_err(|_| bad("last_event_id", "must be the id of an event")))
        .transpose()?;
    Ok(respond(app.engine.events(after), &app.house))
}

/// Events as they come, until the server stops.
pub(crate) fn respond(from: Subscription, house: &House) -> Response {
    let messages = messages(from, house.stopping.clone());
    let stream = Sse::new(messages).keep_alive(KeepAlive::new().interval(COMMENT_EVERY).text(""));
    (UNBUFFERED, stream).into_response()
}

struct Listener {
    due: VecDeque<Message>,
    live: Receiver<Arc<Event>>,
    stopping: CancellationToken,
}

fn messages(
    from: Subscription,
    stopping: CancellationToken,
) -> impl Stream<Item = Result<Message, Infallible>> {
    let mut due: VecDeque<_> = from.missed.iter().filter_map(|event| message(event)).collect();
    if from.gap {
        due.push_front(reset());
    }
    unfold(Listener { due, live: from.live, stopping }, |mut listener| async move {
        loop {
            if let Some(message) = listener.due.pop_front() {
                return Some((Ok(message), listener));
            }
            let event = tokio::select! {
                event = listener.live.recv() => event,
                () = listener.stopping.cancelled() => return None,
            };
            match event {
                Ok(event) => listener.due.extend(message(&event)),
                Err(RecvError::Lagged(_)) => listener.due.push_back(reset()),
                Err(RecvError::Closed) => return None,
            }
        }
    })
}

/// Look at everything again: some of it was missed.
fn reset() -> Message {
    Message::default().event("reset").data("{}")
}

#[derive(Serialize)]
#[serde(untagged)]
enum Data<'a> {
    Operation { at: At, id: String, state: &'static str, group: &'a str, kind: &'a str, attempt: u16 },
    Group { at: At, group: &'a str, now: &'static str },
    Limit { at: At, limit: &'a str, now: &'static str },
}

fn message(event: &Event) -> Option<Message> {
    let at = At(event.at);
    let (name, data) = match &event.change {
        Change::Operation { id, group, kind, state, attempt } => {
            let (id, state) = (id.to_string(), state.as_str());
            ("operation", Data::Operation { at, id, state, group, kind, attempt: *attempt })
        }
        Change::Group { group, now } => ("group", Data::Group { at, group, now }),
        Change::Limit { limit, now } => ("limit", Data::Limit { at, limit, now }),
    };
    let data = serde_json::to_string(&data).ok()?;
    Some(Message::default().id(event.id.to_string()).event(name).data(data))
}
