//! The audit log: who commanded what, when, why, and with which status. It records every command of
//! an operator, from the page, the command line or any other client, at the node that received it:
//! in the store, once the command was carried out, and in the log of the process.

pub(crate) mod detail;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tidegate_core::Time;
use tidegate_core::bounds::{AUDIT_ENTRIES_KEPT, AUDIT_RETENTION};
use tidegate_core::fingerprint::Fingerprint;
use tidegate_core::time::micros;
use tidegate_dispatch::KIND as GENERATION;
use tidegate_idempotency::IdempotencyKey;
use tidegate_store::Store;
use tidegate_store::audit::{AuditEntry, AuditId, AuditRetention};

use crate::api::route::RouteSpec;
use crate::edge::auth::Caller;
use crate::edge::content;
use crate::error::{Error, ErrorCode};
use crate::state::ServerState;
use crate::wire::error::ApiError;
use detail::{of_fields, shorten, with_changed};

/// How long a response waits for its entry.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// What commands about idempotency keys are about.
const KEYS: &str = "keys";
/// What commands about recent failures have in their path. They are about the source of those.
const FAILURES: &str = "failures";

/// Why an operator gives a command that has no field for it.
#[derive(Clone, Debug)]
pub(crate) struct CommandReason(pub Arc<str>);

/// What a handler adds to the entry of a command, in the extensions of its response.
#[derive(Clone, Debug)]
pub(crate) enum AuditHint {
    /// It changed nothing, and needs no entry.
    Preview,
    /// It changed this many operations, of which these are the first.
    Changed { count: u64, ids: Arc<[String]> },
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

/// Writes the commands that this node receives to the audit log of the store.
#[derive(Debug)]
pub(crate) struct AuditRecorder {
    node: Arc<str>,
    /// Tells the entries of this process from those of others.
    tie: u32,
    /// The time of the last entry, in microseconds.
    last: AtomicU64,
}

impl AuditRecorder {
    pub(crate) fn new(node: &str, started: Time) -> Self {
        let process = Fingerprint::of("audit").part(node.as_bytes()).part(&started.as_micros().to_le_bytes());
        let tie = process.finish().first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        Self { node: node.into(), tie, last: AtomicU64::new(0) }
    }

    /// The id of an entry that is made now, after all earlier ones of this process.
    fn next_id(&self, now: Time) -> AuditId {
        let after = |last: u64| Some(now.as_micros().max(last.saturating_add(1)));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).unwrap_or_default();
        AuditId { at: Time::from_micros(now.as_micros().max(last.saturating_add(1))), tie: self.tie }
    }

    /// Records a command that was carried out. A store that fails undoes nothing: the command is in
    /// the log of the process.
    async fn record(&self, store: &dyn Store, command: IssuedCommand, now: Time, status: u16) {
        let IssuedCommand { by, action, kind, subject, detail, reason } = command;
        // A key has a line of its own, with its scope.
        if kind != KEYS {
            tracing::info!(target: "audit", by = &*by, action, kind, subject, detail, reason, status, "command");
        }
        let entry = AuditEntry {
            id: self.next_id(now),
            node: Arc::clone(&self.node),
            by,
            action: action.into(),
            kind: kind.into(),
            subject: subject.into(),
            detail: detail.map(Arc::from),
            reason: reason.map(Arc::from),
            status,
        };
        let since = Time::from_micros(now.as_micros().saturating_sub(micros(AUDIT_RETENTION)));
        let retention = AuditRetention { entries: AUDIT_ENTRIES_KEPT, since };
        let cause = match tokio::time::timeout(WRITE_TIMEOUT, store.add_audit_entry(entry, retention)).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the store did not respond within {} s", WRITE_TIMEOUT.as_secs()),
        };
        tracing::error!(target: "audit", action, cause, "a command is missing in the audit log of the store");
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
    let command = issued_command(&point, &head, &fields);
    let is_preview = fields["dry_run"] == true;
    let request = Request::from_parts(head, Body::from(body));
    // A caller that hangs up does not end it halfway, done and without its entry.
    match tokio::spawn(run_and_record(point, command, is_preview, request, next)).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => {
                ApiError(Error::new(ErrorCode::Stopping, "The server is shutting down.")).into_response()
            }
        },
    }
}

async fn run_and_record(
    point: AuditPoint,
    mut command: IssuedCommand,
    is_preview: bool,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    match response.extensions().get::<AuditHint>() {
        Some(AuditHint::Preview) => return response,
        Some(AuditHint::Changed { count, ids }) => {
            command.detail = Some(with_changed(command.detail.as_deref(), *count, ids));
        }
        // Nothing was commanded, and nothing is refused.
        None if is_preview && response.status().is_client_error() => return response,
        None => {}
    }
    let AuditPoint { server, .. } = point;
    server.audit.record(&*server.store, command, server.clock.now(), response.status().as_u16()).await;
    response
}

fn issued_command(point: &AuditPoint, head: &Parts, fields: &Value) -> IssuedCommand {
    let reason = head.extensions.get::<CommandReason>().map(|reason| reason.0.to_string());
    let (kind, subject) = subject(point.spec.path, head.uri.path());
    let (kind, subject) = if kind == FAILURES { failure_source(fields) } else { (kind, subject) };
    let (by, on_behalf_of) = who(head.extensions.get::<Caller>(), fields["by"].as_str());
    let details = on_behalf_of.map(|name| format!("by {name}")).into_iter().chain(of_fields(fields));
    let detail: Vec<String> = details.collect();
    IssuedCommand {
        by,
        action: point.action,
        kind,
        subject,
        detail: (!detail.is_empty()).then(|| detail.join(", ")),
        reason: reason.or_else(|| fields["reason"].as_str().map(shorten)).filter(|text| !text.is_empty()),
    }
}

