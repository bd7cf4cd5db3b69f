//! Claims and responses of this process that the store does not know of: requests still in flight
//! whose leases may have expired there, and responses that were sent and are not saved yet. While
//! the store is unavailable, and a moment longer, retries are served from this table, so that they
//! do not run concurrently with the first request.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tidegate_core::shared::record::HolderToken;

/// The most keys that are tracked at once; others depend on the store alone.
const KNOWN_MAX: usize = 10_000;
/// The bytes of responses that are held at once.
const BYTES_MAX: usize = 64 << 20;

/// The known state of a key.
#[derive(Clone, Debug)]
pub(crate) enum LocalClaimState {
    /// A request is in flight.
    InWork,
    /// The request was answered with these encoded bytes, which are yet to be saved.
    Answered(Bytes),
}

struct Entry {
    token: HolderToken,
    fingerprint: [u8; 32],
    known: LocalClaimState,
}

#[derive(Default)]
struct ClaimTable {
    entries: HashMap<String, Entry>,
    bytes: usize,
}

/// The keys of this process that the store does not know of.
#[derive(Default)]
pub(crate) struct LocalClaims(Mutex<ClaimTable>);

impl LocalClaims {
    fn lock(&self) -> MutexGuard<'_, ClaimTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a state that the store does not know of. Does nothing when there is no room.
    pub(crate) fn note(&self, name: &str, token: HolderToken, fingerprint: [u8; 32], known: LocalClaimState) {
        let mut book = self.lock();
        book.remove(name, token);
        let len = size(&known);
        if book.entries.len() < KNOWN_MAX && book.bytes + len <= BYTES_MAX && !book.entries.contains_key(name)
        {
            book.bytes += len;
            book.entries.insert(name.to_owned(), Entry { token, fingerprint, known });
        }
    }

    /// Forgets a key that the store knows by now, or that no longer matters.
    pub(crate) fn forget(&self, name: &str, token: HolderToken) {
        self.lock().remove(name, token);
    }

    /// The known state of a key, and the fingerprint of its request.
    pub(crate) fn find(&self, name: &str) -> Option<([u8; 32], LocalClaimState)> {
        let book = self.lock();
        if book.entries.is_empty() {
            return None;
        }
        book.entries.get(name).map(|entry| (entry.fingerprint, entry.known.clone()))
    }
}

impl ClaimTable {
    fn remove(&mut self, name: &str, token: HolderToken) {
        if self.entries.get(name).is_some_and(|entry| entry.token == token)
            && let Some(entry) = self.entries.remove(name)
        {
            self.bytes -= size(&entry.known);
        }
    }
}

fn size(known: &LocalClaimState) -> usize {
    match known {
        LocalClaimState::Answered(bytes) => bytes.len(),
        LocalClaimState::InWork => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_bounded_and_goes_with_its_holder() {
        let here = LocalClaims::default();
        for nth in 0..KNOWN_MAX + 5 {
            here.note(&nth.to_string(), HolderToken([1; 16]), [0; 32], LocalClaimState::InWork);
        }
        assert_eq!(here.lock().entries.len(), KNOWN_MAX);
        here.forget("7", HolderToken([2; 16]));
        assert!(here.find("7").is_some(), "another holder's word does not count");
        here.forget("7", HolderToken([1; 16]));
        assert!(here.find("7").is_none());
        let answered = LocalClaimState::Answered(Bytes::from_static(b"answer"));
        here.note("8", HolderToken([1; 16]), [0; 32], answered);
        assert!(matches!(here.find("8"), Some(([0, ..], LocalClaimState::Answered(_)))));
    }
}
