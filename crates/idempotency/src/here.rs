//! What this process knows of keys that the store could not be told about: requests still in work whose leases may have run out
//! there, and answers that were given and are not kept yet. While the store is away, and a moment longer, a repeat is
//! answered from here, so that it does not run beside the first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tidegate_core::shared::record::Token;

/// Keys that are known at once; what is beyond is the store's business alone.
const KNOWN_MAX: usize = 10_000;
/// Bytes of answers that are held at once.
const BYTES_MAX: usize = 64 << 20;

/// What is known of one key.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// A request is in work.
    InWork,
    /// It was answered: the bytes that are to be kept.
    Answered(Bytes),
}

struct Entry {
    token: Token,
    fingerprint: [u8; 32],
    known: Known,
}

#[derive(Default)]
struct Book {
    entries: HashMap<String, Entry>,
    bytes: usize,
}

/// The keys of this process that the store has not heard of.
#[derive(Default)]
pub(crate) struct Here(Mutex<Book>);

impl Here {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the store could not be told. When there is no room it is not noted.
    pub(crate) fn note(&self, name: &str, token: Token, fingerprint: [u8; 32], known: Known) {
        let mut book = self.book();
        book.remove(name, token);
        let len = size(&known);
        if book.entries.len() < KNOWN_MAX && book.bytes + len <= BYTES_MAX && !book.entries.contains_key(name)
        {
            book.bytes += len;
            book.entries.insert(name.to_owned(), Entry { token, fingerprint, known });
        }
    }

    /// The store has heard of it, or it does not matter any more.
    pub(crate) fn forget(&self, name: &str, token: Token) {
        self.book().remove(name, token);
    }

    /// What is known of a key, and the fingerprint of its request.
    pub(crate) fn known(&self, name: &str) -> Option<([u8; 32], Known)> {
        let book = self.book();
        if book.entries.is_empty() {
            return None;
        }
        book.entries.get(name).map(|entry| (entry.fingerprint, entry.known.clone()))
    }
}

impl Book {
    fn remove(&mut self, name: &str, token: Token) {
        if self.entries.get(name).is_some_and(|entry| entry.token == token)
            && let Some(entry) = self.entries.remove(name)
        {
            self.bytes -= size(&entry.known);
        }
    }
}

fn size(known: &Known) -> usize {
    match known {
        Known::Answered(bytes) => bytes.len(),
        Known::InWork => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_bounded_and_goes_with_its_holder() {
        let here = Here::default();
        for nth in 0..KNOWN_MAX + 5 {
            here.note(&nth.to_string(), Token([1; 16]), [0; 32], Known::InWork);
        }
        assert_eq!(here.book().entries.len(), KNOWN_MAX);
        here.forget("7", Token([2; 16]));
        assert!(here.known("7").is_some(), "another holder's word does not count");
        here.forget("7", Token([1; 16]));
        assert!(here.known("7").is_none());
        let answered = Known::Answered(Bytes::from_static(b"answer"));
        here.note("8", Token([1; 16]), [0; 32], answered);
        assert!(matches!(here.known("8"), Some(([0, ..], Known::Answered(_)))));
    }
}
