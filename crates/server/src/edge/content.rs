//! Reads the body of a request, within a size, a time, and the memory that all bodies may take
//! while they arrive. A body that arrives in one piece is never copied.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use futures_util::StreamExt;
use tidegate_core::bounds::{DISCARDED_LEN_MAX, PAYLOAD_LEN_MAX};
use tidegate_idempotency::KeyAdmin;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::{Error, ErrorCode, Result};
use crate::state::{PartitionState, ServerState};
use crate::wire::error::ApiError;
use crate::wire::object::{NOT_JSON, read as read_object, truncate_name};

/// The largest body that a route accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyBound {
    /// None is read.
    NoBody,
    /// A command and its parameters.
    Small,
    /// One operation: a whole payload and its envelope.
    Operation,
    /// Many operations.
    Batch,
    /// A call to an upstream: what is buffered before the call is accepted. A longer body is
    /// streamed.
    Proxied,
}

impl BodyBound {
    pub(crate) const fn len_max(self) -> usize {
        match self {
            Self::NoBody => 0,
            Self::Small => 64 * 1024,
            Self::Operation => PAYLOAD_LEN_MAX + 64 * 1024,
            Self::Batch => 32 * 1024 * 1024,
            Self::Proxied => PAYLOAD_LEN_MAX,
        }
    }
}

/// The body of a request, not read yet, with the bound of its route.
pub(crate) struct RequestBody {
    body: Body,
    len_max: usize,
    timeout: Duration,
}

impl RequestBody {
    pub(crate) async fn read(self) -> Result<Bytes> {
        read(self.body, self.len_max, self.timeout).await
    }

    /// Reads a body in which nothing is expected: none, or an object without fields.
    pub(crate) async fn read_empty(self) -> Result<()> {
        let body = self.read().await?;
        if body.is_empty() { Ok(()) } else { read_object(&body, &[])?.problems.finish() }
    }

    /// Reads the body, or the beginning of one that is longer than the bound.
    pub(crate) async fn read_or_stream(self) -> Result<IncomingBody> {
        read_or_stream(self.body, self.len_max, self.timeout).await
    }
}

/// The state of a handler, which knows how long a body may take to arrive.
pub(crate) trait BodyTimeout {
    fn body_timeout(&self) -> Duration;
}

impl BodyTimeout for Arc<ServerState> {
    fn body_timeout(&self) -> Duration {
        self.read_timeout
    }
}

impl BodyTimeout for Arc<PartitionState> {
    fn body_timeout(&self) -> Duration {
        self.server.read_timeout
    }
}

impl BodyTimeout for KeyAdmin {
    fn body_timeout(&self) -> Duration {
        KEYS_TIMEOUT
    }
}

impl<S: BodyTimeout + Sync> FromRequest<S> for RequestBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> std::result::Result<Self, ApiError> {
        let bound = request.extensions().get::<BodyBound>().copied().unwrap_or(BodyBound::NoBody);
        Ok(Self { body: request.into_body(), len_max: bound.len_max(), timeout: state.body_timeout() })
    }
}

/// The memory of all bodies that are arriving at this process. Who announces much gets nothing for
/// it: only what has come counts.
const ARRIVING_LEN_MAX: usize = 256 * 1024 * 1024;
/// Memory is counted in pieces of this size; a body that fits into one is not counted.
const MEMORY_UNIT: usize = 16 * 1024;
static ARRIVING: Semaphore = Semaphore::const_new(ARRIVING_LEN_MAX / MEMORY_UNIT);

/// The memory that one body has taken so far; dropped when the body is whole.
struct BodyMemory {
    all: &'static Semaphore,
    taken: Option<SemaphorePermit<'static>>,
    units: usize,
}

impl Default for BodyMemory {
    fn default() -> Self {
        Self { all: &ARRIVING, taken: None, units: 0 }
    }
}

impl BodyMemory {
    fn grow_to(&mut self, len: usize) -> Result<()> {
        let more = (len / MEMORY_UNIT).saturating_sub(self.units);
        if more == 0 {
            return Ok(());
        }
        let units = u32::try_from(more).unwrap_or(u32::MAX);
        let permit = self.all.try_acquire_many(units).map_err(|_| {
            let message = "Too many large bodies are arriving at once. Nothing was accepted.";
            Error::new(ErrorCode::StoreUnavailable, message)
        })?;
        self.units += more;
        match &mut self.taken {
            Some(taken) => taken.merge(permit),
            None => self.taken = Some(permit),
        }
        Ok(())
    }
}

