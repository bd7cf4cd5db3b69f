//! The audit log: who commanded what, when, why, and with which status. It records every command of
//! an operator, from the page, the command line or any other client, at the node that received it.
//! The last ones are kept in memory; the log of the process has all of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidegate_core::Time;
use tidegate_core::bounds::{AUDIT_ENTRIES_MAX, NOTE_LEN_MAX};

use crate::api::route::RouteSpec;
use crate::edge::auth::Caller;
use crate::edge::content;
use crate::state::ServerState;
use crate::wire::error::ApiError;
use crate::wire::time::Timestamp;

/// The fields of a command that say what it does. Others may hold what a page must not show.
const TOLD_FIELDS: [&str; 15] = [
    "as",
    "group",
    "state",
    "upstream",
    "kind",
    "created_after",
    "created_before",
    "error",
    "capacity",
    "refill_per_s",
    "period_ms",
    "at_once",
    "open",
    "reset",
    "status",
];

/// What commands about idempotency keys are about.
const KEYS: &str = "keys";

/// Why an operator gives a command that has no field for it.
#[derive(Clone, Debug)]
pub(crate) struct CommandReason(pub Arc<str>);

/// What a handler adds to the entry of a command, in the extensions of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AuditHint {
    /// It changed nothing, and needs no entry.
    Preview,
    /// It changed this many.
    Changed(u64),
}

/// One command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AuditEntry {
    /// Unique among all nodes; it sorts by time.
    pub id: String,
    pub at: String,
    pub by: String,
    /// The command, such as `rerun`.
    pub action: String,
    /// What it is about: `operations`, `groups`, `limits`, `keys`.
    pub kind: String,
    pub subject: String,
    /// What exactly was commanded, such as `as succeeded`.
    pub detail: Option<String>,
    pub reason: Option<String>,
    /// The HTTP status of the response.
    pub status: u16,
}

/// The last commands of a node.
#[derive(Debug)]
pub(crate) struct AuditLog {
    /// Tells the entries of this process from those of others.
    process: String,
    entries: Mutex<AuditRing>,
}

#[derive(Debug, Default)]
struct AuditRing {
    count: u64,
    last: VecDeque<AuditEntry>,
}

/// A command, before its outcome is known.
struct IssuedCommand {
    by: Arc<str>,
    action: &'static str,
    kind: String,
    subject: String,
    detail: Option<String>,
    reason: Option<String>,
}

impl AuditLog {
    pub(crate) fn new(started: Time) -> Self {
        Self { process: format!("{:x}", started.as_micros()), entries: Mutex::default() }
    }

    /// The last entries, newest first.
    pub(crate) fn last(&self, most: usize) -> Vec<AuditEntry> {
        let ring = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        ring.last.iter().rev().take(most).cloned().collect()
    }

    fn record(&self, command: IssuedCommand, at: Time, status: u16) {
        let IssuedCommand { by, action, kind, subject, detail, reason } = command;
        // Keys are secrets of their callers: what is done about them is logged without their text.
        if kind != KEYS {
            tracing::info!(target: "audit", by = &*by, action, kind, subject, detail, reason, status, "command");
        }
        let mut ring = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        ring.count += 1;
        let id = format!("{:016x}-{}-{}", at.as_micros(), self.process, ring.count);
        let (at, by, action) = (Timestamp(at).to_string(), by.to_string(), action.to_owned());
        if ring.last.len() == AUDIT_ENTRIES_MAX {
            ring.last.pop_front();
        }
        ring.last.push_back(AuditEntry { id, at, by, action, kind, subject, detail, reason, status });
    }
}

/// Where commands are recorded.
#[derive(Clone)]
struct AuditPoint {
    server: Arc<ServerState>,
    spec: RouteSpec,
    action: &'static str,
}

/// Records the calls of a route, if its record says so.
pub(crate) fn audited(server: &Arc<ServerState>, spec: RouteSpec, call: MethodRouter) -> MethodRouter {
    let Some(action) = spec.audited_as else { return call };
    let point = AuditPoint { server: Arc::clone(server), spec, action };
    call.layer(from_fn_with_state(point, record_call))
}

