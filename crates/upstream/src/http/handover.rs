//! Whole answers for those who wait for them in this process: every header and every byte, beside the little that is
//! stored of an answer. Nothing here is written down, and nothing is kept for longer than somebody waits.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::HeaderMap;

use super::answer::{Answer, Content};

/// An answer as it came.
#[derive(Clone)]
pub struct Whole {
    /// Its status.
    pub status: u16,
    /// All of its headers.
    pub headers: HeaderMap,
    /// Its body, as far as it came.
    pub content: Content,
}

impl From<&Answer> for Whole {
    fn from(answer: &Answer) -> Self {
        Self {
            status: answer.status.as_u16(),
            headers: answer.headers.clone(),
            content: answer.content.clone(),
        }
    }
}

impl fmt::Debug for Whole {
    /// The status, and nothing that it says.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Whole").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Where answers are handed to those who wait. Clones are the same place.
#[derive(Clone, Debug)]
pub struct Handover(Arc<Place>);

#[derive(Debug)]
struct Place {
    /// Tells the tickets of this process from those of any other, before or beside it.
    process: u64,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    given_out: u64,
    answers: HashMap<Arc<str>, Option<Whole>>,
}

impl Default for Handover {
    fn default() -> Self {
        let process = RandomState::new().hash_one("a process");
        Self(Arc::new(Place { process, waiting: Mutex::default() }))
    }
}

impl Handover {
    /// Waits for an answer under a ticket of its own.
    #[must_use]
    pub fn expect(&self) -> Expected {
        let mut waiting = self.waiting();
        waiting.given_out += 1;
        let ticket: Arc<str> = format!("{:016x}-{}", self.0.process, waiting.given_out).into();
        waiting.answers.insert(Arc::clone(&ticket), None);
        drop(waiting);
        Expected { at: self.clone(), ticket }
    }

    /// The answer of the last attempt, or that it has none. Dropped when nobody waits.
    pub(super) fn put(&self, ticket: &str, answer: Option<Whole>) {
        if let Some(place) = self.waiting().answers.get_mut(ticket) {
            *place = answer;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody waits. Dropping it ends that.
#[derive(Debug)]
pub struct Expected {
    at: Handover,
    ticket: Arc<str>,
}

impl Expected {
    /// What the request has to carry.
    #[must_use]
    pub fn ticket(&self) -> &str {
        &self.ticket
    }

    /// The answer of the last attempt that was made in this process, if it had one.
    #[must_use]
    pub fn take(&self) -> Option<Whole> {
        self.at.waiting().answers.get_mut(&self.ticket)?.take()
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.at.waiting().answers.remove(&self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn whole(status: u16) -> Whole {
        Whole { status, headers: HeaderMap::new(), content: Content::Whole(Bytes::new()) }
    }

    /// LIM-28: the last attempt counts, and nothing is kept for those who have gone.
    #[test]
    fn lim_28_the_last_answer_is_handed_over_and_none_is_kept() {
        let handover = Handover::default();
        let (one, other) = (handover.expect(), handover.expect());
        handover.put(one.ticket(), Some(whole(500)));
        handover.put(one.ticket(), Some(whole(200)));
        handover.put(other.ticket(), Some(whole(503)));
        handover.put(other.ticket(), None);
        assert_eq!(one.take().map(|answer| answer.status), Some(200));
        assert!(one.take().is_none() && other.take().is_none());
        let gone = one.ticket().to_owned();
        drop((one, other));
        handover.put(&gone, Some(whole(200)));
        assert!(handover.waiting().answers.is_empty());
        assert_ne!(Handover::default().expect().ticket(), Handover::default().expect().ticket());
    }
}
