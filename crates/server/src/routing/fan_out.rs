//! Requests about all partitions: each is asked concurrently, and the responses are merged by name.
//! A group that has operations for several upstreams is in several partitions; it is shown once, as
//! it is in the partition where its queue is longest.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tidegate_core::bounds::PARTITION_RESPONSE_LEN_MAX;
use tidegate_core::id::Partition;

use super::relay;
use super::{RoutedCall, RoutingState};
use crate::api;
use crate::api::bulk_commands::BulkOut;
use crate::api::group_rerun::GroupRerunOut;
use crate::api::summary::SummaryOut;
use crate::edge::query::Query;
use crate::wire::error::ApiError;

/// The response of one partition.
pub(super) struct PartitionAnswer {
    pub partition: Partition,
    pub value: Value,
}

/// Sends a request to each partition, at its own target. The first error is the response for all.
pub(super) async fn ask_partitions(
    routing: &RoutingState,
    call: &RoutedCall,
    targets: Vec<(Partition, String)>,
) -> Result<Vec<PartitionAnswer>, Response> {
    ask_each(routing, call, targets).await.into_iter().collect()
}

/// Sends a request to each partition, at its own target.
async fn ask_each(
    routing: &RoutingState,
    call: &RoutedCall,
    targets: Vec<(Partition, String)>,
) -> Vec<Result<PartitionAnswer, Response>> {
    let asked = targets.into_iter().map(|(partition, target)| async move {
        let response =
            relay::forward_to_partition(routing, partition, &call.with_target(target), call.retry(|| false))
                .await;
        if response.status() != StatusCode::OK {
            return Err(response);
        }
        let body =
            axum::body::to_bytes(response.into_body(), PARTITION_RESPONSE_LEN_MAX).await.unwrap_or_default();
        let value = serde_json::from_slice(&body).unwrap_or_default();
        Ok(PartitionAnswer { partition, value })
    });
    join_all(asked).await
}

fn all_targets(routing: &RoutingState, target: &str) -> Vec<(Partition, String)> {
    (0..routing.cluster.partitions()).map(|partition| (partition, target.to_owned())).collect()
}

/// Asks every partition the same, and reads the responses.
async fn ask_all<T: DeserializeOwned>(routing: &RoutingState, call: &RoutedCall) -> Result<Vec<T>, Response> {
    let parts = ask_partitions(routing, call, all_targets(routing, &call.target)).await?;
    Ok(parts.into_iter().filter_map(|part| serde_json::from_value(part.value).ok()).collect())
}

pub(super) async fn summary(routing: &RoutingState, call: RoutedCall) -> Response {
    match ask_all(routing, &call).await {
        Ok(parts) => Json(SummaryOut::merge(parts, routing.server.clock.now())).into_response(),
        Err(refused) => refused,
    }
}

pub(super) async fn rerun_failed(routing: &RoutingState, call: RoutedCall) -> Response {
    let (mut parts, mut unknown) = (Vec::new(), None);
    for answer in ask_each(routing, &call, all_targets(routing, &call.target)).await {
        match answer {
            Ok(part) => parts.extend(serde_json::from_value(part.value).ok()),
            // A partition that does not know the group has nothing to rerun.
            Err(refused) if refused.status() == StatusCode::NOT_FOUND => unknown = Some(refused),
            Err(refused) => return refused,
        }
    }
    match unknown.filter(|_| parts.is_empty()) {
        Some(unknown) => unknown,
        None => GroupRerunOut::merge(parts).into_response(),
    }
}

pub(super) async fn bulk(routing: &RoutingState, call: RoutedCall) -> Response {
    match ask_all(routing, &call).await {
        Ok(parts) => BulkOut::merge(parts).into_response(),
        Err(refused) => refused,
    }
}

