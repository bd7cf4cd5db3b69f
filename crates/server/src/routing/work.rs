//! Remote workers in a cluster. Claims are extended and settled where their partitions are. For the
//! callers that wait at this node, each other node is asked with one long poll whether something
//! may be claimed there, and only then a take follows; see `crate::work`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate::{ClaimId, Fence, WorkRequest};
use tidegate_core::OperationId;
use tidegate_core::bounds::{
    PARTITION_RESPONSE_LEN_MAX, WORK_BATCH_MAX, WORK_CALLERS_MAX, WORK_PAYLOADS_LEN_MAX,
};
use tidegate_core::id::Partition;
use tidegate_store::nodes::Node;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::relay::{self, ForwardRetry};
use super::{RoutedCall, RoutingState};
use crate::api::route::Idempotence;
use crate::edge::content::{BodyBound, read};
use crate::wire::error::ApiError;
use crate::wire::work::{NamedClaim, handed_claim};
use crate::work::{HandedClaim, PAUSE, WorkHub};

/// The paths at which nodes ask each other.
pub(crate) const READY_PATH: &str = "/internal/work/ready";
pub(crate) const TAKE_PATH: &str = "/internal/work/take";
/// How long another node is asked to wait for something to claim.
const READY_WAIT: Duration = Duration::from_secs(20);
/// The pause before a node that did not answer is asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// What a node asks another one.
#[derive(Debug, Serialize, Deserialize)]
struct ReadyQuestion {
    kinds: Vec<Arc<str>>,
    wait_ms: u64,
}

/// A take of another node, for its first callers.
#[derive(Debug, Serialize, Deserialize)]
struct PeerRequest {
    kinds: Vec<Arc<str>>,
    max: usize,
    lease_ms: u64,
}

/// The parts of a claim that nodes need to know.
#[derive(Deserialize)]
struct ClaimKey {
    id: String,
    fence: u64,
}

/// Routes a batch of claims to their partitions, and merges the answers in the order of the
/// members.
pub(super) async fn route_claims(routing: &RoutingState, call: RoutedCall, list: &'static str) -> Response {
    let body = call.body.clone();
    let members = match serde_json::from_slice::<BTreeMap<String, Vec<&RawValue>>>(&body) {
        Ok(mut read) if read.len() == 1 => read.remove(list).unwrap_or_default(),
        _ => Vec::new(),
    };
    if members.is_empty() || members.len() > WORK_BATCH_MAX {
        // That partition reports what is wrong with it.
        return relay::forward_to_partition(routing, 0, &call, ForwardRetry::Allowed).await;
    }
    let mut parts: BTreeMap<Partition, Vec<usize>> = BTreeMap::new();
    for (place, member) in members.iter().enumerate() {
        parts.entry(partition_of_claim(routing, member)).or_default().push(place);
    }
    if let (1, Some(partition)) = (parts.len(), parts.keys().next()) {
        return relay::forward_to_partition(routing, *partition, &call, ForwardRetry::Allowed).await;
    }
    let members = &members;
    let answers = parts.into_iter().map(|(partition, places)| {
        let texts: Vec<&str> = places.iter().map(|place| members[*place].get()).collect();
        let body = Bytes::from(format!("{{\"{list}\":[{}]}}", texts.join(",")));
        let call = RoutedCall { body, ..call.clone() };
        async move {
            (places, relay::forward_to_partition(routing, partition, &call, ForwardRetry::Allowed).await)
        }
    });
    let mut merged = vec![Value::Null; members.len()];
    for (places, response) in join_all(answers).await {
        let is_good = response.status() == StatusCode::OK;
        let answer =
            axum::body::to_bytes(response.into_body(), PARTITION_RESPONSE_LEN_MAX).await.unwrap_or_default();
        let mut answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let found = answer.get_mut(list).and_then(Value::as_array_mut).map(std::mem::take);
        let mut found = found.unwrap_or_default().into_iter();
        for place in places {
            merged[place] = match is_good {
                true => found.next().unwrap_or_default(),
                false => named_error(members[place], &answer),
            };
        }
    }
    Json(json!({ list: merged })).into_response()
}

/// The error of a partition that did not answer, for one of its members.
fn named_error(member: &RawValue, error: &Value) -> Value {
    let named = serde_json::to_value(NamedClaim::of_member(member)).unwrap_or_default();
    match (error.clone(), named) {
        (Value::Object(mut error), Value::Object(named)) => {
            error.extend(named);
            Value::Object(error)
        }
        (error, _) => error,
    }
}

/// The partition of a claim; one that cannot be read has a partition too, which reports that.
fn partition_of_claim(routing: &RoutingState, member: &RawValue) -> Partition {
    let id = serde_json::from_str::<ClaimKey>(member.get()).ok().and_then(|key| key.id.parse().ok());
    let partition = id.map_or(0, OperationId::partition);
    if partition < routing.cluster.partitions() { partition } else { 0 }
}

