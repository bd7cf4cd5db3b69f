//! The one task that serves a line: it asks the store for whoever is first, at the time that was told, and in the same step
//! for those behind as far as what is left will do. So a line of thousands costs one question for each time something came
//! back, and a far server does not slow it down to one grant for each trip.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::shared::bucket::{Reserve, Reserved, Settlement};
use tokio::time::{Instant, sleep_until};

use super::{Inner, Place, after};
use crate::Error;

/// The one who serves a line. When it ends with those still waiting, they are told.
pub(super) struct Server(pub(super) Arc<Inner>);

impl Drop for Server {
    fn drop(&mut self) {
        let mut queue = self.0.line.queue();
        if queue.is_served {
            queue.is_served = false;
            queue.places.clear();
        }
    }
}

/// Serves until nobody waits.
pub(super) async fn serve(server: Server) {
    let bucket = &server.0;
    let mut left = Vec::new();
    while let Some(not_before) = bucket.line.next() {
        if not_before > Instant::now() {
            left.clear();
            tokio::select! {
                () = sleep_until(not_before) => {}
                () = bucket.line.left.notified() => continue,
            }
        }
        let (count, mut wanted) = bucket.line.batch(&left);
        bucket.figures.renew(&bucket.name, &mut wanted);
        left.clear();
        match bucket.store.reserve(wanted).await {
            Ok(Reserved::Granted { remaining }) => {
                for place in bucket.line.leave(count) {
                    grant(bucket, place, remaining.clone()).await;
                }
                left = remaining;
            }
            // Others were quicker: the first one alone is asked for next.
            Ok(_) if count > 1 => {}
            Ok(Reserved::Wait { delay, remaining }) => put_off(bucket, delay, remaining),
            Ok(never @ Reserved::Never { .. }) => {
                for place in bucket.line.leave(1) {
                    // Whoever left does not want to know.
                    let _ = place.answer.send(Ok(never.clone()));
                }
            }
            Err(error) => {
                for place in bucket.line.leave(usize::MAX) {
                    let _ = place.answer.send(Err(Error::again(&error)));
                }
            }
        }
    }
}

/// Hands a grant out; what its owner no longer waits for is given back.
async fn grant(bucket: &Inner, place: Place, remaining: Vec<u64>) {
    if place.answer.send(Ok(Reserved::Granted { remaining })).is_err() {
        give_back(bucket, &place.wanted).await;
    }
}

/// Puts back what was granted and nobody uses.
pub(super) async fn give_back(bucket: &Inner, wanted: &[Reserve]) {
    for want in wanted {
        let settlement = Settlement { reserved: want.cost, actual: 0 };
        // What cannot be given back stays taken, which is the safe side.
        let _ = bucket.store.settle_bucket(&want.name, settlement).await;
    }
}

/// The first one comes back when it was told to, or is told so when its patience ends before.
fn put_off(bucket: &Inner, delay: Duration, remaining: Vec<u64>) {
    let told = after(delay);
    let mut queue = bucket.line.queue();
    let Some(first) = queue.places.front_mut() else { return };
    first.not_before = told;
    if first.until.is_some_and(|until| told > until)
        && let Some(place) = queue.places.pop_front()
    {
        let _ = place.answer.send(Ok(Reserved::Wait { delay, remaining }));
    }
}
