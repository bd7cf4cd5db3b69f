//! What a client reads of an event: its name and its data.

use std::borrow::Cow;
use std::sync::Arc;

use axum::response::sse::Event as Message;
use serde::Serialize;
use tidegate::{Change, Engine, Event, OperationView};
use tidegate_core::OperationId;

use super::EventFilter;
use crate::wire::response::EndOut;
use crate::wire::time::Timestamp;

/// An event as it is sent, without its id.
#[derive(Debug)]
pub(crate) struct EventText {
    pub name: Cow<'static, str>,
    /// JSON in one line.
    pub data: String,
}

impl EventText {
    pub(crate) fn into_message(self, id: String) -> Message {
        Message::default().id(id).event(self.name).data(self.data)
    }
}

/// Finds the engine that has the operation of an id.
pub(crate) type EngineLookup = Arc<dyn Fn(OperationId) -> Option<Engine> + Send + Sync>;

/// Makes the texts of the events that pass a filter.
pub(crate) struct EventRenderer {
    pub wanted: EventFilter,
    pub find: EngineLookup,
}

impl EventRenderer {
    /// The text of an event, if it passes.
    pub(crate) async fn render(&self, event: &Event) -> Option<EventText> {
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
        event_text(event, view.as_ref(), with_result)
    }
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

fn event_text(event: &Event, view: Option<&OperationView>, with_result: bool) -> Option<EventText> {
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
    Some(EventText { name: name.into(), data: serde_json::to_string(&data).ok()? })
}