/// Tells another node which kinds may be claimed here, after a while at the latest.
pub(crate) async fn ready(
    State(routing): State<Arc<RoutingState>>,
    request: axum::extract::Request,
) -> Response {
    let question = match read_json::<ReadyQuestion>(&routing, request).await {
        Ok(question) => question,
        Err(refused) => return refused,
    };
    let wait = Duration::from_millis(question.wait_ms).min(READY_WAIT);
    let kinds = tokio::select! {
        kinds = routing.server.work.ready_among(&question.kinds, wait) => kinds,
        () = routing.server.stopping.cancelled() => Vec::new(),
    };
    Json(kinds).into_response()
}

/// Claims operations of this node's partitions for the callers of another node.
pub(crate) async fn take(
    State(routing): State<Arc<RoutingState>>,
    request: axum::extract::Request,
) -> Response {
    let asked = match read_json::<Vec<PeerRequest>>(&routing, request).await {
        Ok(asked) => asked,
        Err(refused) => return refused,
    };
    let wanted = asked
        .into_iter()
        .map(|one| WorkRequest { kinds: one.kinds, max: one.max, lease: Duration::from_millis(one.lease_ms) })
        .collect();
    // The other node may hang up meanwhile.
    let (reply, claims) = oneshot::channel();
    tokio::spawn(claim_for_peer(routing, wanted, reply));
    let claims = claims.await.unwrap_or_default().into_iter();
    let json = |claims: Vec<HandedClaim>| claims.into_iter().map(|claim| claim.json).collect::<Vec<_>>();
    let claims: Vec<Vec<Box<RawValue>>> = claims.map(json).collect();
    Json(claims).into_response()
}

/// Claims operations of this node's partitions, and returns them if no one waits for them any more.
async fn claim_for_peer(
    routing: Arc<RoutingState>,
    mut wanted: Vec<WorkRequest>,
    reply: oneshot::Sender<Vec<Vec<HandedClaim>>>,
) {
    let mut claims: Vec<Vec<HandedClaim>> = wanted.iter().map(|_| Vec::new()).collect();
    for engine in routing.partitions.engines() {
        let len: usize = claims.iter().flatten().map(|claim| claim.json.get().len()).sum();
        if len > WORK_PAYLOADS_LEN_MAX {
            break;
        }
        let ready = engine.ready_kinds().borrow().clone();
        let is_open = |one: &WorkRequest| one.max > 0 && one.kinds.iter().any(|kind| ready.contains(kind));
        if !wanted.iter().any(is_open) {
            continue;
        }
        let Ok(taken) = engine.take_work(wanted.clone()).await else { continue };
        for ((claims, one), taken) in claims.iter_mut().zip(&mut wanted).zip(taken) {
            one.max = one.max.saturating_sub(taken.len());
            claims.extend(taken.iter().filter_map(handed_claim));
        }
    }
    if let Err(claims) = reply.send(claims) {
        return_claims(&routing, claims.into_iter().flatten().collect()).await;
    }
}

async fn read_json<T: for<'a> Deserialize<'a>>(
    routing: &RoutingState,
    request: axum::extract::Request,
) -> Result<T, Response> {
    let bound = BodyBound::Operation.len_max();
    let body = read(request.into_body(), bound, routing.server.read_timeout).await;
    let body = body.map_err(|error| ApiError(error).into_response())?;
    serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST.into_response())
}

/// Serves the callers of this node from the others, each by a task of its own.
pub(crate) async fn pull_from_peers(routing: Arc<RoutingState>) {
    let mut cluster = routing.cluster.clone();
    let mut tasks: BTreeMap<String, (String, CancellationToken)> = BTreeMap::new();
    loop {
        let view = cluster.view();
        let others: BTreeMap<String, Node> = view
            .nodes
            .into_iter()
            .filter(|node| node.name != view.this_node && !node.record.address.is_empty())
            .map(|node| (node.name.clone(), node))
            .collect();
        tasks.retain(|name, (address, stop)| {
            let is_there = others.get(name).is_some_and(|node| node.record.address == *address);
            if !is_there {
                stop.cancel();
            }
            is_there
        });
        for (name, node) in others {
            let address = node.record.address.clone();
            tasks.entry(name).or_insert_with(|| {
                let stop = routing.server.stopping.child_token();
                tokio::spawn(pull(Arc::clone(&routing), node, stop.clone()));
                (address, stop)
            });
        }
        tokio::select! {
            () = routing.server.stopping.cancelled() => return,
            () = cluster.changed() => {}
        }
    }
}

