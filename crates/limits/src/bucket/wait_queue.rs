//! The first-come, first-served queue of those who wait at one handle: positions, deadlines, and
//! what happens to a position that is given up. `serve` asks the store on behalf of the waiters.

mod serve;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::shared::bucket::{ReservationRequest, ReserveOutcome};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};

use super::Inner;
use crate::Result;
use serve::{QueueServer, return_tokens, serve};

/// Effectively for ever; longer durations would overflow.
const FOR_EVER: Duration = Duration::from_secs(100 * 366 * 24 * 3_600);

/// The queue of waiters.
#[derive(Default)]
pub(crate) struct WaitQueue {
    queue: Mutex<QueueState>,
    /// Notified when a waiter leaves.
    left: Notify,
}

#[derive(Default)]
struct QueueState {
    waiters: VecDeque<Waiter>,
    /// Whether a task serves the queue.
    is_served: bool,
    numbers: u64,
}

struct Waiter {
    number: u64,
    wanted: Vec<ReservationRequest>,
    not_before: Instant,
    /// When the waiter's patience ends.
    until: Option<Instant>,
    answer: oneshot::Sender<Result<ReserveOutcome>>,
}

impl WaitQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue().waiters.is_empty()
    }

    fn queue(&self) -> MutexGuard<'_, QueueState> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When to ask for the first waiter; `None` when no one waits, and then no task serves the
    /// queue.
    fn next(&self) -> Option<Instant> {
        let mut queue = self.queue();
        queue.waiters.retain(|place| !place.answer.is_closed());
        queue.is_served = !queue.waiters.is_empty();
        queue.waiters.front().map(|first| first.not_before)
    }

    /// The request of the first waiter, joined with those behind it as long as they want the same
    /// buckets and `left` suffices.
    fn batch(&self, left: &[u64]) -> (usize, Vec<ReservationRequest>) {
        let queue = self.queue();
        let Some(first) = queue.waiters.front() else { return (0, Vec::new()) };
        let mut sum = first.wanted.clone();
        let mut count = 1;
        for place in queue.waiters.iter().skip(1) {
            let fits = place.wanted.len() == left.len()
                && place.wanted.len() == sum.len()
                && place.wanted.iter().zip(&sum).zip(left).all(|((more, sum), left)| {
                    more.name == sum.name && sum.cost.checked_add(more.cost).is_some_and(|cost| cost <= *left)
                });
            if !fits {
                break;
            }
            for (sum, more) in sum.iter_mut().zip(&place.wanted) {
                sum.cost += more.cost;
            }
            count += 1;
        }
        (count, sum)
    }

    fn take_first(&self, count: usize) -> Vec<Waiter> {
        let mut queue = self.queue();
        let count = count.min(queue.waiters.len());
        queue.waiters.drain(..count).collect()
    }

    /// Estimates when this waiter could be served, judged by the first bucket.
    fn estimated_delay(&self, number: u64) -> Duration {
        let queue = self.queue();
        let Some(first) = queue.waiters.front() else { return Duration::ZERO };
        let cost = |place: &Waiter| place.wanted.first().map_or(0, |want| want.cost);
        let behind: u64 = queue
            .waiters
            .iter()
            .skip(1)
            .take_while(|place| place.number <= number)
            .fold(0, |sum, place| sum.saturating_add(cost(place)));
        let rate = first.wanted.first().map_or(1, |want| want.refill_per_s.max(1));
        let micros = (u128::from(behind) * 1_000_000).div_ceil(u128::from(rate));
        let wait = Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
        first.not_before.saturating_duration_since(Instant::now()).saturating_add(wait)
    }
}

/// The instant after `delay`, or effectively never.
pub(super) fn after(delay: Duration) -> Instant {
    Instant::now() + delay.min(FOR_EVER)
}

/// Waits in the queue until served or until patience ends.
pub(super) async fn wait_in_queue(
    bucket: &Arc<Inner>,
    wanted: Vec<ReservationRequest>,
    not_before: Instant,
    until: Option<Instant>,
) -> Result<ReserveOutcome> {
    loop {
        let mut stand = WaiterHandle::join(bucket, wanted.clone(), not_before, until);
        let answered = match until {
            None => Some((&mut stand.answer).await),
            Some(until) => timeout_at(until, &mut stand.answer).await.ok(),
        };
        match answered {
            Some(Ok(decided)) => return decided,
            // The serving task is gone, with the runtime it was on: another task must serve.
            Some(Err(_)) => {}
            None => match stand.take_late_answer() {
                Some(decided) => return decided,
                None => {
                    let delay = bucket.queue.estimated_delay(stand.number);
                    return Ok(ReserveOutcome::Wait { delay, remaining: Vec::new() });
                }
            },
        }
    }
}

/// A position in the queue, as the waiter holds it.
struct WaiterHandle {
    bucket: Arc<Inner>,
    number: u64,
    answer: oneshot::Receiver<Result<ReserveOutcome>>,
    wanted: Vec<ReservationRequest>,
}

impl WaiterHandle {
    fn join(
        bucket: &Arc<Inner>,
        wanted: Vec<ReservationRequest>,
        not_before: Instant,
        until: Option<Instant>,
    ) -> Self {
        let (send, answer) = oneshot::channel();
        let mut queue = bucket.queue.queue();
        queue.numbers += 1;
        let number = queue.numbers;
        queue.waiters.push_back(Waiter { number, wanted: wanted.clone(), not_before, until, answer: send });
        if !std::mem::replace(&mut queue.is_served, true) {
            tokio::spawn(serve(QueueServer(Arc::clone(bucket))));
        }
        drop(queue);
        Self { bucket: Arc::clone(bucket), number, answer, wanted }
    }

    /// Returns a result that arrived in the very moment patience ended.
    fn take_late_answer(&mut self) -> Option<Result<ReserveOutcome>> {
        self.answer.close();
        self.answer.try_recv().ok()
    }
}

impl Drop for WaiterHandle {
    fn drop(&mut self) {
        if let Some(Ok(ReserveOutcome::Granted { .. })) = self.take_late_answer() {
            // Tokens were granted and no one is there to use them. Without a runtime they stay
            // taken, which is the safe side.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                let (bucket, wanted) = (Arc::clone(&self.bucket), std::mem::take(&mut self.wanted));
                runtime.spawn(async move { return_tokens(&bucket, &wanted).await });
            }
        }
        self.bucket.queue.left.notify_one();
    }
}