/// Who commands, and who the command says it is by, where that is someone else. Without tokens it
/// is whoever the command names; with tokens a name proves nothing, and that of the token stays
/// first.
fn who(caller: Option<&Caller>, named: Option<&str>) -> (Arc<str>, Option<String>) {
    let caller = caller.map_or_else(|| Caller::LOCAL.into(), |caller| Arc::clone(&caller.0));
    match named.map(shorten).filter(|name| !name.is_empty() && **name != *caller) {
        Some(name) if &*caller == Caller::LOCAL => (name.into(), None),
        named => (caller, named),
    }
}

/// What a path such as `/v1/groups/shop%3A1/pause` is about: `groups` and `shop:1`. A command about
/// all that a filter finds has no name. A key is a secret of its callers, and is named by its hash,
/// as in the log.
fn subject(pattern: &str, path: &str) -> (String, String) {
    let path = path.strip_prefix("/v1/").unwrap_or(path);
    let (kind, rest) = path.split_once('/').unwrap_or((path, ""));
    if !pattern.contains('{') {
        return (kind.to_owned(), String::new());
    }
    let verb = pattern.rsplit_once('/').map(|(_, verb)| verb).filter(|verb| !verb.starts_with('{'));
    let name = verb.and_then(|verb| rest.strip_suffix(verb)?.strip_suffix('/')).unwrap_or(rest);
    let name = percent_decode_str(name).decode_utf8_lossy();
    let subject = match kind {
        KEYS => IdempotencyKey::printable(&name).map_or_else(String::new, |key| key.redacted()),
        _ => shorten(&name),
    };
    (kind.to_owned(), subject)
}

/// Whose failures a command is about: those of a group, or of all generations.
fn failure_source(fields: &Value) -> (String, String) {
    match (fields["group"].as_str(), fields["kind"].as_str()) {
        (Some(group), _) => ("groups".to_owned(), shorten(group)),
        (None, Some(GENERATION)) => ("generations".to_owned(), String::new()),
        (None, _) => (FAILURES.to_owned(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_contract::{FaultPlan, FaultyStore, InjectedFault, StoreMethod};
    use tidegate_store::{AuditLog, WallClock};
    use tidegate_store_embedded::MemoryStore;

    use super::*;

    #[test]
    fn a_command_is_told_by_its_path() {
        let table = [
            ("/v1/groups/{group}/pause", "/v1/groups/shop%3A1/pause", ("groups", "shop:1")),
            ("/v1/limits/{*name}", "/v1/limits/echo/points", ("limits", "echo/points")),
            ("/v1/keys/{key}/release", "/v1/keys/release/release", ("keys", "a4d451ec2346")),
            ("/v1/operations/cancel", "/v1/operations/cancel", ("operations", "")),
        ];
        for (pattern, path, (kind, name)) in table {
            assert_eq!(subject(pattern, path), (kind.to_owned(), name.to_owned()));
        }
    }

    /// OPS-9: the audit names the same person as the group that was paused; a token is not anyone
    /// else because its caller says so.
    #[test]
    fn ops_9_a_command_is_by_whoever_it_names() {
        let [local, anna] = [Caller::LOCAL, "anna"].map(Caller::named);
        let table = [
            (&local, Some("bert"), "bert", None),
            (&local, None, "local", None),
            (&local, Some(""), "local", None),
            (&anna, Some("anna"), "anna", None),
            (&anna, Some("bert"), "anna", Some("bert")),
        ];
        for (caller, named, by, on_behalf_of) in table {
            assert_eq!(who(Some(caller), named), (by.into(), on_behalf_of.map(str::to_owned)), "{named:?}");
        }
    }

    /// Ids grow in one process whatever its clock does, and two processes have different ones.
    #[test]
    fn entries_are_in_the_order_of_time() {
        let recorder = AuditRecorder::new("node-1", Time::from_millis(1));
        let ids = [7, 7, 3, 9].map(|at| recorder.next_id(Time::from_micros(at)));
        assert_eq!(ids.map(|id| id.at.as_micros()), [7, 8, 9, 10]);
        let other = AuditRecorder::new("node-2", Time::from_millis(1));
        assert_ne!(other.next_id(Time::from_micros(7)), ids[0]);
    }

    /// A store that fails does not hold up a command.
    #[tokio::test(start_paused = true)]
    async fn a_store_that_fails_is_not_waited_for() {
        let store = FaultyStore::new(Arc::new(MemoryStore::new(Arc::new(WallClock))), FaultPlan::none());
        let recorder = AuditRecorder::new("node-1", Time::from_millis(1));
        let command = || IssuedCommand {
            by: "anna".into(),
            action: "pause",
            kind: "groups".into(),
            subject: "shop:1".into(),
            detail: None,
            reason: None,
        };
        store.set_down(true);
        recorder.record(&store, command(), Time::from_millis(7), 200).await;
        store.set_down(false);
        let slow = InjectedFault::Delay(WRITE_TIMEOUT * 100);
        store.set_plan(FaultPlan::none().at(StoreMethod::AddAuditEntry, 1, slow));
        recorder.record(&store, command(), Time::from_millis(8), 200).await;
        recorder.record(&store, command(), Time::from_millis(9), 200).await;
        let entries = store.audit_entries(None, 9).await.unwrap().entries;
        assert_eq!(entries.len(), 1, "the first two did not get through: {entries:?}");
    }
}