/// Serves the callers of this node from another one until it is told to stop; never between a take
/// and its delivery, because the claims would be no one's.
async fn pull(routing: Arc<RoutingState>, node: Node, stop: CancellationToken) {
    let hub = Arc::clone(&routing.server.work);
    let mut calls = hub.calls();
    let mut most = 1;
    while !stop.is_cancelled() {
        calls.borrow_and_update();
        let kinds: Vec<Arc<str>> = hub.wanted().into_iter().collect();
        if kinds.is_empty() {
            match stop.run_until_cancelled(calls.changed()).await {
                Some(Ok(())) => continue,
                _ => return,
            }
        }
        let wait_ms = u64::try_from(READY_WAIT.as_millis()).unwrap_or(0);
        let question = ReadyQuestion { kinds: kinds.clone(), wait_ms };
        let answer = tokio::select! {
            answer = ask::<_, Vec<Arc<str>>>(&routing, &node, READY_PATH, &question) => answer,
            () = wants_more(&hub, &kinds) => continue,
            () = stop.cancelled() => return,
        };
        let Some(ready) = answer else {
            tokio::time::sleep(RETRY_PAUSE).await;
            continue;
        };
        let reserved = hub.reserve(&ready, most);
        if reserved.is_empty() {
            continue;
        }
        let requests = reserved.requests();
        let asked = requests.iter().map(|one| PeerRequest {
            kinds: one.kinds.clone(),
            max: one.max,
            lease_ms: u64::try_from(one.lease.as_millis()).unwrap_or(u64::MAX),
        });
        let asked: Vec<PeerRequest> = asked.collect();
        let claims: Vec<Vec<Box<RawValue>>> =
            ask(&routing, &node, TAKE_PATH, &asked).await.unwrap_or_default();
        let is_full = claims.iter().zip(&requests).all(|(claims, one)| claims.len() >= one.max);
        let is_empty = claims.iter().all(Vec::is_empty);
        most = if is_full && !is_empty { (most * 2).min(WORK_CALLERS_MAX) } else { 1 };
        let handed = claims.into_iter().map(|claims| claims.into_iter().filter_map(from_peer).collect());
        let undelivered = hub.deliver(reserved, handed.collect());
        return_claims(&routing, undelivered).await;
        if is_empty {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Resolves when a caller waits for another kind than these.
async fn wants_more(hub: &WorkHub, kinds: &[Arc<str>]) {
    let mut calls = hub.calls();
    loop {
        calls.borrow_and_update();
        if hub.wanted().iter().any(|kind| !kinds.contains(kind)) || calls.changed().await.is_err() {
            return;
        }
    }
}

fn from_peer(json: Box<RawValue>) -> Option<HandedClaim> {
    let key: ClaimKey = serde_json::from_str(json.get()).ok()?;
    Some(HandedClaim { claim: ClaimId { id: key.id.parse().ok()?, fence: Fence(key.fence) }, json })
}

/// Returns the claims of callers that hung up before they saw them, until the server stops.
pub(crate) async fn return_undelivered(routing: Arc<RoutingState>) {
    let mut undelivered = routing.server.work.undelivered();
    let stopping = routing.server.stopping.clone();
    while let Some(Some(claim)) = stopping.run_until_cancelled(undelivered.recv()).await {
        return_claims(&routing, vec![claim]).await;
    }
    while let Ok(claim) = undelivered.try_recv() {
        return_claims(&routing, vec![claim]).await;
    }
}

/// Returns claims that no worker got to their queues.
async fn return_claims(routing: &RoutingState, claims: Vec<HandedClaim>) {
    for claim in claims {
        let ClaimId { id, fence } = claim.claim;
        let settlement = json!({ "id": id.to_string(), "fence": fence.0, "outcome": "returned" });
        let call = RoutedCall {
            method: Method::POST,
            target: "/v1/work/settle".to_owned(),
            content_type: None,
            body: json!({ "settlements": [settlement] }).to_string().into(),
            idempotence: Idempotence::Always,
            caller: "node".into(),
            request_id: "".into(),
            key: None,
            proxy: None,
            streamed: None,
        };
        relay::forward_to_partition(routing, id.partition(), &call, ForwardRetry::Allowed).await;
    }
}

/// Asks another node; `None` when no answer came.
async fn ask<Q: Serialize + Sync, A: for<'a> Deserialize<'a>>(
    routing: &RoutingState,
    node: &Node,
    path: &str,
    question: &Q,
) -> Option<A> {
    let body = Bytes::from(serde_json::to_vec(question).ok()?);
    let (status, answer) = routing.peers.post(node, path, body).await?;
    if status != StatusCode::OK {
        return None;
    }
    serde_json::from_slice(&answer).ok()
}
