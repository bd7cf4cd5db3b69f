//! How long a caller wants to wait for its operation to end: `wait_ms` in the query, or
//! `Prefer: wait=SECONDS` (RFC 7240), which is a preference and is capped to what is possible.

use std::time::Duration;

use axum::http::header::HeaderName;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;

use super::query::Query;
use tidegate_core::bounds::WAIT_MS_MAX;

pub(super) const PREFER: HeaderName = HeaderName::from_static("prefer");
const APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// A requested wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitPreference {
    /// The longest wait.
    pub most: Duration,
    /// The seconds in the header, if it came from one.
    preferred_s: Option<u64>,
}

impl WaitPreference {
    /// Reads the wait of a request; the query has precedence over the header.
    pub(crate) fn read(query: &mut Query, headers: &HeaderMap) -> Option<Self> {
        let asked = query.integer("wait_ms", 0..=WAIT_MS_MAX);
        let preferred_s =
            headers.get_all(&PREFER).iter().find_map(parse_wait_seconds).filter(|_| asked.is_none());
        let preferred_s = preferred_s.map(|seconds| seconds.min(WAIT_MS_MAX / 1_000));
        let millis = asked.or(preferred_s.map(|seconds| seconds * 1_000)).filter(|millis| *millis > 0);
        millis.map(|millis| Self { most: Duration::from_millis(millis), preferred_s })
    }

    /// Marks in the response that the preference was applied.
    pub(crate) fn mark_applied(self, response: &mut Response) {
        let applied = self.preferred_s.map(|seconds| HeaderValue::try_from(format!("wait={seconds}")));
        if let Some(Ok(applied)) = applied {
            response.headers_mut().insert(APPLIED, applied);
        }
    }
}

/// Parses the seconds of `wait` in one line of preferences; an unreadable one is ignored.
fn parse_wait_seconds(line: &HeaderValue) -> Option<u64> {
    let preferences = line.to_str().ok()?.split(',');
    let mut named = preferences.filter_map(|one| one.split(';').next()?.split_once('='));
    let (_, value) = named.find(|(name, _)| name.trim().eq_ignore_ascii_case("wait"))?;
    value.trim().trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(query: &str, lines: &[&str]) -> crate::error::Result<Option<WaitPreference>> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(PREFER, line.parse().unwrap());
        }
        let mut query = Query::parse(query);
        let wait = WaitPreference::read(&mut query, &headers);
        query.finish().map(|()| wait)
    }

    #[test]
    fn a_wait_is_read_from_the_query_or_the_header() {
        let asked = |millis, preferred_s| {
            Ok(Some(WaitPreference { most: Duration::from_millis(millis), preferred_s }))
        };
        assert_eq!(wait("", &[]), Ok(None));
        assert_eq!(wait("wait_ms=0", &[]), Ok(None));
        assert_eq!(wait("wait_ms=1500", &["wait=3"]), asked(1_500, None));
        for line in ["wait=3", "respond-async, wait=3", "Wait = \"3\"; x=1", "wait=3, wait=9"] {
            assert_eq!(wait("", &[line]), asked(3_000, Some(3)), "{line}");
        }
        assert_eq!(wait("", &["return=minimal", "wait=900"]), asked(60_000, Some(60)));
        for line in ["wait", "wait=soon", "wait=-1", "waits=3", "wait=0"] {
            assert_eq!(wait("", &[line]), Ok(None), "{line}");
        }
        assert_eq!(wait("wait_ms=60001", &[]).unwrap_err().field.as_deref(), Some("wait_ms"));
    }
}
