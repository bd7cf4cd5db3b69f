//! Stand-alone token buckets for any process: reserve tokens or learn when to retry, in one step,
//! from one or several buckets. They belong to no owner and no upstream; the figures come with the
//! request, and a request without figures uses those of the last one.

mod settle;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Method};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::value::RawValue;
use tidegate_core::bounds::{BUCKETS_MAX, NAME_LEN_MAX, TOKENS_MAX};
use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::{Level, ReservationRequest, ReserveOutcome};
use tidegate_core::time::millis_up;
use tidegate_store::NamedPage;

use super::HandlerResult;
use crate::edge::auth::Caller;
use crate::edge::content::RequestBody;
use crate::edge::query::Query;
use crate::error::{Error, ErrorCode, Result};
use crate::state::ServerState;
use crate::wire::cursor;
use crate::wire::error::wrong_method;
use crate::wire::field::Field;
use crate::wire::object::{Fields, missing, read, truncate_name};
use crate::wire::problems::RequestProblems;
use crate::wire::response::TokenAmount;

const NAMES: [&str; 4] = ["cost", "capacity", "refill_per_s", "with"];
const MORE_NAMES: [&str; 4] = ["name", "cost", "capacity", "refill_per_s"];
/// The list that its cursors belong to.
const LIST: &str = "buckets";

#[derive(Serialize)]
struct ReserveOut {
    allowed: bool,
    delay_ms: u64,
    /// The tokens left in the bucket in the path.
    tokens_remaining: f64,
    /// The tokens left in the others, in the order of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    with: Vec<f64>,
}

/// The state of a bucket.
#[derive(Serialize)]
struct BucketOut {
    name: String,
    capacity: TokenAmount,
    refill_per_s: TokenAmount,
    tokens_remaining: TokenAmount,
}

impl BucketOut {
    fn new((name, level): (String, Level)) -> Self {
        Self {
            name,
            capacity: TokenAmount(level.capacity),
            refill_per_s: TokenAmount(level.refill_per_s),
            tokens_remaining: TokenAmount(level.tokens),
        }
    }
}

pub(super) async fn list(State(server): State<Arc<ServerState>>, mut query: Query) -> HandlerResult {
    #[derive(Serialize)]
    struct BucketsOut {
        buckets: Vec<BucketOut>,
        next_cursor: Option<String>,
    }
    let limit = query.limit();
    let after = query.read("cursor", |text| cursor::read_text(text, LIST));
    query.finish()?;
    let NamedPage { items, next } = server.store.list_buckets(after, limit).await.map_err(Error::from)?;
    let next_cursor = next.map(|next| cursor::write_text(&next, LIST));
    Ok(Json(BucketsOut { buckets: items.into_iter().map(BucketOut::new).collect(), next_cursor })
        .into_response())
}

pub(super) async fn show(
    State(server): State<Arc<ServerState>>,
    Path(name): Path<String>,
    query: Query,
) -> HandlerResult {
    query.finish()?;
    check_name(&name)?;
    let level = server.store.observe_bucket(&name).await.map_err(Error::from)?;
    let level = level.ok_or_else(|| no_such_bucket(&name))?;
    Ok(Json(BucketOut::new((name, level))).into_response())
}

/// Deletes a bucket: its next use creates it again, full.
pub(super) async fn delete(
    State(server): State<Arc<ServerState>>,
    Extension(Caller(caller)): Extension<Caller>,
    Path(name): Path<String>,
) -> HandlerResult {
    #[derive(Serialize)]
    struct DeletedBucketOut {
        name: String,
        deleted: bool,
    }
    check_name(&name)?;
    if !server.store.forget_bucket(&name).await.map_err(Error::from)? {
        return Err(no_such_bucket(&name).into());
    }
    tracing::info!(bucket = name, by = &*caller, "bucket deleted");
    Ok(Json(DeletedBucketOut { name, deleted: true }).into_response())
}

