//! Points in time as RFC 3339 with milliseconds, in UTC.

use serde::{Serialize, Serializer};
use tidegate_core::Time;

/// A time on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timestamp(pub Time);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

/// Parses an RFC 3339 time, with `Z` or an offset; `None` if it is invalid.
pub(crate) fn parse(text: &str) -> Option<Time> {
    Time::parse_rfc_3339(text)
}
