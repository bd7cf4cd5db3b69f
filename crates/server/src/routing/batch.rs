//! A batch over several partitions: each member goes to its own partition, concurrently, and the
//! results come back in the order of the members. As everywhere, exactly the valid ones are
//! accepted.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate_core::bounds::{BATCH_ACCEPT_MAX, PARTITION_RESPONSE_LEN_MAX};
use tidegate_core::id::Partition;

use super::placement::PlacementKey;
use super::relay::{self, ForwardRetry};
use super::{RoutedCall, RoutingState};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchBody<'a> {
    #[serde(borrow)]
    operations: Vec<&'a RawValue>,
}

/// The members that go to one partition, with their positions in the batch.
#[derive(Default)]
struct PartitionBatch {
    places: Vec<usize>,
    body: Vec<u8>,
    may_be_repeated: bool,
}

pub(super) async fn route_batch(routing: &RoutingState, call: RoutedCall) -> Response {
    let body = call.body.clone();
    let members = match serde_json::from_slice::<BatchBody<'_>>(&body) {
        Ok(read) if !read.operations.is_empty() && read.operations.len() <= BATCH_ACCEPT_MAX => {
            read.operations
        }
        // That partition reports what is wrong with it.
        _ => return relay::forward_to_partition(routing, 0, &call, ForwardRetry::Allowed).await,
    };
    let mut parts: BTreeMap<Partition, PartitionBatch> = BTreeMap::new();
    for (place, member) in members.iter().enumerate() {
        let head = PlacementKey::read(member.get().as_bytes());
        let part = parts
            .entry(head.partition(routing))
            .or_insert_with(|| PartitionBatch { may_be_repeated: true, ..PartitionBatch::default() });
        part.body.extend_from_slice(if part.places.is_empty() { br#"{"operations":["# } else { b"," });
        part.body.extend_from_slice(member.get().as_bytes());
        part.places.push(place);
        part.may_be_repeated &= head.may_be_repeated();
    }
    if parts.len() == 1
        && let Some((partition, part)) = parts.iter().next()
    {
        return relay::forward_to_partition(routing, *partition, &call, call.retry(|| part.may_be_repeated))
            .await;
    }
    let count = members.len();
    let answers = parts.into_iter().map(|(partition, part)| {
        let call = RoutedCall { body: part.to_body(), ..call.clone() };
        async move {
            let PartitionBatch { places, may_be_repeated, .. } = part;
            let again = call.retry(|| may_be_repeated);
            (places, relay::forward_to_partition(routing, partition, &call, again).await)
        }
    });
    merge(count, join_all(answers).await).await
}

impl PartitionBatch {
    fn to_body(&self) -> Bytes {
        let mut body = self.body.clone();
        body.extend_from_slice(b"]}");
        body.into()
    }
}

/// Merges the responses in the order of the members. A part that failed as a whole failed for each
/// of its members; if all parts failed, so did the batch.
async fn merge(count: usize, answers: Vec<(Vec<usize>, Response)>) -> Response {
    let mut merged = vec![Value::Null; count];
    let (mut failed, mut parts) = (None, 0);
    for (places, response) in answers {
        let is_good = response.status() == StatusCode::ACCEPTED;
        let (head, body) = response.into_parts();
        let body = axum::body::to_bytes(body, PARTITION_RESPONSE_LEN_MAX).await.unwrap_or_default();
        let mut answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        let members = answer.get_mut("operations").and_then(Value::as_array_mut).map(std::mem::take);
        let mut members = members.unwrap_or_default().into_iter();
        for place in places {
            merged[place] = if is_good { members.next().unwrap_or_default() } else { answer.clone() };
        }
        if !is_good {
            failed = Some(Response::from_parts(head, body.into()));
        } else {
            parts += 1;
        }
    }
    match failed {
        Some(response) if parts == 0 => response,
        _ => (StatusCode::ACCEPTED, Json(json!({ "operations": merged }))).into_response(),
    }
}
