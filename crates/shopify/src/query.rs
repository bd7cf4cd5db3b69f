//! A GraphQL call inside an HTTP request: its text, its variables, its selected operation; and how
//! a changed text is written back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use tidegate_upstream::{Body, HttpRequest};

/// A GraphQL call.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct GraphqlRequest<'a> {
    /// The document.
    #[serde(borrow, default, rename = "query")]
    pub(crate) text: Cow<'a, str>,
    /// The variables, unparsed.
    #[serde(borrow, default)]
    pub(crate) variables: Option<&'a RawValue>,
    /// The selected operation of the document.
    #[serde(borrow, default, rename = "operationName")]
    pub(crate) operation: Option<Cow<'a, str>>,
}

impl<'a> GraphqlRequest<'a> {
    /// Reads the call in a request's body; `None` when there is none that can be read.
    #[must_use]
    pub(crate) fn read(request: &'a HttpRequest) -> Option<Self> {
        let sent = body_text(&request.body)?;
        let query: Self = if is_plain(request) {
            Self { text: Cow::Borrowed(sent), ..Self::default() }
        } else {
            serde_json::from_str(sent).ok()?
        };
        (!query.text.is_empty()).then_some(query)
    }

    /// Returns the name of the selected operation; an empty one counts as none.
    #[must_use]
    pub(crate) fn operation(&self) -> Option<&str> {
        self.operation.as_deref().filter(|name| !name.is_empty())
    }
}

/// Returns the text of a body, if it is one: a client's own bytes may be compressed.
fn body_text(body: &Body) -> Option<&str> {
    match body {
        Body::Empty => None,
        Body::Json(json) => Some(json.get()),
        Body::Text(text) => Some(text),
        Body::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
    }
}

/// Returns whether the body is the document itself.
fn is_plain(request: &HttpRequest) -> bool {
    request.header("content-type").is_some_and(|kind| kind.trim_start().starts_with("application/graphql"))
}

/// Returns the body with another document in it, everything else unchanged; `None` when it cannot
/// be written.
#[must_use]
pub(crate) fn replace_text(request: &HttpRequest, text: String) -> Option<Body> {
    if is_plain(request) {
        return Some(encode_like(&request.body, text));
    }
    let mut parts: BTreeMap<String, Box<RawValue>> = serde_json::from_str(body_text(&request.body)?).ok()?;
    parts.insert("query".into(), to_raw_value(&text).ok()?);
    Some(encode_like(&request.body, serde_json::to_string(&parts).ok()?))
}

/// Encodes a text in the form that the body had.
fn encode_like(body: &Body, text: String) -> Body {
    match body {
        Body::Bytes(_) => Body::Bytes(text.into()),
        Body::Json(_) => RawValue::from_string(text).map_or(Body::Empty, Body::Json),
        Body::Text(_) | Body::Empty => Body::Text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_upstream::Method;

    fn request(body: Body, kind: Option<&str>) -> HttpRequest {
        let plain = HttpRequest::new(Method::Post, "/admin/api/2026-04/graphql.json").with_body(body);
        kind.into_iter().fold(plain, |request, kind| request.with_header("Content-Type", kind))
    }

    fn json(text: &str) -> Body {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_call_is_read_in_each_way_it_is_sent() {
        let body = r#"{"operationName":"A","variables":{"n":1e400},"query":"query A { a \"x\" }"}"#;
        let sent = [
            request(json(body), None),
            request(Body::Text(body.into()), Some("application/json")),
            request(Body::Bytes(body.into()), None),
        ];
        for request in &sent {
            let query = GraphqlRequest::read(request).unwrap();
            assert_eq!((query.text.as_ref(), query.operation()), ("query A { a \"x\" }", Some("A")));
            assert_eq!(query.variables.unwrap().get(), r#"{"n":1e400}"#);
            let changed = replace_text(request, "{ b }".into()).unwrap();
            let changed = request.clone().with_body(changed);
            let query = GraphqlRequest::read(&changed).unwrap();
            assert_eq!((query.text.as_ref(), query.variables.unwrap().get()), ("{ b }", r#"{"n":1e400}"#));
        }
        let plain = request(Body::Text("{ a }".into()), Some("application/graphql; charset=utf-8"));
        assert_eq!(GraphqlRequest::read(&plain).unwrap().text, "{ a }");
        assert!(matches!(replace_text(&plain, "{ b }".into()), Some(Body::Text(text)) if text == "{ b }"));
        assert!(
            GraphqlRequest::read(&request(Body::Bytes(b"\x1f\x8b\xff"[..].into()), None)).is_none(),
            "packed"
        );
        for body in ["null", "[]", "{}", r#"{"query":""}"#, r#"{"query":3}"#, "\"{ a }\""] {
            assert!(GraphqlRequest::read(&request(json(body), None)).is_none(), "{body}");
        }
    }
}
