//! The line of those who wait at one handle: first come, first served. Who stands where, for how long, and what becomes of
//! a place that is left. Who asks the store for them is another file's matter.

mod serve;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::shared::bucket::{Reserve, Reserved};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};

use super::Inner;
use crate::Result;
use serve::{Server, give_back, serve};

/// A time that nobody lives to see; farther ones cannot be reckoned with.
const FOR_EVER: Duration = Duration::from_secs(100 * 366 * 24 * 3_600);

/// Those who wait.
#[derive(Default)]
pub(crate) struct Line {
    queue: Mutex<Queue>,
    /// Somebody left.
    left: Notify,
}

#[derive(Default)]
struct Queue {
    places: VecDeque<Place>,
    /// Whether a task asks for them.
    is_served: bool,
    numbers: u64,
}

struct Place {
    number: u64,
    wanted: Vec<Reserve>,
    not_before: Instant,
    /// The end of its patience.
    until: Option<Instant>,
    answer: oneshot::Sender<Result<Reserved>>,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue().places.is_empty()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the first may be asked for; nothing when nobody waits, and then nobody serves.
    fn next(&self) -> Option<Instant> {
        let mut queue = self.queue();
        queue.places.retain(|place| !place.answer.is_closed());
        queue.is_served = !queue.places.is_empty();
        queue.places.front().map(|first| first.not_before)
    }

    /// What the first wants, with what those behind want as long as it is of the same buckets and `left` will do.
    fn batch(&self, left: &[u64]) -> (usize, Vec<Reserve>) {
        let queue = self.queue();
        let Some(first) = queue.places.front() else { return (0, Vec::new()) };
        let mut sum = first.wanted.clone();
        let mut count = 1;
        for place in queue.places.iter().skip(1) {
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

    fn leave(&self, count: usize) -> Vec<Place> {
        let mut queue = self.queue();
        let count = count.min(queue.places.len());
        queue.places.drain(..count).collect()
    }

    /// When this place could be served, as far as the first bucket goes.
    fn reckoned(&self, number: u64) -> Duration {
        let queue = self.queue();
        let Some(first) = queue.places.front() else { return Duration::ZERO };
        let cost = |place: &Place| place.wanted.first().map_or(0, |want| want.cost);
        let behind: u64 = queue
            .places
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

/// This much later, or never.
pub(super) fn after(delay: Duration) -> Instant {
    Instant::now() + delay.min(FOR_EVER)
}

/// Stands in line until it is served or patience ends.
pub(super) async fn stand(
    bucket: &Arc<Inner>,
    wanted: Vec<Reserve>,
    not_before: Instant,
    until: Option<Instant>,
) -> Result<Reserved> {
    loop {
        let mut stand = Stand::join(bucket, wanted.clone(), not_before, until);
        let answered = match until {
            None => Some((&mut stand.answer).await),
            Some(until) => timeout_at(until, &mut stand.answer).await.ok(),
        };
        match answered {
            Some(Ok(decided)) => return decided,
            // Whoever served the line is gone, with the runtime it was on: somebody else must.
            Some(Err(_)) => {}
            None => match stand.last_moment() {
                Some(decided) => return decided,
                None => {
                    let delay = bucket.line.reckoned(stand.number);
                    return Ok(Reserved::Wait { delay, remaining: Vec::new() });
                }
            },
        }
    }
}

/// A place in the line, from the side of the one who stands there.
struct Stand {
    bucket: Arc<Inner>,
    number: u64,
    answer: oneshot::Receiver<Result<Reserved>>,
    wanted: Vec<Reserve>,
}

impl Stand {
    fn join(bucket: &Arc<Inner>, wanted: Vec<Reserve>, not_before: Instant, until: Option<Instant>) -> Self {
        let (send, answer) = oneshot::channel();
        let mut queue = bucket.line.queue();
        queue.numbers += 1;
        let number = queue.numbers;
        queue.places.push_back(Place { number, wanted: wanted.clone(), not_before, until, answer: send });
        if !std::mem::replace(&mut queue.is_served, true) {
            tokio::spawn(serve(Server(Arc::clone(bucket))));
        }
        drop(queue);
        Self { bucket: Arc::clone(bucket), number, answer, wanted }
    }

    /// What came in the very moment patience ended.
    fn last_moment(&mut self) -> Option<Result<Reserved>> {
        self.answer.close();
        self.answer.try_recv().ok()
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        if let Some(Ok(Reserved::Granted { .. })) = self.last_moment() {
            // It was granted and nobody is there to use it. Without a runtime it stays taken, which is the safe side.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                let (bucket, wanted) = (Arc::clone(&self.bucket), std::mem::take(&mut self.wanted));
                runtime.spawn(async move { give_back(&bucket, &wanted).await });
            }
        }
        self.bucket.line.left.notify_one();
    }
}
