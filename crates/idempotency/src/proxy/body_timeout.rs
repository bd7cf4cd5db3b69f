//! Idle timeouts: bodies that must make progress, and a tracker of a request body's activity while
//! it is sent. A body that is not being read is not idle.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::{Instant, Sleep};

use crate::body::{BoxError, LayerBody};

/// A body made no progress for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body made no progress for {0:?}")]
pub struct BodyTimeoutError(Duration);

/// Wraps a body so that it fails when nothing arrives for this long while it is being read.
#[must_use]
pub fn with_body_timeout(body: LayerBody, limit: Duration) -> LayerBody {
    if http_body::Body::is_end_stream(&body) {
        return body;
    }
    TimeoutBody { body, limit, waiting: None }.boxed_unsync()
}

struct TimeoutBody {
    body: LayerBody,
    limit: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
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
            this.waiting = None;
            return Poll::Ready(frame);
        }
        let waiting = this.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(this.limit)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Some(Err(BodyTimeoutError(this.limit).into())))
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