async fn record_call(State(point): State<AuditPoint>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let (most, within) = (point.spec.body.len_max(), point.server.read_timeout);
    let body = match content::read(body, most, within).await {
        Ok(body) => body,
        Err(error) => return ApiError(error).into_response(),
    };
    let fields: Value = serde_json::from_slice(&body).unwrap_or_default();
    let reason = head.extensions.get::<CommandReason>().map(|reason| reason.0.to_string());
    let (kind, subject) = subject(point.spec.path, head.uri.path());
    let mut command = IssuedCommand {
        by: head.extensions.get::<Caller>().map_or_else(|| "local".into(), |caller| Arc::clone(&caller.0)),
        action: point.action,
        kind,
        subject,
        detail: detail(&fields),
        reason: reason.or_else(|| fields["reason"].as_str().map(shorten)).filter(|text| !text.is_empty()),
    };
    let response = next.run(Request::from_parts(head, Body::from(body))).await;
    match response.extensions().get::<AuditHint>() {
        Some(AuditHint::Preview) => return response,
        Some(AuditHint::Changed(count)) => {
            let told = command.detail.take().unwrap_or_default();
            command.detail = Some(format!("{told}: {count} changed"));
        }
        None => {}
    }
    let at = point.server.clock.now();
    point.server.audit.record(command, at, response.status().as_u16());
    response
}

/// What a path such as `/v1/groups/shop%3A1/pause` is about: `groups` and `shop:1`. A command about
/// all that a filter finds has no name.
fn subject(pattern: &str, path: &str) -> (String, String) {
    let path = path.strip_prefix("/v1/").unwrap_or(path);
    let (kind, rest) = path.split_once('/').unwrap_or((path, ""));
    if !pattern.contains('{') {
        return (kind.to_owned(), String::new());
    }
    let verb = pattern.rsplit_once('/').map(|(_, verb)| verb).filter(|verb| !verb.starts_with('{'));
    let name = verb.and_then(|verb| rest.strip_suffix(verb)?.strip_suffix('/')).unwrap_or(rest);
    (kind.to_owned(), shorten(&percent_decode_str(name).decode_utf8_lossy()))
}

fn detail(fields: &Value) -> Option<String> {
    let told = |name: &&str| match &fields[*name] {
        Value::Null => None,
        Value::String(text) => Some(format!("{name} {}", shorten(text))),
        value => Some(format!("{name} {value}")),
    };
    let told: Vec<String> = TOLD_FIELDS.iter().filter_map(told).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(NOTE_LEN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_is_told_by_its_path_and_its_fields() {
        let table = [
            ("/v1/groups/{group}/pause", "/v1/groups/shop%3A1/pause", ("groups", "shop:1")),
            ("/v1/limits/{*name}", "/v1/limits/echo/points", ("limits", "echo/points")),
            ("/v1/keys/{key}/release", "/v1/keys/release/release", ("keys", "release")),
            ("/v1/operations/cancel", "/v1/operations/cancel", ("operations", "")),
        ];
        for (pattern, path, (kind, name)) in table {
            assert_eq!(subject(pattern, path), (kind.to_owned(), name.to_owned()));
        }
        assert_eq!(detail(&json!({ "as": "failed", "body": "secret" })).as_deref(), Some("as failed"));
        assert_eq!(detail(&json!({ "at_once": 3, "open": true })).as_deref(), Some("at_once 3, open true"));
        assert_eq!(detail(&Value::Null), None);
    }

    #[test]
    fn the_oldest_entry_makes_way() {
        let log = AuditLog::new(Time::from_millis(7));
        for number in 0..=AUDIT_ENTRIES_MAX {
            let subject = number.to_string();
            let (by, kind) = ("anna".into(), "groups".to_owned());
            let command = IssuedCommand { by, action: "pause", kind, subject, detail: None, reason: None };
            log.record(command, Time::from_millis(number as u64), 200);
        }
        let all = log.last(usize::MAX);
        assert_eq!(all.len(), AUDIT_ENTRIES_MAX);
        assert_eq!((&*all[0].subject, &*all[AUDIT_ENTRIES_MAX - 1].subject), ("1000", "1"));
        assert!(all.is_sorted_by(|newer, older| newer.id > older.id), "ids sort by time");
    }
}
