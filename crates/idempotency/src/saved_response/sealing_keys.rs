//! Sealing of saved responses with XChaCha20-Poly1305. The first key seals and every key opens, so
//! that keys can be rotated without losing stored responses. Keys are wiped on drop and never
//! printed.

use std::fmt;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::codec::ResponseDecodeError;

const KEY_LEN: usize = 32;
const NONCE_LEN: usize = 24;
/// The bytes that identify the key.
const LABEL_LEN: usize = 4;
/// The maximum number of keys.
const KEYS_MAX: usize = 8;

type Label = [u8; LABEL_LEN];

/// The keys that seal and open responses.
pub struct SealingKeys {
    keys: Vec<(Label, XChaCha20Poly1305)>,
}

/// Why keys were rejected. Never contains a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealingKeyError {
    /// The variable is not set.
    #[error("the environment variable `{0}` is not set")]
    Unset(String),
    /// The variable holds something other than keys.
    #[error("key {index} in `{variable}` must be 64 hexadecimal digits (32 bytes)")]
    NotAKey {
        /// The variable.
        variable: String,
        /// The position of the invalid key, from 1.
        index: usize,
    },
    /// There are none, or too many.
    #[error("there must be 1 to {KEYS_MAX} keys to seal responses with")]
    Count,
}

impl SealingKeys {
    /// Creates a set that seals with the first key and opens with all of them.
    ///
    /// # Errors
    /// When there is none, or there are too many.
    pub fn new(keys: &[[u8; KEY_LEN]]) -> Result<Self, SealingKeyError> {
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(SealingKeyError::Count);
        }
        Ok(Self { keys: keys.iter().map(|key| (label(key), XChaCha20Poly1305::new(key.into()))).collect() })
    }

    /// Reads keys from an environment variable, in the format of `parse`.
    ///
    /// # Errors
    /// When it is not set, or part of it is not a key.
    pub fn from_env(variable: &str) -> Result<Self, SealingKeyError> {
        let text = std::env::var(variable)
            .map(Zeroizing::new)
            .map_err(|_| SealingKeyError::Unset(variable.to_owned()))?;
        Self::parse(variable, &text)
    }

    /// Parses the keys in the value of a variable: 64 hexadecimal digits each, the newest first,
    /// separated by commas.
    ///
    /// # Errors
    /// When part of it is not a key.
    pub fn parse(variable: &str, text: &str) -> Result<Self, SealingKeyError> {
        let mut keys = Zeroizing::new(Vec::new());
        for (index, part) in text.split(',').enumerate() {
            let wrong = || SealingKeyError::NotAKey { variable: variable.to_owned(), index: index + 1 };
            keys.push(from_hex(part.trim()).ok_or_else(wrong)?);
        }
        Self::new(&keys)
    }

    /// Returns the label of the key, a nonce, and the sealed content; `None` when the system has no
    /// randomness.
    pub(super) fn seal(&self, content: &[u8], bound: &[u8]) -> Option<Vec<u8>> {
        let (label, key) = self.keys.first()?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).ok()?;
        let sealed = key.encrypt(&XNonce::from(nonce), Payload { msg: content, aad: bound }).ok()?;
        Some([&label[..], &nonce, &sealed].concat())
    }

    pub(super) fn open(&self, sealed: &[u8], bound: &[u8]) -> Result<Vec<u8>, ResponseDecodeError> {
        let (label, rest) = sealed.split_first_chunk::<LABEL_LEN>().ok_or(ResponseDecodeError::Changed)?;
        let (nonce, content) = rest.split_first_chunk::<NONCE_LEN>().ok_or(ResponseDecodeError::Changed)?;
        let (_, key) = self.keys.iter().find(|(own, _)| own == label).ok_or(ResponseDecodeError::NoKey)?;
        key.decrypt(&XNonce::from(*nonce), Payload { msg: content, aad: bound })
            .map_err(|_| ResponseDecodeError::Changed)
    }
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Seal({} keys)", self.keys.len())
    }
}

fn label(key: &[u8; KEY_LEN]) -> Label {
    let hash = Sha256::new().chain_update(b"tidegate seal\0").chain_update(key).finalize();
    let mut label = [0; LABEL_LEN];
    label.copy_from_slice(&hash[..LABEL_LEN]);
    label
}

fn from_hex(text: &str) -> Option<[u8; KEY_LEN]> {
    let mut key = [0; KEY_LEN];
    if text.len() != 2 * KEY_LEN || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hexadecimal_and_32_bytes() {
        assert_eq!(from_hex(&"ab".repeat(32)), Some([0xab; 32]));
        for wrong in ["", "ab", &"ag".repeat(32), &"ab".repeat(33), &"+a".repeat(32), &"éa".repeat(21)] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
        assert_eq!(SealingKeys::new(&[]).unwrap_err(), SealingKeyError::Count);
        assert_eq!(SealingKeys::new(&[[0; 32]; 9]).unwrap_err(), SealingKeyError::Count);
        assert!(!format!("{:?}", SealingKeys::new(&[[0xab; 32]]).unwrap()).contains("ab"));
    }
}
