//! The boundary between values and bytes: the trait of encodable values, the input being read, and
//! decoding errors. Reading checks every length before trusting it.

use std::fmt;

/// A value that can be written to bytes and read back.
pub(super) trait Wire: Sized {
    /// Appends its bytes.
    fn put(&self, out: &mut Vec<u8>);
    /// Reads it from the front.
    fn get(input: &mut Input<'_>) -> Result<Self, Problem>;
}

/// A decoding error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// The input ends too early.
    Short,
    /// A number is too large for its field.
    Large,
    /// An unknown tag.
    Tag,
    /// Text that is not UTF-8.
    Text,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "it ends too early",
            Self::Large => "a number is too large",
            Self::Tag => "a tag is unknown",
            Self::Text => "text is not UTF-8",
        })
    }
}

/// The bytes being read.
#[derive(Debug)]
pub(super) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The number of bytes left.
    pub(super) const fn left(&self) -> usize {
        self.rest.len()
    }

    /// The current position in `whole`.
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