pub(super) async fn groups(routing: &RoutingState, call: RoutedCall) -> Response {
    let parts = match ask_partitions(routing, &call, all_targets(routing, &call.target)).await {
        Ok(parts) => parts,
        Err(refused) => return refused,
    };
    // The partitions have already reported what is wrong with the query.
    let mut query = Query::parse(call.target.split_once('?').map_or("", |(_, query)| query));
    let (limit, (which, _)) = (query.limit(), api::groups::read_list(&mut query));
    // Beyond the end of the shortest page, not all partitions are known yet.
    let end = parts.iter().filter_map(|part| part.value["next"].as_str()).min().map(str::to_owned);
    let mut merged: BTreeMap<String, Value> = BTreeMap::new();
    for mut part in parts {
        for group in part.value["groups"].as_array_mut().map(std::mem::take).unwrap_or_default() {
            let Some(name) = group["group"].as_str().map(str::to_owned) else { continue };
            if end.as_ref().is_none_or(|end| name <= *end) {
                keep_longest(merged.entry(name).or_default(), group);
            }
        }
    }
    let more = end.is_some() || merged.len() > limit;
    let groups: Vec<(String, Value)> = merged.into_iter().take(limit).collect();
    let next = groups.last().filter(|_| more).map(|(name, _)| name.clone());
    let groups: Vec<Value> = groups.into_iter().map(|(_, group)| group).collect();
    let next_cursor = next.as_deref().map(|next| api::groups::next_cursor(next, which));
    Json(json!({ "groups": groups, "next_cursor": next_cursor, "next": next })).into_response()
}

/// Pauses a group in all partitions if any of them knows an operation of it: the next operation may
/// be accepted in another one.
pub(super) async fn pause(routing: &RoutingState, call: RoutedCall) -> Response {
    let response = group(routing, call.clone()).await;
    if response.status() != StatusCode::OK {
        return response;
    }
    let body: &[u8] = if call.body.is_empty() { b"{}" } else { &call.body };
    let Ok(Value::Object(mut body)) = serde_json::from_slice(body) else { return response };
    if body.insert("create".to_owned(), true.into()) == Some(true.into()) {
        return response;
    }
    // Whether it was paused already was decided above; now it is.
    body.remove("strict");
    group(routing, RoutedCall { body: Value::Object(body).to_string().into(), ..call }).await
}

/// One group: shown from the partition where its queue is longest; paused and resumed wherever it
/// may have operations.
pub(super) async fn group(routing: &RoutingState, call: RoutedCall) -> Response {
    let changes = call.method != Method::GET;
    let asked = (0..routing.cluster.partitions())
        .map(|partition| relay::forward_to_partition(routing, partition, &call, call.retry(|| false)));
    let (mut best, mut refused) = (None::<(u64, Response)>, None);
    let (mut done, mut unknown) = (None, None);
    for response in join_all(asked).await {
        let (head, body) = response.into_parts();
        let body = axum::body::to_bytes(body, PARTITION_RESPONSE_LEN_MAX).await.unwrap_or_default();
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (status, response) = (head.status, Response::from_parts(head, body.into()));
        // A partition that does not know the group, or in which it is in that state already, has
        // nothing to do; any other error counts.
        match status {
            StatusCode::OK => {
                let depth = value["depth"].as_u64().unwrap_or(0);
                if best.as_ref().is_none_or(|(most, _)| depth > *most) {
                    best = Some((depth, response));
                }
            }
            StatusCode::NOT_FOUND => unknown = Some(response),
            StatusCode::CONFLICT if value["error"]["field"] == "group" => done = Some(response),
            _ => refused = Some(response),
        }
    }
    match (best, refused) {
        (_, Some(refused)) if changes => refused,
        (Some((_, best)), _) => best,
        (None, Some(refused)) => refused,
        (None, None) => done.or(unknown).unwrap_or_else(|| StatusCode::NOT_FOUND.into_response()),
    }
}

pub(super) async fn limits(routing: &RoutingState, call: RoutedCall) -> Response {
    let mut query = Query::parse(call.target.split_once('?').map_or("", |(_, query)| query));
    let page = api::limits::read_list(&mut query);
    if let Err(error) = query.finish() {
        return ApiError(error).into_response();
    }
    let target = if page.with_history { "/v1/limits?history=true" } else { "/v1/limits" };
    let parts = match ask_partitions(routing, &call, all_targets(routing, target)).await {
        Ok(parts) => parts,
        Err(refused) => return refused,
    };
    let mut merged: BTreeMap<String, Value> = BTreeMap::new();
    for mut part in parts {
        for limit in part.value["limits"].as_array_mut().map(std::mem::take).unwrap_or_default() {
            if let Some(name) = limit["name"].as_str().map(str::to_owned) {
                merged.entry(name).or_insert(limit);
            }
        }
    }
    let (limits, next_cursor) = page
        .select(merged.into_values().collect(), |limit: &Value| limit["name"].as_str().unwrap_or_default());
    Json(json!({ "limits": limits, "next_cursor": next_cursor })).into_response()
}

fn keep_longest(kept: &mut Value, group: Value) {
    if kept.is_null() || group["depth"].as_u64() > kept["depth"].as_u64() {
        *kept = group;
    }
}