fn no_such_bucket(name: &str) -> Error {
    Error::new(ErrorCode::NoLimit, format!("There is no bucket {:?}.", truncate_name(name))).field("name")
}

/// Handles a POST to a bucket.
pub(super) async fn post(
    State(server): State<Arc<ServerState>>,
    Path(path): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    post_below(&server, "buckets", &path, body).await
}

/// The same under the first path that reservations had.
pub(super) async fn post_to_limit(
    State(server): State<Arc<ServerState>>,
    Path(path): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    post_below(&server, "limits", &path, body).await
}

/// A bucket's name may contain slashes, so the action after it is parsed here.
async fn post_below(server: &ServerState, list: &str, path: &str, body: RequestBody) -> HandlerResult {
    if let Some(name) = path.strip_suffix("/reserve") {
        return reserve(server, name, body).await;
    }
    if let Some(name) = path.strip_suffix("/settle") {
        return settle::settle(server, name, body).await;
    }
    let allowed = HeaderValue::from_static(if list == "limits" { "GET,HEAD,PUT" } else { "GET,HEAD,DELETE" });
    let mut refused = wrong_method(&Method::POST);
    refused.headers_mut().insert(ALLOW, allowed);
    Ok(refused)
}

async fn reserve(server: &ServerState, name: &str, body: RequestBody) -> HandlerResult {
    let body = body.read().await?;
    let mut wanted = Vec::new();
    let wants = parse_reserve_requests(name, if body.is_empty() { b"{}" } else { &body })?;
    for (which, want) in wants.into_iter().enumerate() {
        let complete = want.into_reserve(server).await;
        wanted.push(complete.map_err(|error| match which.checked_sub(1) {
            Some(place) => at_place(place, error),
            None => error,
        })?);
    }
    let reserved = server.store.reserve(wanted.clone()).await.map_err(map_store_error)?;
    let (allowed, delay_ms, remaining) = match reserved {
        ReserveOutcome::Granted { remaining } => (true, 0, remaining),
        ReserveOutcome::Wait { delay, remaining } => (false, millis_up(delay), remaining),
        ReserveOutcome::Never { which } => {
            let want = &wanted[which.min(wanted.len() - 1)];
            let (cost, capacity) = (to_tokens(want.cost), to_tokens(want.capacity));
            let message = format!(
                "It costs {cost} of {:?}, which never holds more than {capacity}.",
                truncate_name(&want.name)
            );
            let field =
                which.checked_sub(1).map_or_else(|| "cost".to_owned(), |at| format!("with[{at}].cost"));
            return Err(Error::new(ErrorCode::TooCostly, message).field(field).into());
        }
    };
    let mut remaining = remaining.into_iter().map(to_tokens);
    let tokens_remaining = remaining.next().unwrap_or_default();
    Ok(Json(ReserveOut { allowed, delay_ms, tokens_remaining, with: remaining.collect() }).into_response())
}

fn to_tokens(micro: u64) -> f64 {
    micro as f64 / MICRO as f64
}

fn to_micro(tokens: f64) -> u64 {
    (tokens * MICRO as f64).round() as u64
}

/// A reservation from one bucket, as it was sent.
#[derive(Default)]
struct ReserveRequest {
    name: String,
    cost: u64,
    /// Capacity and refill per second, if they were sent.
    figures: Option<(u64, u64)>,
}

/// Parses the reservations from the bucket in the path and from those in the body.
fn parse_reserve_requests(name: &str, body: &[u8]) -> Result<Vec<ReserveRequest>> {
    let Fields { values: [cost, capacity, refill, with], mut problems } = read(body, &NAMES)?;
    let own = ReserveRequest::read(name.to_owned(), [cost, capacity, refill]);
    let mut wants = vec![problems.check(own)];
    for (place, more) in problems.check(parse_with(with)).into_iter().enumerate() {
        wants.push(problems.check(parse_other(more).map_err(|error| at_place(place, error))));
    }
    problems.finish()?;
    Ok(wants)
}

