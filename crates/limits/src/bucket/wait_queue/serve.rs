//! The one task that serves a queue. It asks the store for the first waiter at the time the store
//! named, and in the same step for those behind it as far as the remaining tokens suffice. So a
//! queue of thousands costs one request per refill, and a distant server does not slow it down to
//! one grant per round trip.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::shared::bucket::{ReservationRequest, ReserveOutcome, Settlement};
use tokio::time::{Instant, sleep_until};

use super::{Inner, Waiter, after};
use crate::Error;

/// The task that serves a queue. When it ends while others still wait, it notifies them.
pub(super) struct QueueServer(pub(super) Arc<Inner>);

impl Drop for QueueServer {
    fn drop(&mut self) {
        let mut queue = self.0.queue.queue();
        if queue.is_served {
            queue.is_served = false;
            queue.waiters.clear();
        }
    }
}

/// Serves the queue until it is empty.
pub(super) async fn serve(server: QueueServer) {
    let bucket = &server.0;
    let mut left = Vec::new();
    while let Some(not_before) = bucket.queue.next() {
        if not_before > Instant::now() {
            left.clear();
            tokio::select! {
                () = sleep_until(not_before) => {}
                () = bucket.queue.left.notified() => continue,
            }
        }
        let (count, mut wanted) = bucket.queue.batch(&left);
        bucket.params.renew(&bucket.name, &mut wanted);
        left.clear();
        match bucket.reserve_step(wanted).await {
            Ok(ReserveOutcome::Granted { remaining }) => {
                for place in bucket.queue.take_first(count) {
                    grant(bucket, place, remaining.clone()).await;
                }
                left = remaining;
            }
            // Others were quicker: ask for the first waiter alone next.
            Ok(_) if count > 1 => {}
            Ok(ReserveOutcome::Wait { delay, remaining }) => postpone_first(bucket, delay, remaining),
            Ok(never @ ReserveOutcome::Never { .. }) => {
                for place in bucket.queue.take_first(1) {
                    // A waiter that has left does not need the result.
                    let _ = place.answer.send(Ok(never.clone()));
                }
            }
            Err(error) => {
                for place in bucket.queue.take_first(usize::MAX) {
                    let _ = place.answer.send(Err(Error::duplicate(&error)));
                }
            }
        }
    }
}

/// Delivers a grant; returns the tokens if its owner no longer waits.
async fn grant(bucket: &Inner, place: Waiter, remaining: Vec<u64>) {
    if place.answer.send(Ok(ReserveOutcome::Granted { remaining })).is_err() {
        return_tokens(bucket, &place.wanted).await;
    }
}

/// Returns tokens that were granted and are not used.
pub(super) async fn return_tokens(bucket: &Inner, wanted: &[ReservationRequest]) {
    for want in wanted {
        let settlement = Settlement { reserved: want.cost, actual: 0 };
        // Tokens that cannot be returned stay taken, which is the safe side.
        let _ = bucket.store.settle_bucket(&want.name, settlement).await;
    }
}

/// Postpones the first waiter until the time the store named, or ends its wait if its patience ends
/// before.
fn postpone_first(bucket: &Inner, delay: Duration, remaining: Vec<u64>) {
    let told = after(delay);
    let mut queue = bucket.queue.queue();
    let Some(first) = queue.waiters.front_mut() else { return };
    first.not_before = told;
    if first.until.is_some_and(|until| told > until)
        && let Some(place) = queue.waiters.pop_front()
    {
        let _ = place.answer.send(Ok(ReserveOutcome::Wait { delay, remaining }));
    }
}
