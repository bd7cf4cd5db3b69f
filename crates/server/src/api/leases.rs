//! Named leases for any process: taken if free, kept and given back only by the holder, with a fence that grows.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate::{Code, Error, Result};
use tidegate_core::Time;
use tidegate_core::bounds::NAMED_LEASE_TTL_MAX;
use tidegate_core::shared::lease::{Acquired, Lease};
use tidegate_core::time::millis_up;

use super::Answer;
use super::buckets::check_name;
use crate::app::House;
use crate::edge::content;
use crate::wire::field::Field;
use crate::wire::object::{missing, read};
use crate::wire::time::At;

const TTL_DEFAULT_MS: u64 = 30_000;
const PREFIX: &str = "lease_";

#[derive(Serialize)]
struct Out {
    held: bool,
    /// What renewing and releasing ask for.
    token: Option<String>,
    fence: Option<u64>,
    /// Of the caller's lease, or of whoever has it.
    expires_at: Option<At>,
}

impl Out {
    fn held(lease: Lease) -> Self {
        let token = Some(format!("{PREFIX}{:x}", lease.fence));
        Self { held: true, token, fence: Some(lease.fence), expires_at: Some(At(lease.until)) }
    }

    const fn not_held(expires_at: Option<At>) -> Self {
        Self { held: false, token: None, fence: None, expires_at }
    }
}

pub(super) async fn acquire(State(house): State<Arc<House>>, Path(name): Path<String>, body: Body) -> Answer {
    check_name(&name)?;
    let body = content::read(body, content::SMALL_MAX, house.read_timeout).await?;
    let [ttl] = if body.is_empty() { [None] } else { read(&body, &["ttl_ms"])? };
    let acquired = house.store.acquire_lease(&name, ttl_of(ttl)?).await.map_err(Error::from)?;
    let out = match acquired {
        Acquired::Held(lease) => Out::held(lease),
        Acquired::Busy { until } => Out::not_held(Some(At(until))),
    };
    Ok(Json(out).into_response())
}

pub(super) async fn renew(State(house): State<Arc<House>>, Path(name): Path<String>, body: Body) -> Answer {
    check_name(&name)?;
    let body = content::read(body, content::SMALL_MAX, house.read_timeout).await?;
    let [token, ttl] = read(&body, &["token", "ttl_ms"])?;
    let lease = held_by(token)?;
    let renewed = house.store.renew_lease(&name, lease, ttl_of(ttl)?).await.map_err(Error::from)?;
    Ok(Json(renewed.map_or_else(|| Out::not_held(None), Out::held)).into_response())
}

pub(super) async fn release(State(house): State<Arc<House>>, Path(name): Path<String>, body: Body) -> Answer {
    #[derive(Serialize)]
    struct Released {
        released: bool,
    }
    check_name(&name)?;
    let body = content::read(body, content::SMALL_MAX, house.read_timeout).await?;
    let [token] = read(&body, &["token"])?;
    let released = house.store.release_lease(&name, held_by(token)?).await.map_err(Error::from)?;
    Ok(Json(Released { released }).into_response())
}

fn ttl_of(raw: Option<&serde_json::value::RawValue>) -> Result<Duration> {
    let ttl = Field { name: "ttl_ms", raw }.integer(1..=millis_up(NAMED_LEASE_TTL_MAX))?;
    Ok(Duration::from_millis(ttl.unwrap_or(TTL_DEFAULT_MS)))
}

/// The lease that a token proves; the store knows until when.
fn held_by(raw: Option<&serde_json::value::RawValue>) -> Result<Lease> {
    let token = Field { name: "token", raw }.text()?.ok_or_else(|| missing("token"))?;
    let fence = token.strip_prefix(PREFIX).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let fence = fence.ok_or_else(|| {
        Error::new(Code::Invalid, "The field \"token\" must be what acquiring answered.").field("token")
    })?;
    Ok(Lease { fence, until: Time::ZERO })
}
