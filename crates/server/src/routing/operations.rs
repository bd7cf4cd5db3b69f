//! A list of operations over all partitions: a page of each, merged by id, newest first. A
//! partition whose operations did not all fit continues below the last one that did.

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tidegate::Filter;
use tidegate_core::id::{Partition, seq_end};
use tidegate_core::{OperationId, Seq, Time};

use super::cursor::{self, PartitionCursor};
use super::fan_out::{self, PartitionAnswer};
use super::{RoutedCall, RoutingState};
use crate::api::operations as api_operations;
use crate::edge::query::Query;
use crate::error::Result;
use crate::wire::cursor as cursor_of_one;
use crate::wire::error::ApiError;
use crate::wire::outcome_filter::given_parts;
use crate::wire::time::Timestamp;

pub(super) async fn list(routing: &RoutingState, call: RoutedCall) -> Response {
    match page(routing, &call).await {
        Ok(response) => response,
        Err(error) => ApiError(error).into_response(),
    }
}

async fn page(routing: &RoutingState, call: &RoutedCall) -> Result<Response> {
    let mut query = Query::parse(call.target.split_once('?').map_or("", |(_, query)| query));
    let filter = api_operations::read_filter(&mut query);
    let limit = filter.limit;
    let given = query.take("cursor");
    query.finish()?;
    let words = filter_query(&filter);
    let count = routing.cluster.partitions();
    let mut places = match given {
        Some(text) => cursor::read(&text, &words, count)?,
        None => vec![PartitionCursor::Start; usize::from(count)],
    };
    let targets = (0..count).zip(&places).filter_map(|(partition, place)| {
        let cursor = match place {
            PartitionCursor::End => return None,
            PartitionCursor::Start => String::new(),
            PartitionCursor::Below(seq) => {
                let id = OperationId::new(Time::ZERO, partition, *seq);
                format!("&cursor={}", cursor_of_one::write(id, &filter))
            }
        };
        Some((partition, format!("/v1/operations?limit={limit}{words}{cursor}")))
    });
    let parts = match fan_out::ask_partitions(routing, call, targets.collect()).await {
        Ok(parts) => parts,
        Err(refused) => return Ok(refused),
    };
    let pages = parts.into_iter().map(|part| PartitionPage::read(part, &filter)).collect();
    let (shown, more) = merge(pages, &mut places, limit);
    let operations: Vec<Value> = shown.into_iter().map(|(_, value)| value).collect();
    let next = more.then(|| cursor::write(&places, &words));
    Ok(Json(json!({ "operations": operations, "next_cursor": next })).into_response())
}

/// The filter as a query for each partition.
fn filter_query(filter: &Filter) -> String {
    let encode = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    let pair = |name: &str, value: Option<&str>| {
        value.map_or_else(String::new, |value| format!("&{name}={}", encode(value)))
    };
    let states: Vec<_> = filter.states.iter().map(|state| state.as_str()).collect();
    let states = (!states.is_empty()).then(|| states.join(","));
    let time = |time: Option<Time>| time.map(|time| Timestamp(time).to_string());
    let outcome = given_parts(&filter.outcome).map(|(name, value)| pair(name, Some(&value)));
    let outcome: String = outcome.collect();
    pair("group", filter.group.as_deref())
        + &pair("kind", filter.kind.as_deref())
        + &pair("state", states.as_deref())
        + &pair("upstream", filter.upstream.as_deref())
        + &pair("dedupe_key", filter.dedupe_key.as_deref())
        + &pair("id_end", filter.seq.map(seq_end).as_deref())
        + &pair("created_after", time(filter.created_after).as_deref())
        + &pair("created_before", time(filter.created_before).as_deref())
        + &outcome
}

/// A page of one partition.
struct PartitionPage<T> {
    partition: Partition,
    items: Vec<(OperationId, T)>,
    /// Where its list continues.
    next: Option<Seq>,
}

