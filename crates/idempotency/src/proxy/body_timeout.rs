//! Idle timeouts: bodies that must make progress, at a minimum rate if there is one, and a tracker
//! of a request body's activity while it is sent. A body that is not being read is not idle.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Instant, Sleep};

use crate::body::{BoxError, LayerBody};
use crate::request_body::RATE_WINDOW;

/// A body made no progress for too long, or too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body made no progress for {0:?}, or too little")]
pub struct BodyTimeoutError(Duration);

/// Wraps a body so that it fails when nothing arrives for this long while it is being read.
#[must_use]
pub fn with_body_timeout(body: LayerBody, limit: Duration) -> LayerBody {
    if http_body::Body::is_end_stream(&body) {
        return body;
    }
    TimeoutBody { body, limit, window: None, waiting: None }.boxed_unsync()
}

/// Wraps a body so that it also fails when less than so many bytes a second arrive while it is
/// being read; 0 is no minimum.
#[must_use]
pub fn with_body_rate(body: LayerBody, limit: Duration, rate_min: usize) -> LayerBody {
    if http_body::Body::is_end_stream(&body) {
        return body;
    }
    let bytes_min = rate_min.saturating_mul(RATE_WINDOW.as_secs() as usize);
    let window = (rate_min > 0).then_some(RateWindow { bytes_min, came: 0, waited: Duration::ZERO });
    TimeoutBody { body, limit, window, waiting: None }.boxed_unsync()
}

/// What came in the time that was spent waiting for the sender.
struct RateWindow {
    bytes_min: usize,
    came: usize,
    waited: Duration,
}

impl RateWindow {
    /// How long the sender may still be waited for.
    fn rest(&self) -> Duration {
        RATE_WINDOW.saturating_sub(self.waited)
    }

    /// Counts a wait, and begins anew after a whole window; `false` when too little came in it.
    fn wait(&mut self, time: Duration) -> bool {
        self.waited += time;
        if self.waited < RATE_WINDOW {
            return true;
        }
        let is_enough = self.came >= self.bytes_min;
        (self.came, self.waited) = (0, Duration::ZERO);
        is_enough
    }
}

struct TimeoutBody {
    body: LayerBody,
    limit: Duration,
    window: Option<RateWindow>,
    waiting: Option<BodyWait>,
}

/// A wait for the sender.
struct BodyWait {
    since: Instant,
    /// Up to when it was counted.
    counted: Instant,
    timer: Pin<Box<Sleep>>,
}

impl TimeoutBody {
    /// When the wait is next looked at.
    fn next_look(&self, since: Instant, now: Instant) -> Instant {
        let idle = since + self.limit;
        self.window.as_ref().map_or(idle, |window| idle.min(now + window.rest()))
    }

    /// Counts what was waited since the last look; `false` when too little came meanwhile.
    fn count_wait(&mut self, now: Instant) -> bool {
        let Some(waiting) = &mut self.waiting else { return true };
        let time = now - std::mem::replace(&mut waiting.counted, now);
        self.window.as_mut().is_none_or(|window| window.wait(time))
    }
}

impl http_body::Body for TimeoutBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            if this.waiting.is_some() && !this.count_wait(Instant::now()) {
                return Poll::Ready(Some(Err(BodyTimeoutError(RATE_WINDOW).into())));
            }
            this.waiting = None;
            if let (Some(window), Some(Ok(frame))) = (&mut this.window, &frame) {
                window.came += frame.data_ref().map_or(0, Bytes::len);
            }
            return Poll::Ready(frame);
        }
        loop {
            let now = Instant::now();
            let since = this.waiting.as_ref().map_or(now, |waiting| waiting.since);
            let next = this.next_look(since, now);
            let waiting = this.waiting.get_or_insert_with(|| BodyWait {
                since,
                counted: now,
                timer: Box::pin(tokio::time::sleep_until(next)),
            });
            ready!(waiting.timer.as_mut().poll(context));
            let now = Instant::now();
            if now >= since + this.limit {
                return Poll::Ready(Some(Err(BodyTimeoutError(this.limit).into())));
            }
            if !this.count_wait(now) {
                return Poll::Ready(Some(Err(BodyTimeoutError(RATE_WINDOW).into())));
            }
            let next = this.next_look(since, now);
            if let Some(waiting) = &mut this.waiting {
                waiting.timer.as_mut().reset(next);
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The time of a request's last activity.
#[derive(Clone)]
pub(super) struct LastActivity(Arc<Mutex<ActivityState>>);

struct ActivityState {
    last: Instant,
    is_broken: bool,
}

impl LastActivity {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(ActivityState { last: Instant::now(), is_broken: false })))
    }

    fn with<T>(&self, look: impl FnOnce(&mut ActivityState) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns whether the body failed while it was sent.
    pub(super) fn is_broken(&self) -> bool {
        self.with(|beat| beat.is_broken)
    }

    /// Wraps a body so that every piece read from it counts as activity.
    pub(super) fn track(&self, body: LayerBody) -> LayerBody {
        if http_body::Body::is_end_stream(&body) {
            return body;
        }
        ActivityBody { body, activity: self.clone() }.boxed_unsync()
    }

    /// Waits until there was no activity for this long.
    pub(super) async fn wait_until_idle(&self, limit: Duration) {
        loop {
            let over = self.with(|beat| beat.last) + limit;
            if over <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(over).await;
        }
    }
}

struct ActivityBody {
    body: LayerBody,
    activity: LastActivity,
}

impl http_body::Body for ActivityBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        self.activity.with(|beat| {
            beat.last = Instant::now();
            beat.is_broken |= matches!(frame, Some(Err(_)));
        });
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::{self, StreamExt};
    use http_body_util::StreamBody;

    use super::*;

    /// A body of pieces of this size, each after a pause, and what became of it.
    async fn dripped(piece: usize, pause: Duration, rate_min: usize) -> Result<usize, Duration> {
        let pieces = stream::iter(0..30).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok::<_, BoxError>(Frame::data(Bytes::from(vec![b'x'; piece])))
        });
        let started = Instant::now();
        let body = with_body_rate(StreamBody::new(pieces).boxed_unsync(), Duration::from_secs(30), rate_min);
        body.collect().await.map(|whole| whole.to_bytes().len()).map_err(|_| started.elapsed())
    }

    /// A client that sends a byte now and then is given up after one window; one that keeps the
    /// rate may take as long as it needs, and so may one without a minimum.
    #[tokio::test(start_paused = true)]
    async fn a_body_must_keep_its_rate() {
        let seven = Duration::from_secs(7);
        assert_eq!(dripped(1, seven, 1_024).await, Err(RATE_WINDOW));
        assert_eq!(dripped(1, seven, 0).await, Ok(30));
        assert_eq!(dripped(20_000, seven, 1_024).await, Ok(600_000));
        let pause = Duration::from_secs(31);
        assert_eq!(dripped(100_000, pause, 0).await, Err(Duration::from_secs(30)));
    }
}
