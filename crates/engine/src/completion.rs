//! Completions: how a job that ends elsewhere is reported, and the token that proves the right to.
//! A token names the claim and authenticates it with the secret of the store, so nothing is stored
//! before the job is submitted.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tidegate_core::fingerprint::hex;
use tidegate_core::{Fault, Fence, OperationId, Verdict};

use crate::view::OperationView;

/// Separates these tokens from other uses of the same secret.
const DOMAIN: &[u8] = b"tidegate completion 1\0";
/// The length of the code in a token, in bytes.
const CODE_LEN: usize = 32;

/// Makes and checks completion tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct CompletionKey(Arc<[u8]>);

impl fmt::Debug for CompletionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompletionKey(..)")
    }
}

impl CompletionKey {
    /// Uses the secret of a store.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        Self(secret.into())
    }

    /// The token for a claim: its fence, a dot, and a code that authenticates id and fence.
    pub(crate) fn token(&self, id: OperationId, fence: Fence) -> String {
        match self.mac(id, fence) {
            Some(mac) => format!("{}.{}", fence.0, hex(&mac.finalize().into_bytes())),
            None => String::new(),
        }
    }

    /// Whether this is a token for some attempt of the operation; whether that attempt can still be
    /// completed is another question.
    #[must_use]
    pub fn is_valid(&self, id: OperationId, token: &str) -> bool {
        self.verify(id, token).is_some()
    }

    /// The claim that a token authorizes, compared in constant time; `None` for any other token.
    pub(crate) fn verify(&self, id: OperationId, token: &str) -> Option<Fence> {
        let (fence, code) = token.split_once('.')?;
        let fence = Fence(fence.parse().ok()?);
        let code = decode_hex(code)?;
        self.mac(id, fence)?.verify_slice(&code).ok()?;
        Some(fence)
    }

    fn mac(&self, id: OperationId, fence: Fence) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(DOMAIN);
        mac.update(id.to_string().as_bytes());
        mac.update(&fence.0.to_be_bytes());
        Some(mac)
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 2 * CODE_LEN || !text.bytes().all(is_hex) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Completion {
    /// It succeeded.
    Succeeded,
    /// It failed, and submitting it again is pointless.
    Failed(Fault),
    /// It failed, and is to be submitted again; an attempt is spent.
    Retry(Fault),
}

impl From<Completion> for Verdict {
    fn from(completion: Completion) -> Self {
        match completion {
            Completion::Succeeded => Self::Done,
            Completion::Failed(fault) => Self::Rejected(fault),
            Completion::Retry(fault) => Self::Retry { after: None, fault },
        }
    }
}

/// The right to complete an operation.
#[derive(Clone, PartialEq, Eq)]
pub enum CompletionProof {
    /// A completion token: completes the attempt that it was made for, and no other.
    Token(String),
    /// A caller that is allowed to: completes the current attempt, if it awaits its completion.
    Authorized,
}

impl fmt::Debug for CompletionProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "Token(..)",
            Self::Authorized => "Authorized",
        })
    }
}

/// The answer to a completion.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompletionReceipt {
    /// Whether it ended the attempt. Otherwise that had ended before, and nothing changed.
    pub applied: bool,
    /// The operation afterwards.
    pub operation: OperationView,
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Seq, Time};

    use super::*;

    fn id(seq: u64) -> OperationId {
        OperationId::new(Time::from_millis(1_700_000_000_000), 3, Seq(seq))
    }

    #[test]
    fn a_token_is_good_for_one_claim_of_one_operation_and_one_store() {
        let key = CompletionKey::new(&[7; 16]);
        let token = key.token(id(1), Fence(9));
        assert_eq!(key.verify(id(1), &token), Some(Fence(9)));
        assert_eq!(key.verify(id(2), &token), None, "another operation");
        assert_eq!(CompletionKey::new(&[8; 16]).verify(id(1), &token), None, "another store");
        let other = token.replacen('9', "8", 1);
        assert_eq!(key.verify(id(1), &other), None, "another claim");
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).expect("it is text");
            assert_eq!(key.verify(id(1), &changed), None, "changed at {at}");
            assert_eq!(key.verify(id(1), &token[..at]), None, "cut at {at}");
        }
        assert_eq!(key.verify(id(1), &token.to_uppercase().replace('.', ":")), None);
        assert!(!format!("{key:?}").contains('7'), "a secret is not shown");
    }
}
