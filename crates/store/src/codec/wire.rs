//! The border between values and bytes: what can be written and read back, bytes that are being read, and what can
//! be wrong with them. Reading checks every length before it believes it.

use std::fmt;

/// A value that can be written to bytes and read back.
pub(super) trait Wire: Sized {
    /// Adds its bytes.
    fn put(&self, out: &mut Vec<u8>);
    /// Takes it off the front.
    fn get(input: &mut Input<'_>) -> Result<Self, Problem>;
}

/// What is wrong with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// They end too early.
    Short,
    /// A number is larger than its field.
    Large,
    /// A tag that means nothing.
    Tag,
    /// Text that is not UTF-8.
    Text,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "it ends too early",
            Self::Large => "a number is too large",
            Self::Tag => "a tag is not known",
            Self::Text => "text is not UTF-8",
        })
    }
}

/// Bytes that are being read.
#[derive(Debug)]
pub(super) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }

    /// How far reading has come in `whole`.
    pub(super) const fn position(&self, whole: &[u8]) -> usize {
        whole.len().saturating_sub(self.rest.len())
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Problem> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Problem::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Problem> {
        let len = usize::get(self)?;
        std::str::from_utf8(self.take(len)?).map_err(|_| Problem::Text)
    }
}
