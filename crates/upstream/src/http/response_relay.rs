//! Relays complete responses to waiters in this process: every header and every byte, in addition
//! to the little of a response that is stored. Nothing here is persisted, and nothing is kept after
//! its waiter is gone.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::HeaderMap;
use tokio::sync::Notify;

use super::response::{Content, UpstreamResponse};
use super::stream::{BodySender, StreamedBody, channel};

/// A response as it came.
#[derive(Clone)]
pub struct CompleteResponse {
    /// Its status.
    pub status: u16,
    /// All of its headers.
    pub headers: HeaderMap,
    /// Its body, as far as it was received.
    pub content: Content,
}

impl From<&UpstreamResponse> for CompleteResponse {
    fn from(answer: &UpstreamResponse) -> Self {
        Self {
            status: answer.status.as_u16(),
            headers: answer.headers.clone(),
            content: answer.content.clone(),
        }
    }
}

impl fmt::Debug for CompleteResponse {
    /// Shows the status, and nothing of the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompleteResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// A response whose body is streamed.
pub struct StreamingResponse {
    /// Its status.
    pub status: u16,
    /// All of its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: StreamedBody,
}

impl fmt::Debug for StreamingResponse {
    /// Shows the status, and nothing of the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamingResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Hands responses to waiters. Clones share state.
#[derive(Clone, Debug)]
pub struct ResponseRelay(Arc<RelayState>);

#[derive(Debug)]
struct RelayState {
    /// Distinguishes the tickets of this process from those of any other, earlier or concurrent.
    process: u64,
    waiting: Mutex<RelaySlots>,
}

#[derive(Debug, Default)]
struct RelaySlots {
    given_out: u64,
    slots: HashMap<Arc<str>, Slot>,
}

/// What is relayed under one ticket.
#[derive(Debug, Default)]
struct Slot {
    /// The body of the request, when it is streamed.
    body: Option<StreamedBody>,
    /// The response of the last attempt.
    answer: Option<CompleteResponse>,
    streaming: Option<StreamingResponse>,
    has_news: Arc<Notify>,
}

impl Default for ResponseRelay {
    fn default() -> Self {
        let process = RandomState::new().hash_one("a process");
        Self(Arc::new(RelayState { process, waiting: Mutex::default() }))
    }
}

impl ResponseRelay {
    /// Registers a waiter under a new ticket.
    #[must_use]
    pub fn register(&self) -> ResponseWaiter {
        let mut waiting = self.waiting();
        waiting.given_out += 1;
        let ticket: Arc<str> = format!("{:016x}-{}", self.0.process, waiting.given_out).into();
        waiting.slots.insert(Arc::clone(&ticket), Slot::default());
        drop(waiting);
        ResponseWaiter { at: self.clone(), ticket }
    }

    /// Stores the response of the last attempt, or that it had none. Dropped when no one waits.
    pub(super) fn put(&self, ticket: &str, answer: Option<CompleteResponse>) {
        if let Some(slot) = self.waiting().slots.get_mut(ticket) {
            slot.answer = answer;
        }
    }

    /// Takes the body of a request, once.
    pub(super) fn take_body(&self, ticket: &str) -> Option<StreamedBody> {
        self.waiting().slots.get_mut(ticket)?.body.take()
    }

    /// Relays the head of a response, and returns the sender of its body; `None` when no one waits.
    pub(super) fn stream(
        &self,
        ticket: &str,
        status: u16,
        headers: &HeaderMap,
        len: Option<u64>,
    ) -> Option<BodySender> {
        let mut waiting = self.waiting();
        let slot = waiting.slots.get_mut(ticket)?;
        let (sender, body) = channel(len);
        slot.streaming = Some(StreamingResponse { status, headers: headers.clone(), body });
        slot.has_news.notify_one();
        Some(sender)
    }

    fn waiting(&self) -> MutexGuard<'_, RelaySlots> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A registered waiter. Dropping it unregisters.
#[derive(Debug)]
pub struct ResponseWaiter {
    at: ResponseRelay,
    ticket: Arc<str>,
}

impl ResponseWaiter {
    /// The ticket that the request must carry.
    #[must_use]
    pub fn ticket(&self) -> &str {
        &self.ticket
    }

    /// Takes the response of the last attempt made in this process, if there was one.
    #[must_use]
    pub fn take(&self) -> Option<CompleteResponse> {
        self.at.waiting().slots.get_mut(&self.ticket)?.answer.take()
    }

    /// Sets a streamed body for the request.
    pub fn set_request_body(&self, body: StreamedBody) {
        if let Some(slot) = self.at.waiting().slots.get_mut(&self.ticket) {
            slot.body = Some(body);
        }
    }

    /// Waits for a streamed response. Other responses are taken when the operation has ended.
    pub async fn wait_streaming(&self) -> StreamingResponse {
        let has_news = self.at.waiting().slots.get(&self.ticket).map(|slot| Arc::clone(&slot.has_news));
        let has_news = has_news.unwrap_or_default();
        loop {
            match self.take_streaming() {
                Some(streaming) => return streaming,
                None => has_news.notified().await,
            }
        }
    }

    /// Takes a streamed response, if there is one already.
    #[must_use]
    pub fn take_streaming(&self) -> Option<StreamingResponse> {
        self.at.waiting().slots.get_mut(&self.ticket)?.streaming.take()
    }
}

impl Drop for ResponseWaiter {
    fn drop(&mut self) {
        self.at.waiting().slots.remove(&self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn whole(status: u16) -> CompleteResponse {
        CompleteResponse { status, headers: HeaderMap::new(), content: Content::Whole(Bytes::new()) }
    }

    /// LIM-28: the last attempt counts, and nothing is kept for waiters that are gone.
    #[test]
    fn lim_28_the_last_answer_is_handed_over_and_none_is_kept() {
        let handover = ResponseRelay::default();
        let (one, other) = (handover.register(), handover.register());
        handover.put(one.ticket(), Some(whole(500)));
        handover.put(one.ticket(), Some(whole(200)));
        handover.put(other.ticket(), Some(whole(503)));
        handover.put(other.ticket(), None);
        assert_eq!(one.take().map(|answer| answer.status), Some(200));
        assert!(one.take().is_none() && other.take().is_none());
        let gone = one.ticket().to_owned();
        drop((one, other));
        handover.put(&gone, Some(whole(200)));
        assert!(handover.waiting().slots.is_empty());
        assert_ne!(
            ResponseRelay::default().register().ticket(),
            ResponseRelay::default().register().ticket()
        );
    }
}
