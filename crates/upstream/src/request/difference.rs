//! Compares two requests as they are sent: what makes no difference on the wire makes none here.

use std::collections::BTreeMap;

use super::{Body, Envelope, HttpRequest, path};
use crate::port::is_same_json;

const CONTENT_TYPE: &str = "content-type";

impl Envelope {
    /// Names the first field in which it differs from another; `None` when both send the same
    /// request. Names of headers are compared without case, paths as they are sent, and JSON bodies
    /// by value.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let (one, two) = (&self.request, &other.request);
        let same = [
            ("upstream", self.upstream == other.upstream),
            ("request.method", one.method == two.method),
            ("request.path", path::as_sent(&one.path) == path::as_sent(&two.path)),
            ("request.body", one.body.is_same(&two.body)),
            ("request.headers", headers_as_sent(one) == headers_as_sent(two)),
            ("completion", is_same_completion(self, other)),
        ];
        same.into_iter().find(|(_, is_same)| !is_same).map(|(field, _)| field)
    }
}

/// Whether both end in the same way: the service is told where to report it, and `succeeded` means
/// that it did.
fn is_same_completion(one: &Envelope, two: &Envelope) -> bool {
    match (&one.completion, &two.completion) {
        (None, None) => true,
        (Some(one), Some(two)) => is_same_json(one.get().as_bytes(), two.get().as_bytes()),
        _ => false,
    }
}

/// The headers that are sent, by name in lower case: a body has a content type by default.
fn headers_as_sent(request: &HttpRequest) -> BTreeMap<String, &str> {
    let by_default = request.body.content_type().map(|kind| (CONTENT_TYPE.to_owned(), kind));
    let own = request.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()));
    by_default.into_iter().chain(own).collect()
}

impl Body {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Empty, Self::Empty) => true,
            (Self::Json(one), Self::Json(two)) => is_same_json(one.get().as_bytes(), two.get().as_bytes()),
            (Self::Text(one), Self::Text(two)) => one == two,
            (Self::Bytes(one), Self::Bytes(two)) => one == two,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(one: &str, other: &str) -> Option<&'static str> {
        let read = |request: &str| {
            Envelope::decode(format!(r#"{{"upstream":"e","request":{request}}}"#).as_bytes()).unwrap()
        };
        read(one).difference(&read(other))
    }

    /// OPS-7: a job that is reported by a callback is not the same as one that ends with its
    /// response.
    #[test]
    fn ops_7_how_a_job_ends_makes_a_difference() {
        let read = |completion: &str| {
            let request = r#"{"method":"POST","path":"/jobs"}"#;
            let payload = format!(r#"{{"upstream":"e","request":{request}{completion}}}"#);
            Envelope::decode(payload.as_bytes()).unwrap()
        };
        let (plain, called) = (read(""), read(r#","completion":{"callback":true,"timeout_s":60}"#));
        assert_eq!(plain.difference(&called), Some("completion"));
        let spelled = read(r#","completion":{ "timeout_s":60, "callback":true }"#);
        assert_eq!(called.difference(&spelled), None);
    }

    /// OPS-7: two spellings of one request are the same request.
    #[test]
    fn ops_7_what_is_sent_alike_is_the_same() {
        let plain = r#"{"method":"POST","path":"/a b"}"#;
        for other in [
            r#"{"path":"/a b","method":"POST"}"#,
            r#"{"method":"POST","path":"/a b","headers":{}}"#,
            r#"{"method":"POST","path":"/a b","headers":null,"body":null}"#,
            r#"{"method":"POST","path":"/a%20b"}"#,
            r#"{"method":"POST","path":"/x/../a b"}"#,
        ] {
            assert_eq!(difference(plain, other), None, "{other}");
        }
        let json = r#"{"method":"POST","path":"/","headers":{"X-Tag":"1"},"body":{"a":1,"b":2}}"#;
        let same = r#"{"method":"POST","path":"/","headers":{"x-tag":"1","content-type":"application/json"},
                       "body":{"b":2.0,"a":1}}"#;
        assert_eq!(difference(json, same), None);
    }

    /// OPS-7: another request is named by the field that differs.
    #[test]
    fn ops_7_a_difference_is_named() {
        let first = r#"{"method":"POST","path":"/a","headers":{"x-tag":"a"},"body":{"n":1}}"#;
        for (other, field) in [
            (r#"{"method":"PUT","path":"/a","headers":{"x-tag":"a"},"body":{"n":1}}"#, "request.method"),
            (r#"{"method":"POST","path":"/a?b","headers":{"x-tag":"a"},"body":{"n":1}}"#, "request.path"),
            (r#"{"method":"POST","path":"/a","headers":{"x-tag":"A"},"body":{"n":1}}"#, "request.headers"),
            (r#"{"method":"POST","path":"/a","headers":{"x-tag":"a"},"body":{"n":2}}"#, "request.body"),
            (r#"{"method":"POST","path":"/a","headers":{"x-tag":"a"},"body":"{\"n\":1}"}"#, "request.body"),
            (r#"{"method":"POST","path":"/a","headers":{"x-tag":"a"}}"#, "request.body"),
        ] {
            assert_eq!(difference(first, other), Some(field), "{other}");
        }
    }
}
