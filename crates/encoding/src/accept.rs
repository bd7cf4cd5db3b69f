//! Parses `Accept-Encoding`: the codings a client can read, and its preferences.

use std::fmt;

use crate::coding::{Coding, Codings};

/// The maximum number of entries read from one header.
const ENTRIES_MAX: usize = 32;

/// The codings that a client accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct AcceptEncoding {
    /// Supported codings, in the client's order.
    codings: Vec<(Coding, f32)>,
    /// The weight of all codings that are not named.
    others: Option<f32>,
}

impl AcceptEncoding {
    /// Parses the header. Malformed entries are not accepted.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut accept = Self { codings: Vec::new(), others: None };
        for entry in text.split(',').take(ENTRIES_MAX) {
            let (name, parameters) = entry.split_once(';').unwrap_or((entry, ""));
            let weight = weight(parameters);
            if name.trim() == "*" {
                accept.others = Some(weight);
            } else if let Some(coding) = Coding::parse(name)
                && accept.codings.iter().all(|(known, _)| *known != coding)
            {
                accept.codings.push((coding, weight));
            }
        }
        accept
    }

    fn weight(&self, coding: Coding) -> f32 {
        let named = self.codings.iter().find(|(known, _)| *known == coding).map(|(_, weight)| *weight);
        named.or(self.others).unwrap_or(0.0)
    }

    /// Whether the client can read a body with these codings.
    #[must_use]
    pub fn accepts(&self, codings: &Codings) -> bool {
        codings.outermost_first().all(|coding| self.weight(coding) > 0.0)
    }

    /// The coding that the client prefers, the first named among equals; `None` when it wants
    /// bodies without a coding.
    #[must_use]
    pub fn preferred(&self) -> Option<Coding> {
        let named = self.codings.iter().map(|(coding, _)| *coding);
        let best = named.chain(Coding::ALL).fold(None, |best: Option<(Coding, f32)>, coding| {
            let weight = self.weight(coding);
            let is_better = weight > best.map_or(0.0, |(_, weight)| weight);
            if is_better { Some((coding, weight)) } else { best }
        });
        best.map(|(coding, _)| coding)
    }
}

impl fmt::Display for AcceptEncoding {
    /// Formats a header that asks for what both the client and this crate can read, and for nothing
    /// else.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.codings.iter().map(|(coding, _)| *coding);
        let unnamed =
            Coding::ALL.into_iter().filter(|coding| self.codings.iter().all(|(known, _)| known != coding));
        let mut is_first = true;
        for coding in named.chain(unnamed).filter(|coding| self.weight(*coding) > 0.0) {
            f.write_str(if is_first { "" } else { ", " })?;
            is_first = false;
            match self.weight(coding) {
                weight if weight < 1.0 => write!(f, "{coding};q={weight}")?,
                _ => write!(f, "{coding}")?,
            }
        }
        if is_first { f.write_str("identity") } else { Ok(()) }
    }
}

/// The weight among an entry's parameters: 1 when there is none, 0 when it is invalid.
fn weight(parameters: &str) -> f32 {
    let weight = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
    });
    let Some(text) = weight else { return 1.0 };
    text.parse::<f32>().ok().filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_asked_for_what_both_can_read() {
        let table = [
            ("gzip, deflate, br", "gzip, deflate, br", Some(Coding::Gzip)),
            ("gzip;q=0.5, zstd;q=0.8, sdch", "gzip;q=0.5, zstd;q=0.8", Some(Coding::Zstd)),
            ("br;q=0, gzip", "gzip", Some(Coding::Gzip)),
            ("compress", "identity", None),
            ("identity", "identity", None),
            ("", "identity", None),
            ("*", "gzip, deflate, br, zstd", Some(Coding::Gzip)),
            ("gzip;q=0, *;q=0.1", "deflate;q=0.1, br;q=0.1, zstd;q=0.1", Some(Coding::Deflate)),
            ("gzip;q=high", "identity", None),
        ];
        for (text, asked, preferred) in table {
            let accept = AcceptEncoding::parse(text);
            assert_eq!((accept.to_string().as_str(), accept.preferred()), (asked, preferred), "{text}");
        }
    }

    #[test]
    fn every_coding_of_a_body_must_be_accepted() {
        let accepts = |accept, codings| {
            AcceptEncoding::parse(accept).accepts(&Codings::parse(codings).unwrap_or_default())
        };
        assert!(accepts("", "") && accepts("", "identity"));
        assert!(accepts("gzip", "gzip") && accepts("*", "br") && accepts("gzip, br", "br, gzip"));
        assert!(!accepts("", "gzip") && !accepts("gzip", "br") && !accepts("gzip", "br, gzip"));
        assert!(!accepts("*, gzip;q=0", "gzip"));
    }
}
