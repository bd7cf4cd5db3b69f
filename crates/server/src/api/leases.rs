//! Named leases for any process: acquired if free, renewed and released only by the holder, with a
//! fencing token that grows; and their state, for operators.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_core::Time;
use tidegate_core::bounds::NAMED_LEASE_TTL_MAX;
use tidegate_core::shared::lease::{AcquireOutcome, Lease, LeaseStatus};
use tidegate_core::time::millis_up;
use tidegate_store::NamedPage;
use tidegate_store::hints::lease_topic;

use super::HandlerResult;
use super::buckets::check_name;
use crate::edge::content::RequestBody;
use crate::edge::query::Query;
use crate::error::{Error, ErrorCode, Result};
use crate::state::ServerState;
use crate::wire::cursor;
use crate::wire::field::Field;
use crate::wire::object::{Fields, missing, read, truncate_name};
use crate::wire::time::Timestamp;

const TTL_DEFAULT_MS: u64 = 30_000;
const PREFIX: &str = "lease_";
/// The list that its cursors belong to.
const LIST: &str = "leases";

#[derive(Serialize)]
struct LeaseGrantOut {
    held: bool,
    /// The token that renewing and releasing need.
    token: Option<String>,
    fence: Option<u64>,
    /// When the lease of the caller, or of the current holder, expires.
    expires_at: Option<Timestamp>,
}

impl LeaseGrantOut {
    fn held(lease: Lease) -> Self {
        let token = Some(format!("{PREFIX}{:x}", lease.fence));
        Self { held: true, token, fence: Some(lease.fence), expires_at: Some(Timestamp(lease.until)) }
    }

    const fn not_held(expires_at: Option<Timestamp>) -> Self {
        Self { held: false, token: None, fence: None, expires_at }
    }
}

pub(super) async fn acquire(
    State(server): State<Arc<ServerState>>,
    Path(name): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    check_name(&name)?;
    let body = body.read().await?;
    let Fields { values: [ttl], mut problems } =
        if body.is_empty() { Fields::empty() } else { read(&body, &["ttl_ms"])? };
    let ttl = problems.check(parse_ttl(ttl));
    problems.finish()?;
    let acquired = server.store.acquire_lease(&name, ttl).await.map_err(Error::from)?;
    let out = match acquired {
        AcquireOutcome::Held(lease) => LeaseGrantOut::held(lease),
        AcquireOutcome::Busy { until } => LeaseGrantOut::not_held(Some(Timestamp(until))),
    };
    Ok(Json(out).into_response())
}

pub(super) async fn renew(
    State(server): State<Arc<ServerState>>,
    Path(name): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    check_name(&name)?;
    let body = body.read().await?;
    let Fields { values: [token, ttl], mut problems } = read(&body, &["token", "ttl_ms"])?;
    let (fence, ttl) = (problems.check(parse_fence(token)), problems.check(parse_ttl(ttl)));
    problems.finish()?;
    let renewed = server.store.renew_lease(&name, lease_with_fence(fence), ttl).await.map_err(Error::from)?;
    Ok(Json(renewed.map_or_else(|| LeaseGrantOut::not_held(None), LeaseGrantOut::held)).into_response())
}

pub(super) async fn release(
    State(server): State<Arc<ServerState>>,
    Path(name): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    #[derive(Serialize)]
    struct ReleasedLeaseOut {
        released: bool,
    }
    check_name(&name)?;
    let body = body.read().await?;
    let Fields { values: [token], mut problems } = read(&body, &["token"])?;
    let fence = problems.check(parse_fence(token));
    problems.finish()?;
    let released = server.store.release_lease(&name, lease_with_fence(fence)).await.map_err(Error::from)?;
    if released {
        // Programs that wait for it with the library poll at once; without the hint, later.
        let _ = server.store.notify(&lease_topic(&name), &fence.to_string()).await;
    }
    Ok(Json(ReleasedLeaseOut { released }).into_response())
}

fn parse_ttl(raw: Option<&serde_json::value::RawValue>) -> Result<Duration> {
    let ttl = Field { name: "ttl_ms", raw }.integer(1..=millis_up(NAMED_LEASE_TTL_MAX))?;
    Ok(Duration::from_millis(ttl.unwrap_or(TTL_DEFAULT_MS)))
}

/// The lease that a fence proves; the store knows when it expires.
const fn lease_with_fence(fence: u64) -> Lease {
    Lease { fence, until: Time::ZERO }
}

/// Parses the fence of a token.
fn parse_fence(raw: Option<&serde_json::value::RawValue>) -> Result<u64> {
    let token = Field { name: "token", raw }.text()?.ok_or_else(|| missing("token"))?;
    let fence = token.strip_prefix(PREFIX).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    fence.ok_or_else(|| {
        Error::new(ErrorCode::Invalid, "The field \"token\" must be the token that acquire returned.")
            .field("token")
    })
}

/// The state of a lease.
#[derive(Serialize)]
struct LeaseOut {
    name: String,
    held: bool,
    /// The last fence that was issued.
    fence: u64,
    expires_at: Option<Timestamp>,
}

impl LeaseOut {
    fn new((name, status): (String, LeaseStatus)) -> Self {
        let expires_at = status.held_until.map(Timestamp);
        Self { name, held: expires_at.is_some(), fence: status.fence, expires_at }
    }
}

pub(super) async fn show(
    State(server): State<Arc<ServerState>>,
    Path(name): Path<String>,
    query: Query,
) -> HandlerResult {
    query.finish()?;
    check_name(&name)?;
    let status = server.store.lease_status(&name).await.map_err(Error::from)?.ok_or_else(|| {
        let message = format!("The lease {:?} was never held.", truncate_name(&name));
        Error::new(ErrorCode::NoLimit, message).field("name")
    })?;
    Ok(Json(LeaseOut::new((name, status))).into_response())
}

pub(super) async fn list(State(server): State<Arc<ServerState>>, mut query: Query) -> HandlerResult {
    #[derive(Serialize)]
    struct LeasesOut {
        leases: Vec<LeaseOut>,
        next_cursor: Option<String>,
    }
    let limit = query.limit();
    let after = query.read("cursor", |text| cursor::read_text(text, LIST));
    query.finish()?;
    let NamedPage { items, next } = server.store.list_leases(after, limit).await.map_err(Error::from)?;
    let next_cursor = next.map(|next| cursor::write_text(&next, LIST));
    Ok(Json(LeasesOut { leases: items.into_iter().map(LeaseOut::new).collect(), next_cursor })
        .into_response())
}
