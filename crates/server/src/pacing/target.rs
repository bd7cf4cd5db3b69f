//! The target of a proxied call: `/proxy/{upstream}/…`, with everything after the name as the
//! client wrote it.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The path prefix of proxied calls.
pub(crate) const PREFIX: &str = "/proxy/";

/// An upstream, and the path below it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ProxyTarget<'a> {
    pub upstream: Cow<'a, str>,
    /// Path and query; starts with a slash.
    pub path: Cow<'a, str>,
}

impl<'a> ProxyTarget<'a> {
    /// From a path with its query.
    pub(crate) fn read(target: &'a str) -> Option<Self> {
        let rest = target.strip_prefix(PREFIX)?;
        let (name, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let upstream = percent_decode_str(name).decode_utf8().ok()?;
        let path = if path.starts_with('/') { path.into() } else { format!("/{path}").into() };
        Some(Self { upstream, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-28: nothing after the upstream's name is changed.
    #[test]
    fn lim_28_path_and_query_stay_as_they_are() {
        let table = [
            ("/proxy/echo/a%2Fb/%7Ec?x=%20+&y=//", "echo", "/a%2Fb/%7Ec?x=%20+&y=//"),
            ("/proxy/echo//x/../y", "echo", "//x/../y"),
            ("/proxy/e%63ho/", "echo", "/"),
            ("/proxy/echo", "echo", "/"),
            ("/proxy/echo?q=/1", "echo", "/?q=/1"),
        ];
        for (target, upstream, path) in table {
            let read = ProxyTarget::read(target).unwrap();
            assert_eq!((&*read.upstream, &*read.path), (upstream, path), "{target}");
        }
        assert_eq!(ProxyTarget::read("/v1/operations"), None);
        assert_eq!(ProxyTarget::read("/proxy/%ff/x"), None);
    }
}
