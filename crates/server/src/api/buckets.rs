//! Stand-alone buckets for any process: take or say when, in one step, from one or several at once. They belong to
//! nobody and to no upstream; the figures travel with the call, and a call without figures goes by those of the last.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use serde::Serialize;
use serde_json::value::RawValue;
use tidegate::{Code, Error, Result};
use tidegate_core::bounds::{BUCKETS_MAX, NAME_LEN_MAX, TOKENS_MAX};
use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::{Reserve, Reserved};
use tidegate_core::time::millis_up;

use super::Answer;
use crate::app::House;
use crate::edge::content;
use crate::wire::field::Field;
use crate::wire::object::{missing, read, shown};

const NAMES: [&str; 4] = ["cost", "capacity", "refill_per_s", "with"];
const MORE_NAMES: [&str; 4] = ["name", "cost", "capacity", "refill_per_s"];

#[derive(Serialize)]
struct Out {
    allowed: bool,
    delay_ms: u64,
    /// Of the bucket in the path.
    tokens_remaining: f64,
    /// Of the others, in the order asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    with: Vec<f64>,
}

pub(super) async fn reserve(State(house): State<Arc<House>>, Path(path): Path<String>, body: Body) -> Answer {
    let Some(name) = path.strip_suffix("/reserve") else {
        let message = format!("There is nothing at /v1/limits/{} that takes POST.", shown(&path));
        return Err(Error::new(Code::NoRoute, message).into());
    };
    let body = content::read(body, content::SMALL_MAX, house.read_timeout).await?;
    let [cost, capacity, refill, with] = read(if body.is_empty() { b"{}" } else { &body }, &NAMES)?;
    let mut wanted = vec![want(&house, name.to_owned(), [cost, capacity, refill]).await?];
    for more in others(with)? {
        let [name, cost, capacity, refill] = read(more.get().as_bytes(), &MORE_NAMES)?;
        let name = Field { name: "with.name", raw: name }.needed()?;
        wanted.push(want(&house, name, [cost, capacity, refill]).await?);
    }
    let reserved = house.store.reserve(wanted.clone()).await.map_err(refused)?;
    let tokens = |micro: u64| micro as f64 / MICRO as f64;
    let (allowed, delay_ms, remaining) = match reserved {
        Reserved::Granted { remaining } => (true, 0, remaining),
        Reserved::Wait { delay, remaining } => (false, millis_up(delay), remaining),
        Reserved::Never { which } => {
            let want = &wanted[which.min(wanted.len() - 1)];
            let (cost, capacity) = (tokens(want.cost), tokens(want.capacity));
            let message = format!(
                "It costs {cost} of {:?}, which never holds more than {capacity}.",
                shown(&want.name)
            );
            return Err(Error::new(Code::TooCostly, message).field("cost").into());
        }
    };
    let mut remaining = remaining.into_iter().map(tokens);
    let tokens_remaining = remaining.next().unwrap_or_default();
    Ok(Json(Out { allowed, delay_ms, tokens_remaining, with: remaining.collect() }).into_response())
}

fn others(with: Option<&RawValue>) -> Result<Vec<&RawValue>> {
    let wrong = || {
        let message = format!("The field \"with\" must be a list of at most {} buckets.", BUCKETS_MAX - 1);
        Error::new(Code::Malformed, message).field("with")
    };
    let Some(with) = with.filter(|with| with.get() != "null") else { return Ok(Vec::new()) };
    let others: Vec<&RawValue> = serde_json::from_str(with.get()).map_err(|_| wrong())?;
    if others.len() >= BUCKETS_MAX { Err(wrong()) } else { Ok(others) }
}

/// What is wanted of one bucket, with the figures that were sent or those it has.
async fn want(house: &House, name: String, fields: [Option<&RawValue>; 3]) -> Result<Reserve> {
    check_name(&name)?;
    let most = TOKENS_MAX as f64;
    let field = |place: usize| Field { name: NAMES[place], raw: fields[place] };
    let micro = |tokens: f64| (tokens * MICRO as f64).round() as u64;
    let cost = micro(field(0).figure(0.0..=most)?.unwrap_or(1.0));
    let capacity = field(1).figure(0.000_001..=most)?.map(micro);
    let refill = field(2).figure(0.000_001..=most)?.map(micro);
    let (capacity, refill_per_s) = match (capacity, refill) {
        (Some(capacity), Some(refill)) => (capacity, refill),
        (None, None) => {
            let level = house.store.observe_bucket(&name).await?.ok_or_else(|| {
                let message =
                    format!("There is no bucket {:?} yet: send capacity and refill_per_s.", shown(&name));
                Error::new(Code::NoLimit, message).field("capacity")
            })?;
            (level.capacity, level.refill_per_s)
        }
        (Some(_), None) => return Err(missing("refill_per_s")),
        (None, Some(_)) => return Err(missing("capacity")),
    };
    Ok(Reserve { name, cost, capacity, refill_per_s })
}

pub(super) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_LEN_MAX || name.chars().any(char::is_control) {
        let message = format!("A name is 1 to {NAME_LEN_MAX} bytes on one line.");
        return Err(Error::new(Code::Invalid, message).field("name"));
    }
    Ok(())
}

/// What a store finds wrong with a call is the caller's business here.
fn refused(error: tidegate_store::Error) -> Error {
    match error.kind() {
        tidegate_store::Kind::Invalid => Error::new(Code::Invalid, error.to_string()).field("with"),
        _ => error.into(),
    }
}
