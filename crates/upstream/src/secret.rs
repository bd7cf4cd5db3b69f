//! A string that is sent but never shown.

use std::fmt;

use bytes::{Bytes, BytesMut};

/// What is shown instead of a credential.
const MASK: &str = "***";
/// A shorter credential may occur in data by chance, and stays there.
const MASKED_LEN_MIN: usize = 8;

/// A credential. Printing it in any way shows `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the credential, for the one place that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Masks the credential in a body, where a server repeats what it was sent.
    #[must_use]
    pub fn mask(&self, body: Bytes) -> Bytes {
        let token = self.0.as_bytes();
        let find = |from: usize| {
            let rest = body.get(from..)?;
            rest.windows(token.len()).position(|part| part == token).map(|at| from + at)
        };
        let Some(mut at) = (token.len() >= MASKED_LEN_MIN).then(|| find(0)).flatten() else { return body };
        let (mut masked, mut kept) = (BytesMut::with_capacity(body.len()), 0);
        loop {
            masked.extend_from_slice(&body[kept..at]);
            masked.extend_from_slice(MASK.as_bytes());
            kept = at + token.len();
            match find(kept) {
                Some(next) => at = next,
                None => break,
            }
        }
        masked.extend_from_slice(&body[kept..]);
        masked.freeze()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-22: no secret is in a log.
    #[test]
    fn ops_22_a_secret_never_prints() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?} {:#?}", Some(&secret)), "*** *** Some(\n    ***,\n)");
        assert_eq!(secret.reveal(), "hunter2");
    }

    /// OPS-22: a server that repeats a credential does not get it shown or stored.
    #[test]
    fn ops_22_an_echoed_secret_is_masked() {
        let secret = Secret::new("hunter2-of-the-bot");
        let mask = |body: &'static str| secret.mask(Bytes::from_static(body.as_bytes()));
        assert_eq!(mask("no hunter2-of"), "no hunter2-of");
        assert_eq!(mask("Bot hunter2-of-the-bot, hunter2-of-the-bothunter2-of-the-bot."), "Bot ***, ******.");
        assert_eq!(Secret::new("any").mask(Bytes::from_static(b"company")), "company");
        assert_eq!(Secret::new("").mask(Bytes::from_static(b"a")), "a");
    }
}
