//! Stable hashes for comparing values. Every part is prefixed with its length, so no two lists of
//! parts collide by concatenation; the same parts give the same hash on every machine and in every
//! version.

use sha2::{Digest, Sha256};

/// A SHA-256 over length-prefixed parts.
#[derive(Clone, Debug, Default)]
pub struct Fingerprint(Sha256);

impl Fingerprint {
    /// Starts a hash for one purpose; two purposes never give the same hash.
    #[must_use]
    pub fn of(purpose: &str) -> Self {
        Self::default().part(purpose.as_bytes())
    }

    /// Adds a part.
    #[must_use]
    pub fn part(mut self, bytes: &[u8]) -> Self {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Returns all 256 bits.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }

    /// Returns the first 128 bits: enough for an in-memory key, and still infeasible to find a
    /// collision for.
    #[must_use]
    pub fn short(self) -> u128 {
        let mut first = [0; 16];
        first.copy_from_slice(&self.finish()[..16]);
        u128::from_be_bytes(first)
    }
}

/// Formats bytes as lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = vec![0; 2 * bytes.len()];
    write_hex(bytes, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Returns 128 bits as lower-case hexadecimal, without an allocation.
#[must_use]
pub fn hex_digits(bytes: [u8; 16]) -> [u8; 32] {
    let mut text = [0; 32];
    write_hex(&bytes, &mut text);
    text
}

fn write_hex(bytes: &[u8], text: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-3: the fingerprint is the same on every machine and in every version; this one is
    /// pinned.
    #[test]
    fn ops_3_the_hash_is_frozen() {
        let hash = Fingerprint::of("operation").part(b"a").part(b"bc").finish();
        assert_eq!(hex(&hash), FROZEN);
        assert_ne!(hash, Fingerprint::of("operation").part(b"ab").part(b"c").finish());
        assert_ne!(hash, Fingerprint::of("operation").part(b"a").part(b"bc").part(b"").finish());
    }

    const FROZEN: &str = "6eb9b0d661fcc2375431a20473d62d4a4e8e17ee0c2cda1364972354e57b872b";
}
