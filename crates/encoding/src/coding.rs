//! The content codings by name, and the list of them in a `Content-Encoding` header.

use std::fmt;

/// The maximum number of codings on one body. One is common; more than this is an attack.
const CODINGS_MAX: usize = 3;

/// A content coding that can be read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// The format of gzip files.
    Gzip,
    /// The zlib format. Some servers omit its envelope; their bodies are decoded all the same.
    Deflate,
    /// Brotli.
    Brotli,
    /// Zstandard, with a window of at most 8 MiB.
    Zstd,
}

impl Coding {
    /// All codings.
    pub const ALL: [Self; 4] = [Self::Gzip, Self::Deflate, Self::Brotli, Self::Zstd];

    /// Its name in headers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Parses its name, in any case; `None` for any other coding.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.trim();
        let is = |coding: &Self| name.eq_ignore_ascii_case(coding.as_str());
        Self::ALL.into_iter().find(is).or_else(|| name.eq_ignore_ascii_case("x-gzip").then_some(Self::Gzip))
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The codings of a body, in the order in which they were applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codings(Vec<Coding>);

impl Codings {
    /// Parses a `Content-Encoding` header; `None` when one of the codings is not supported, or
    /// there are too many.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let names = text.split(',').map(str::trim);
        let named = names.filter(|name| !name.is_empty() && !name.eq_ignore_ascii_case("identity"));
        let codings = named.map(Coding::parse).collect::<Option<Vec<_>>>()?;
        (codings.len() <= CODINGS_MAX).then_some(Self(codings))
    }

    /// Whether the body has no coding.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the codings, the last applied first: the order in which they are undone.
    pub fn outermost_first(&self) -> impl Iterator<Item = Coding> + '_ {
        self.0.iter().rev().copied()
    }
}

impl From<Coding> for Codings {
    fn from(coding: Coding) -> Self {
        Self(vec![coding])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_codings_in_their_order() {
        let read = |text| Codings::parse(text).map(|codings| codings.outermost_first().collect::<Vec<_>>());
        assert_eq!(read(""), Some(vec![]));
        assert_eq!(read("identity"), Some(vec![]));
        assert_eq!(read("GZIP"), Some(vec![Coding::Gzip]));
        assert_eq!(read("x-gzip"), Some(vec![Coding::Gzip]));
        assert_eq!(read("deflate, br"), Some(vec![Coding::Brotli, Coding::Deflate]));
        assert_eq!(read("gzip, compress"), None);
        assert_eq!(read("gzip, gzip, gzip, gzip"), None);
    }
}
