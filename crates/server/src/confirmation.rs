//! The token of a confirm step: a page that asks "really?" issues it, and the form of that page
//! must send it back. It names what was confirmed and by whom, expires, and is made with the secret
//! of the store, so any node accepts what another has issued.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use tidegate_core::Time;
use tidegate_core::fingerprint::hex;

/// Separates these tokens from other uses of the same secret.
const DOMAIN: &[u8] = b"tidegate confirmation 1\0";
/// How long a confirm page may stay open.
const VALID_FOR: Duration = Duration::from_secs(900);

/// Makes and checks tokens.
pub(crate) struct ConfirmationKey {
    secret: Vec<u8>,
    /// The tokens that this process has issued: no two of them are the same.
    issued: AtomicU64,
}

impl fmt::Debug for ConfirmationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfirmationKey(..)")
    }
}

impl ConfirmationKey {
    /// Uses the secret of a store.
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self { secret: secret.to_vec(), issued: AtomicU64::new(0) }
    }

    /// The token for this action, which this caller may send until it expires.
    pub(crate) fn issue(&self, action: &str, caller: &str, now: Time) -> String {
        let expires = now.after(VALID_FOR).as_millis();
        let number = self.issued.fetch_add(1, Ordering::Relaxed);
        format!("{expires}.{number}.{}", self.code(action, caller, [expires, number]))
    }

    /// Whether a token was issued for this action and caller, and has not expired.
    pub(crate) fn accepts(&self, token: &str, action: &str, caller: &str, now: Time) -> bool {
        let [expires, number, code] = *token.splitn(3, '.').collect::<Vec<_>>() else { return false };
        let (Ok(expires), Ok(number)) = (expires.parse(), number.parse()) else { return false };
        let is_same = code.as_bytes().ct_eq(self.code(action, caller, [expires, number]).as_bytes());
        Time::from_millis(expires) > now && bool::from(is_same)
    }

    fn code(&self, action: &str, caller: &str, numbers: [u64; 2]) -> String {
        // A key of any length is accepted.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return String::new() };
        mac.update(DOMAIN);
        for part in [action, caller] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        for number in numbers {
            mac.update(&number.to_be_bytes());
        }
        hex(&mac.finalize().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_one_action_of_one_caller_and_for_a_while() {
        let (key, now) = (ConfirmationKey::new(&[7; 16]), Time::from_millis(1_000));
        let token = key.issue("rerun op_1", "anna", now);
        assert!(key.accepts(&token, "rerun op_1", "anna", now));
        assert!(!key.accepts(&token, "rerun op_2", "anna", now), "another operation");
        assert!(!key.accepts(&token, "rerun op_1", "ben", now), "another caller");
        assert!(!key.accepts(&token, "rerun op_1", "anna", now.after(VALID_FOR)), "too late");
        assert!(!ConfirmationKey::new(&[8; 16]).accepts(&token, "rerun op_1", "anna", now), "another store");
        let prolonged = format!("9{token}");
        for forged in ["", ".", "..", "9999999999999.0.", "9999999999999.0", &*prolonged] {
            assert!(!key.accepts(forged, "rerun op_1", "anna", now), "{forged}");
        }
        assert_ne!(key.code("ab", "c", [1, 2]), key.code("a", "bc", [1, 2]), "parts are kept apart");
        assert_ne!(key.issue("rerun op_1", "anna", now), token, "each is issued once");
    }
}
