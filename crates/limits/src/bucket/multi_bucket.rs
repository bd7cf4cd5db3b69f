//! Taking from several buckets in one step, all or nothing. A waiter for several buckets stands in
//! the queue of the first one named.

use std::time::Duration;

use tidegate_core::bounds::BUCKETS_MAX;
use tidegate_core::shared::bucket::{ReservationRequest, ReserveOutcome};
use tokio::time::Instant;

use super::{SharedBucket, TokenTakeOutcome, Wait, too_costly};
use crate::{Error, Grant, Result, Tokens};

/// Takes from every bucket, or from none and returns the longest delay among them. Asks the store
/// once and bypasses the queues.
///
/// # Errors
/// `Invalid` for no bucket or more than 8, for a bucket that is named twice, or for buckets of
/// different stores or with different fixed shares; `TooCostly`; or the store's error. Nothing is
/// granted then.
pub async fn try_take_all(wanted: &[(&SharedBucket, Tokens)]) -> Result<TokenTakeOutcome<Vec<Grant>>> {
    let (first, wants) = combine(wanted).await?;
    let reserved = first.inner.reserve_step(wants.clone()).await?;
    combined_outcome(reserved, wanted, &wants)
}

/// Takes from every bucket, waiting as long as necessary. Waiters stand in the queue of the first
/// bucket and hold up whoever is behind them there: name the narrowest bucket first, and the one
/// that all share last.
///
/// # Errors
/// As for [`try_take_all`].
pub async fn take_all(wanted: &[(&SharedBucket, Tokens)]) -> Result<Vec<Grant>> {
    loop {
        let (first, wants) = combine(wanted).await?;
        let reserved = first.reserve(wants.clone(), None).await?;
        if let TokenTakeOutcome::Granted(grants) = combined_outcome(reserved, wanted, &wants)? {
            return Ok(grants);
        }
    }
}

/// Takes from every bucket, waiting for at most `patience`.
///
/// # Errors
/// As for [`try_take_all`].
pub async fn take_all_within(
    wanted: &[(&SharedBucket, Tokens)],
    patience: Duration,
) -> Result<TokenTakeOutcome<Vec<Grant>>> {
    let (first, wants) = combine(wanted).await?;
    let reserved = first.reserve(wants.clone(), Instant::now().checked_add(patience)).await?;
    combined_outcome(reserved, wanted, &wants)
}

/// Combines the requests, if they can be served in one step.
async fn combine<'a>(
    wanted: &[(&'a SharedBucket, Tokens)],
) -> Result<(&'a SharedBucket, Vec<ReservationRequest>)> {
    let count = wanted.len();
    let Some((first, _)) = wanted.first().filter(|_| count <= BUCKETS_MAX) else {
        return Err(Error::Invalid(format!("One step takes from 1 to {BUCKETS_MAX} buckets, not {count}.")));
    };
    let mut wants: Vec<ReservationRequest> = Vec::with_capacity(count);
    for (bucket, cost) in wanted {
        if !std::ptr::addr_eq(bucket.store(), first.store()) {
            let (one, other) = (first.name(), bucket.name());
            let message = format!(
                "The buckets {one:?} and {other:?} are in different stores and cannot be taken in one step."
            );
            return Err(Error::Invalid(message));
        }
        if wants.iter().any(|want| want.name == bucket.name()) {
            return Err(Error::Invalid(format!("The bucket {:?} is named twice.", bucket.name())));
        }
        let is_same_share = match (first.inner.share.get(), bucket.inner.share.get()) {
            (Some(one), Some(other)) => one.is_same(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        if !is_same_share {
            let (one, other) = (first.name(), bucket.name());
            let message = format!("The buckets {one:?} and {other:?} have different fixed shares.");
            return Err(Error::Invalid(message));
        }
        wants.push(bucket.wanted(*cost).await?);
    }
    Ok((first, wants))
}

fn combined_outcome(
    reserved: ReserveOutcome,
    wanted: &[(&SharedBucket, Tokens)],
    wants: &[ReservationRequest],
) -> Result<TokenTakeOutcome<Vec<Grant>>> {
    match reserved {
        ReserveOutcome::Granted { remaining } => {
            let left = remaining.into_iter().chain(std::iter::repeat(0));
            let each = wanted.iter().zip(wants).zip(left);
            let grant =
                |(((bucket, _), want), left): ((&(&SharedBucket, Tokens), &ReservationRequest), u64)| {
                    Grant::new((*bucket).clone(), want.cost, left)
                };
            Ok(TokenTakeOutcome::Granted(each.map(grant).collect()))
        }
        ReserveOutcome::Wait { delay, remaining } => Ok(TokenTakeOutcome::Wait(Wait::new(delay, &remaining))),
        ReserveOutcome::Never { which } => {
            let want = &wants[which.min(wants.len() - 1)];
            Err(too_costly(&want.name, want.cost, want.capacity))
        }
    }
}
