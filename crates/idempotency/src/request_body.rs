//! Buffers request bodies within bounds: each by its own size, all together by a budget of the
//! process, and every client by a minimum rate.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use crate::body::{BoxError, CollectedBody, LayerBody};
use crate::fingerprint::Fingerprint;
use crate::policy::Policy;
use crate::refusal::Refusal;

/// The default of the bytes of request bodies with a key that a process holds at once.
pub const BODIES_MAX_DEFAULT: usize = 256 << 20;
/// How long a body waits in total for others to free memory.
const ROOM_WAIT_MAX: Duration = Duration::from_secs(2);
/// The window over which a client's rate is measured: pauses within it do not count.
pub(crate) const RATE_WINDOW: Duration = Duration::from_secs(10);
/// Pieces smaller than this are joined, so that a body of many small ones takes no more memory than
/// its bytes.
const PIECE_LEN_MIN: usize = 16 << 10;
/// Small pieces are joined up to this size.
const JOINED_LEN_MAX: usize = 64 << 10;

/// The memory budget of request bodies, shared by all clones. Waiters do not block each other: a
/// body that is nearly complete continues in space that is too small for the next one.
#[derive(Clone, Debug)]
pub(crate) struct BodyBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    len: usize,
    used: AtomicUsize,
    freed: Notify,
}

impl Default for BodyBudget {
    fn default() -> Self {
        Self::new(BODIES_MAX_DEFAULT)
    }
}

impl BodyBudget {
    pub(crate) fn new(len: usize) -> Self {
        Self(Arc::new(BudgetState { len, used: AtomicUsize::new(0), freed: Notify::new() }))
    }

    /// Reserves more memory for a body that already has some, waiting no longer than `patience`;
    /// returns `false` when there is none.
    async fn grow(&self, taken: &mut BudgetPermit, more: usize, patience: Duration) -> bool {
        if self.try_grow(taken, more) {
            return true;
        }
        let waiting = async {
            loop {
                let mut freed = pin!(self.0.freed.notified());
                freed.as_mut().enable();
                if self.try_grow(taken, more) {
                    return;
                }
                freed.await;
            }
        };
        timeout(patience, waiting).await.is_ok()
    }

    fn try_grow(&self, taken: &mut BudgetPermit, more: usize) -> bool {
        let fits = |used: usize| used.checked_add(more).filter(|used| *used <= self.0.len);
        let is_taken = self.0.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).is_ok();
        taken.len += if is_taken { more } else { 0 };
        is_taken
    }

    fn empty_permit(&self) -> BudgetPermit {
        BudgetPermit { room: self.clone(), len: 0 }
    }
}

/// Reserved memory, freed on drop.
struct BudgetPermit {
    room: BodyBudget,
    len: usize,
}

impl Drop for BudgetPermit {
    fn drop(&mut self) {
        self.room.0.used.fetch_sub(self.len, Ordering::AcqRel);
        self.room.0.freed.notify_waiters();
    }
}

/// Reads a body to its end, hashing it on the way. Its memory is freed when the body is dropped.
///
/// # Errors
/// When it is too large, breaks off, comes too slowly, or finds no room.
pub(crate) async fn read_body(
    mut body: LayerBody,
    mut fingerprint: Fingerprint,
    policy: &Policy,
    room: &BodyBudget,
) -> Result<(LayerBody, [u8; 32]), Refusal> {
    let len_max = policy.request_max.min(room.0.len);
    if http_body::Body::size_hint(&body).lower() > len_max as u64 {
        return Err(Refusal::BodyTooLarge(len_max));
    }
    let (mut pieces, mut taken) = (BodyCollector::default(), room.empty_permit());
    let (mut pace, mut patience) = (MinimumRate::new(policy.body_rate_min), ROOM_WAIT_MAX);
    while let Some(frame) = pace.next(&mut body).await? {
        let data = match frame.map_err(|_| Refusal::BodyBroken)?.into_data() {
            Ok(data) => data,
            Err(other) => {
                pieces.all.trailers = other.into_trailers().ok();
                continue;
            }
        };
        if pieces.len() + data.len() > len_max {
            return Err(Refusal::BodyTooLarge(len_max));
        }
        let before = Instant::now();
        if !room.grow(&mut taken, data.len(), patience).await {
            return Err(Refusal::NoRoom);
        }
        let waited = before.elapsed();
        patience = patience.saturating_sub(waited);
        pace.pause(waited);
        fingerprint.add(&data);
        pieces.push(data);
    }
    let pieces = pieces.done();
    Ok((BudgetedBody { pieces, _taken: taken }.boxed_unsync(), fingerprint.done()))
}

/// Collects the pieces of a body, joining small ones.
#[derive(Default)]
struct BodyCollector {
    all: CollectedBody,
    small: BytesMut,
}

impl BodyCollector {
    fn len(&self) -> usize {
        self.all.len() as usize + self.small.len()
    }

    /// Adds a piece. The first is kept as it is: most bodies have only one.
    fn push(&mut self, piece: Bytes) {
        if self.len() == 0 || piece.len() >= PIECE_LEN_MIN {
            self.flush();
            self.all.push(piece);
            return;
        }
        if self.small.len() + piece.len() > JOINED_LEN_MAX {
            self.flush();
        }
        self.small.extend_from_slice(&piece);
    }

    fn flush(&mut self) {
        self.all.push(std::mem::take(&mut self.small).freeze());
    }

    fn done(mut self) -> CollectedBody {
        self.flush();
        self.all
    }
}

/// The minimum rate of a client: so many bytes in each window of time spent waiting for it.
struct MinimumRate {
    window_bytes: usize,
    came: usize,
    window_end: Instant,
}

impl MinimumRate {
    fn new(rate_min: usize) -> Self {
        let window_bytes = rate_min.saturating_mul(RATE_WINDOW.as_secs() as usize);
        Self { window_bytes, came: 0, window_end: Instant::now() + RATE_WINDOW }
    }

    /// Excludes time that was not spent waiting for the client.
    fn pause(&mut self, time: Duration) {
        self.window_end += time;
    }

    /// Reads the next frame of the body.
    async fn next(
        &mut self,
        body: &mut LayerBody,
    ) -> Result<Option<Result<Frame<Bytes>, BoxError>>, Refusal> {
        loop {
            match timeout_at(self.window_end, body.frame()).await {
                Ok(frame) => {
                    let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
                    self.came += data.map_or(0, Bytes::len);
                    return Ok(frame);
                }
                Err(_) if self.came < self.window_bytes => return Err(Refusal::BodyTooSlow),
                Err(_) => {
                    self.came = 0;
                    self.window_end = Instant::now() + RATE_WINDOW;
                }
            }
        }
    }
}

/// A buffered body and the memory that it has reserved.
struct BudgetedBody {
    pieces: CollectedBody,
    _taken: BudgetPermit,
}

impl http_body::Body for BudgetedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.pieces).poll_frame(context).map_err(|never| match never {})
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.pieces.size_hint()
    }
}
