//! Hashes multipart bodies by their parts: clients draw a new boundary for each attempt, and it is
//! the one thing that does not count.

use sha2::{Digest, Sha256};

/// Hashes a body as the list of what stands between its delimiters.
pub(super) struct PartHasher {
    delimiter: Vec<u8>,
    /// Bytes that may be the beginning of a delimiter.
    held: Vec<u8>,
    part: Sha256,
    parts: Sha256,
}

impl PartHasher {
    pub(super) fn new(boundary: &str) -> Self {
        let delimiter = format!("\r\n--{boundary}").into_bytes();
        // The first delimiter may stand at the very beginning, without a line before it.
        Self { delimiter, held: b"\r\n".to_vec(), part: Sha256::new(), parts: Sha256::new() }
    }

    pub(super) fn update(&mut self, piece: &[u8]) {
        self.held.extend_from_slice(piece);
        let mut from = 0;
        while let Some(len) = find(&self.held[from..], &self.delimiter) {
            self.part.update(&self.held[from..from + len]);
            self.parts.update(self.part.finalize_reset());
            from += len + self.delimiter.len();
        }
        let keep_from = from.max(self.held.len().saturating_sub(self.delimiter.len() - 1));
        self.part.update(&self.held[from..keep_from]);
        self.held.drain(..keep_from);
    }

    pub(super) fn finish(mut self) -> [u8; 32] {
        self.part.update(&self.held);
        self.parts.chain_update(self.part.finalize()).finalize().into()
    }
}

/// Finds the delimiter, which begins with a carriage return and contains no other.
fn find(text: &[u8], delimiter: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(skip) = text[from..].iter().position(|byte| *byte == b'\r') {
        from += skip;
        if text[from..].starts_with(delimiter) {
            return Some(from);
        }
        from += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(boundary: &str, file: &str) -> String {
        format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"file\"\r\n\r\n{file}\r\n--{boundary}--\r\n"
        )
    }

    fn hash(boundary: &str, text: &str, piece_len: usize) -> [u8; 32] {
        let mut hasher = PartHasher::new(boundary);
        for piece in text.as_bytes().chunks(piece_len) {
            hasher.update(piece);
        }
        hasher.finish()
    }

    /// IDM-2: another boundary is the same request, however its body was split; another part is
    /// not.
    #[test]
    fn a_boundary_does_not_count() {
        let first = hash("one", &body("one", "a\r\n--b"), 1_000);
        for piece_len in [1, 2, 7, 64] {
            assert_eq!(hash("Other-0042", &body("Other-0042", "a\r\n--b"), piece_len), first, "{piece_len}");
        }
        assert_ne!(hash("one", &body("one", "a\r\n--c"), 1_000), first);
        assert_ne!(hash("one", &body("one", "a\r\n--one\r\nb"), 1_000), first, "a part more");
        assert_ne!(hash("one", "", 1), hash("one", "--one--", 1));
    }
}