/// Names the fields of one of the other buckets.
fn at_place(place: usize, mut error: Error) -> Error {
    error.also = std::mem::take(&mut error.also).into_iter().map(|also| at_place(place, also)).collect();
    let field = error.field.take().map_or_else(String::new, |field| format!(".{field}"));
    error.field(format!("with[{place}]{field}"))
}

fn parse_other(raw: &RawValue) -> Result<ReserveRequest> {
    let Fields { values: [name, cost, capacity, refill], mut problems } =
        read(raw.get().as_bytes(), &MORE_NAMES)?;
    let name = problems.check(Field { name: "name", raw: name }.required_text());
    problems.finish()?;
    ReserveRequest::read(name, [cost, capacity, refill])
}

fn parse_with(with: Option<&RawValue>) -> Result<Vec<&RawValue>> {
    let wrong = || {
        let message = format!("The field \"with\" must be a list of at most {} buckets.", BUCKETS_MAX - 1);
        Error::new(ErrorCode::Malformed, message).field("with")
    };
    let Some(with) = with.filter(|with| with.get() != "null") else { return Ok(Vec::new()) };
    let others: Vec<&RawValue> = serde_json::from_str(with.get()).map_err(|_| wrong())?;
    if others.len() >= BUCKETS_MAX { Err(wrong()) } else { Ok(others) }
}

impl ReserveRequest {
    fn read(name: String, fields: [Option<&RawValue>; 3]) -> Result<Self> {
        let mut problems = RequestProblems::default();
        problems.check(check_name(&name));
        let most = TOKENS_MAX as f64;
        let field = |place: usize| Field { name: NAMES[place], raw: fields[place] };
        let cost = problems.check(field(0).figure(0.0..=most)).map_or(MICRO, to_micro);
        let [capacity, refill] =
            [1, 2].map(|place| field(place).figure(0.000_001..=most).map(|figure| figure.map(to_micro)));
        let figures = match (capacity, refill) {
            (Ok(Some(_)), Ok(None)) => Err(missing("refill_per_s")),
            (Ok(None), Ok(Some(_))) => Err(missing("capacity")),
            (capacity, refill) => Ok(problems.check(capacity).zip(problems.check(refill))),
        };
        let figures = problems.check(figures);
        problems.finish()?;
        Ok(Self { name, cost, figures })
    }

    /// Completes the reservation with the figures that were sent, or those that the bucket has.
    async fn into_reserve(self, server: &ServerState) -> Result<ReservationRequest> {
        let Self { name, cost, figures } = self;
        let (capacity, refill_per_s) = match figures {
            Some(figures) => figures,
            None => {
                let level = server.store.observe_bucket(&name).await?.ok_or_else(|| {
                    let message = format!(
                        "There is no bucket {:?} yet: send capacity and refill_per_s.",
                        truncate_name(&name)
                    );
                    Error::new(ErrorCode::NoLimit, message).field("capacity")
                })?;
                (level.capacity, level.refill_per_s)
            }
        };
        Ok(ReservationRequest { name, cost, capacity, refill_per_s })
    }
}

pub(super) fn check_name(name: &str) -> Result<()> {
    if !tidegate_core::shared::is_name(name) {
        let message = format!("A name is 1 to {NAME_LEN_MAX} bytes on one line.");
        return Err(Error::new(ErrorCode::Invalid, message).field("name"));
    }
    Ok(())
}

/// Maps a store's complaint about a request to an error of the caller.
fn map_store_error(error: tidegate_store::Error) -> Error {
    match error.kind() {
        tidegate_store::StoreErrorKind::Invalid => {
            Error::new(ErrorCode::Invalid, error.to_string()).field("with").with_source(error)
        }
        _ => error.into(),
    }
}