/// How long the response that an operator records for a key may take to arrive.
const KEYS_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) async fn read(body: Body, most: usize, within: Duration) -> Result<Bytes> {
    tokio::time::timeout(within, collect(body, most)).await.unwrap_or_else(|_| Err(timeout_error(within)))
}

/// A body, or the beginning of one that is longer than requested.
pub(crate) enum IncomingBody {
    Whole(Bytes),
    Partial {
        first: Bytes,
        rest: BodyDataStream,
        /// The length of the whole body, if declared.
        len: Option<u64>,
    },
}

/// Reads a body of at most `most` bytes, or the beginning of a longer one.
pub(crate) async fn read_or_stream(body: Body, most: usize, within: Duration) -> Result<IncomingBody> {
    let hint = body.size_hint();
    let (len, announced) = (hint.exact(), usize::try_from(hint.lower()).unwrap_or(usize::MAX));
    let mut rest = body.into_data_stream();
    if announced > most {
        return Ok(IncomingBody::Partial { first: Bytes::new(), rest, len });
    }
    let gathered = async {
        let (mut first, mut memory) = (Vec::new(), BodyMemory::default());
        while let Some(piece) = rest.next().await {
            first.extend_from_slice(&piece.map_err(|_| cut_off_error())?);
            memory.grow_to(first.len())?;
            if first.len() > most {
                return Ok((first, false));
            }
        }
        Ok::<_, Error>((first, true))
    };
    let (first, is_whole) =
        tokio::time::timeout(within, gathered).await.unwrap_or_else(|_| Err(timeout_error(within)))?;
    let first = Bytes::from(first);
    Ok(if is_whole { IncomingBody::Whole(first) } else { IncomingBody::Partial { first, rest, len } })
}

/// Adds to the error about a body that is not JSON what its headers say that it is.
pub(crate) fn explain_format(mut error: Error, headers: &HeaderMap) -> Error {
    if error.code != ErrorCode::Malformed || !error.message.starts_with(NOT_JSON) {
        return error;
    }
    let value = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let format = match (value(CONTENT_ENCODING), value(CONTENT_TYPE)) {
        (Some(coding), _) => format!("Content-Encoding {}, which is not read here", truncate_name(coding)),
        (None, Some(kind)) if !kind.contains("json") => format!("Content-Type {}", truncate_name(kind)),
        _ => return error,
    };
    error.message = format!("{} It has {format}; send JSON as it is.", error.message);
    error
}

fn timeout_error(within: Duration) -> Error {
    Error::new(ErrorCode::Malformed, format!("The body did not arrive within {} s.", within.as_secs()))
}

fn cut_off_error() -> Error {
    Error::new(ErrorCode::Malformed, "The body was cut off.")
}

async fn collect(body: Body, most: usize) -> Result<Bytes> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut pieces = body.into_data_stream();
    let mut first = Bytes::new();
    let (mut rest, mut memory) = (Vec::new(), BodyMemory::default());
    let mut len = 0_usize;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| cut_off_error())?;
        len = len.saturating_add(piece.len());
        if len > most || announced > most {
            if len > DISCARDED_LEN_MAX {
                break;
            }
        } else if first.is_empty() && rest.is_empty() {
            memory.grow_to(len)?;
            first = piece;
        } else {
            memory.grow_to(len)?;
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&piece);
        }
    }
    let len = len.max(announced);
    if len > most {
        let message = format!("The body is {len} bytes long; the maximum is {most}.");
        return Err(Error::new(ErrorCode::TooLarge, message).field("body"));
    }
    Ok(if rest.is_empty() { first } else { rest.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All bodies together take no more memory than there is; what one of them took is there again
    /// when it is whole, or was given up.
    #[test]
    fn bodies_that_arrive_share_a_bound() {
        static FEW: Semaphore = Semaphore::const_new(4);
        let body = || BodyMemory { all: &FEW, taken: None, units: 0 };
        let (mut one, mut two) = (body(), body());
        assert!(two.grow_to(MEMORY_UNIT - 1).is_ok() && FEW.available_permits() == 4, "small ones are free");
        one.grow_to(MEMORY_UNIT).unwrap();
        one.grow_to(3 * MEMORY_UNIT + 1).unwrap();
        assert_eq!(FEW.available_permits(), 1);
        let refused = two.grow_to(2 * MEMORY_UNIT).unwrap_err();
        assert_eq!(refused.code, ErrorCode::StoreUnavailable);
        drop(one);
        two.grow_to(4 * MEMORY_UNIT).unwrap();
        drop(two);
        assert_eq!(FEW.available_permits(), 4);
    }
}