impl PartitionPage<Value> {
    fn read(mut part: PartitionAnswer, filter: &Filter) -> Self {
        let next = part.value["next_cursor"].as_str().and_then(|text| cursor_of_one::read(text, filter).ok());
        let items = part.value["operations"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let items = items.into_iter().filter_map(|item| Some((item["id"].as_str()?.parse().ok()?, item)));
        Self { partition: part.partition, items: items.collect(), next: next.map(OperationId::seq) }
    }
}

/// Merges the newest operations of all pages, advances each partition's position, and returns
/// whether there are more.
fn merge<T>(
    pages: Vec<PartitionPage<T>>,
    places: &mut [PartitionCursor],
    limit: usize,
) -> (Vec<(OperationId, T)>, bool) {
    let mut items = Vec::new();
    let mut ends = Vec::new();
    for page in pages {
        ends.push((page.partition, page.items.len(), page.next));
        items.extend(page.items);
    }
    items.sort_by_key(|(id, _)| std::cmp::Reverse(*id));
    items.truncate(limit);
    for (partition, count, next) in ends {
        let place = &mut places[usize::from(partition)];
        let shown = items.iter().filter(|(id, _)| id.partition() == partition);
        let (shown, last) = shown.fold((0, None), |(shown, _), (id, _)| (shown + 1, Some(id.seq())));
        *place = match (shown == count, next, last) {
            (true, Some(next), _) => PartitionCursor::Below(next),
            (true, None, _) => PartitionCursor::End,
            (false, _, Some(last)) => PartitionCursor::Below(last),
            (false, _, None) => *place,
        };
    }
    let more = places.iter().any(|place| *place != PartitionCursor::End);
    (items, more)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Paging returns every matching operation once, newest first, whatever the lengths of the
        /// pages, even when a partition scanned operations of which none matches.
        #[test]
        fn pages_cover_everything_once(
            times in prop::collection::vec(prop::collection::vec(0_u64..1_000, 0..30), 1..5),
            limit in 1_usize..12,
            bound in 1_usize..12,
            every in 1_u64..6,
        ) {
            let all: Vec<Vec<OperationId>> = (0..).zip(&times).map(|(partition, times)| {
                let mut times = times.clone();
                times.sort_unstable();
                (1..).zip(times).map(|(seq, at)| OperationId::new(Time::from_millis(at), partition, Seq(seq))).collect()
            }).collect();
            let mut places = vec![PartitionCursor::Start; all.len()];
            let mut seen = Vec::new();
            loop {
                let pages = (0..).zip(&all).filter_map(|(partition, ids)| {
                    let below = match places[usize::from(partition)] {
                        PartitionCursor::Start => Seq(u64::MAX),
                        PartitionCursor::Below(seq) => seq,
                        PartitionCursor::End => return None,
                    };
                    let mut left = ids.iter().rev().filter(|id| id.seq() < below).copied();
                    let looked_at: Vec<_> = left.by_ref().take(limit.min(bound)).collect();
                    let next = left.next().and_then(|_| looked_at.last().map(|id| id.seq()));
                    let items = looked_at.into_iter().filter(|id| id.seq().0.is_multiple_of(every));
                    Some(PartitionPage { partition, items: items.map(|id| (id, ())).collect(), next })
                }).collect();
                let (shown, more) = merge(pages, &mut places, limit);
                prop_assert!(shown.len() <= limit);
                prop_assert!(shown.iter().is_sorted_by_key(|(id, ())| std::cmp::Reverse(*id)));
                prop_assert!(!shown.is_empty() || !more || every > 1);
                seen.extend(shown.into_iter().map(|(id, ())| id));
                if !more {
                    break;
                }
            }
            let expected = all.into_iter().flatten().filter(|id| id.seq().0.is_multiple_of(every));
            let mut expected: Vec<_> = expected.collect();
            expected.sort_unstable();
            seen.sort_unstable();
            prop_assert_eq!(seen, expected);
        }
    }
}
