//! Settling a reservation: the bucket takes back what was not used, and adopts what the API behind
//! it reported.

use axum::Json;
use axum::response::IntoResponse;
use serde::Serialize;
use serde_json::value::RawValue;
use tidegate_core::bounds::TOKENS_MAX;
use tidegate_core::shared::bucket::{Level, ReservationRequest, ReserveOutcome, Settlement};

use super::{check_name, no_such_bucket, to_micro};
use crate::api::HandlerResult;
use crate::edge::content::RequestBody;
use crate::error::{Error, ErrorCode, Result};
use crate::state::ServerState;
use crate::wire::field::Field;
use crate::wire::object::{Fields, missing, read};
use crate::wire::response::TokenAmount;

/// `reservation` is another name of `reserved`.
const NAMES: [&str; 6] = ["reserved", "reservation", "actual", "remaining", "capacity", "refill_per_s"];
/// The smallest capacity and refill, in tokens.
const LEAST: f64 = 0.000_001;

/// A settlement as it was sent, in micro-tokens.
struct SettleRequest {
    settlement: Settlement,
    /// What the API reported; `None` where it did not.
    remaining: Option<u64>,
    capacity: Option<u64>,
    refill_per_s: Option<u64>,
}

/// Settles a reservation of the bucket.
pub(super) async fn settle(server: &ServerState, name: &str, body: RequestBody) -> HandlerResult {
    #[derive(Serialize)]
    struct SettledBucketOut {
        tokens_remaining: TokenAmount,
        capacity: TokenAmount,
        refill_per_s: TokenAmount,
    }
    let body = body.read().await?;
    let request = SettleRequest::parse(name, &body)?;
    let level = server.store.settle_bucket(name, request.settlement).await.map_err(Error::from)?;
    let level = level.ok_or_else(|| no_such_bucket(name))?;
    let level = request.teach(server, name, level).await?;
    Ok(Json(SettledBucketOut {
        tokens_remaining: TokenAmount(level.tokens),
        capacity: TokenAmount(level.capacity),
        refill_per_s: TokenAmount(level.refill_per_s),
    })
    .into_response())
}

impl SettleRequest {
    fn parse(name: &str, body: &[u8]) -> Result<Self> {
        let Fields { values: [reserved, reservation, actual, remaining, capacity, refill], mut problems } =
            read(body, &NAMES)?;
        problems.check(check_name(name));
        let reserved = match (reserved, reservation) {
            (Some(_), Some(_)) => Err(reserved_twice()),
            (None, Some(_)) => required("reservation", reservation),
            (_, None) => required("reserved", reserved),
        };
        let reserved = problems.check(reserved);
        let actual = problems.check(required("actual", actual));
        let remaining = problems.check(figure("remaining", remaining, 0.0));
        let capacity = problems.check(figure("capacity", capacity, LEAST));
        let refill_per_s = problems.check(figure("refill_per_s", refill, LEAST));
        problems.finish()?;
        Ok(Self { settlement: Settlement { reserved, actual }, remaining, capacity, refill_per_s })
    }

    /// Makes the bucket adopt the reported figures, and lowers it to the reported level. These are
    /// steps of their own: between them others may take, which errs on the safe side.
    async fn teach(&self, server: &ServerState, name: &str, mut level: Level) -> Result<Level> {
        let capacity = self.capacity.unwrap_or(level.capacity);
        let refill_per_s = self.refill_per_s.unwrap_or(level.refill_per_s);
        if (capacity, refill_per_s) != (level.capacity, level.refill_per_s) {
            // A bucket adopts the figures of the last request, even of one that takes nothing.
            let figures = ReservationRequest { name: name.to_owned(), cost: 0, capacity, refill_per_s };
            let reserved = server.store.reserve(vec![figures]).await?;
            (level.capacity, level.refill_per_s) = (capacity, refill_per_s);
            if let ReserveOutcome::Granted { remaining } = reserved {
                level.tokens = remaining.first().copied().unwrap_or(level.tokens);
            }
        }
        match self.remaining.and_then(|remaining| level.lowering_to(remaining)) {
            Some(lower) => Ok(server.store.settle_bucket(name, lower).await?.unwrap_or(level)),
            None => Ok(level),
        }
    }
}

/// Parses a field in tokens, if it was sent.
fn figure(name: &'static str, raw: Option<&RawValue>, least: f64) -> Result<Option<u64>> {
    Ok(Field { name, raw }.figure(least..=TOKENS_MAX as f64)?.map(to_micro))
}

fn required(name: &'static str, raw: Option<&RawValue>) -> Result<u64> {
    figure(name, raw, 0.0)?.ok_or_else(|| missing(name))
}

fn reserved_twice() -> Error {
    let message = "The fields \"reserved\" and \"reservation\" mean the same: send one of them.";
    Error::new(ErrorCode::Malformed, message).field("reservation")
}
