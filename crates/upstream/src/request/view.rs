//! A request as it may be shown to people: with its secrets masked, and bounded in size. A body is
//! shown if its form is known, because secrets are found by the names of its fields.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_core::bounds::BODY_SHOWN_MAX;
use tidegate_core::masking::{mask_form, mask_header, mask_path, mask_text};

use super::masked_json::mask_json;
use super::{Body, HttpRequest};

/// The most bytes of a path, a query or the value of a header that are shown.
const PART_SHOWN_MAX: usize = 512;

/// What a call asks for: the start of its request, without the query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestLine {
    /// The method.
    pub method: &'static str,
    /// The path below the upstream's base URL. Segments that look like tokens are masked.
    pub path: String,
}

/// A request, as far as it may be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestView {
    /// The method and the path; `None` for a kind that has none.
    pub line: Option<RequestLine>,
    /// The query, if there is one.
    pub query: Option<String>,
    /// The headers that the caller set.
    pub headers: Vec<(String, String)>,
    /// The body, if there is one.
    pub body: Option<BodyView>,
    /// How the end of its job is found out, in JSON, if it submits one.
    pub completion: Option<String>,
}

/// A body, as far as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyView {
    /// Its text; `None` if its form is not known, or if it was not stored.
    pub text: Option<String>,
    /// Whether the text is JSON.
    pub is_json: bool,
    /// Whether the text is only its beginning.
    pub is_truncated: bool,
    /// Its length in bytes, as it is sent; `None` if it was not stored.
    pub len: Option<usize>,
}

impl RequestView {
    /// Shows a payload that is JSON of any form.
    #[must_use]
    pub fn of_payload(payload: &[u8]) -> Self {
        let json = std::str::from_utf8(payload).ok().and_then(|text| mask_json(text, BODY_SHOWN_MAX));
        let body = BodyView::new(json.map(|json| (json, true)), payload.len());
        Self { body: Some(body), ..Self::default() }
    }

    /// Shows a request. A streamed body is not stored.
    pub(crate) fn of_request(request: &HttpRequest, is_streamed: bool) -> Self {
        let query = request.path.split_once('?').map(|(_, query)| bounded(mask_form(query)));
        let shown =
            |(name, value): &(String, String)| (name.clone(), bounded(mask_header(name, value).into_owned()));
        let body = match is_streamed {
            true => Some(BodyView { text: None, is_json: false, is_truncated: false, len: None }),
            false => BodyView::of_body(&request.body, request.header("content-type")),
        };
        let line = Some(RequestLine::of_request(request));
        Self { line, query, headers: request.headers.iter().map(shown).collect(), body, completion: None }
    }

    /// Adds how the end of its job is found out.
    pub(crate) fn with_completion(mut self, completion: Option<&RawValue>) -> Self {
        self.completion = completion.and_then(shown_completion);
        self
    }
}

impl RequestLine {
    pub(crate) fn of_request(request: &HttpRequest) -> Self {
        let path = bounded(mask_path(request.path_only()).into_owned());
        Self { method: request.method.as_str(), path }
    }
}

impl BodyView {
    fn new(text: Option<(String, bool)>, len: usize) -> Self {
        let Some((mut text, is_json)) = text else {
            return Self { text: None, is_json: false, is_truncated: false, len: Some(len) };
        };
        let is_truncated = truncate(&mut text, BODY_SHOWN_MAX);
        Self { text: Some(text), is_json: is_json && !is_truncated, is_truncated, len: Some(len) }
    }

    fn of_body(body: &Body, content_type: Option<&str>) -> Option<Self> {
        let content: Cow<'_, str> = match body {
            Body::Empty => return None,
            Body::Json(json) => Cow::Borrowed(json.get()),
            Body::Text(text) => Cow::Borrowed(text),
            Body::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Cow::Borrowed(text),
                Err(_) => return Some(Self::new(None, bytes.len())),
            },
        };
        Some(Self::new(masked(&content, content_type), content.len()))
    }
}

/// How the end of a job is found out, with what looks like a secret in the path of its polls
/// masked. The place of a token is not a secret. `None` if it is too long to be shown.
fn shown_completion(rules: &RawValue) -> Option<String> {
    let mut rules: Value = serde_json::from_str(rules.get()).ok()?;
    if let Some(Value::String(path)) = rules.pointer_mut("/poll/path") {
        let masked = match path.split_once('?') {
            Some((path, query)) => format!("{}?{}", mask_path(path), mask_form(query)),
            None => mask_path(path).into_owned(),
        };
        *path = bounded(masked);
    }
    Some(rules.to_string()).filter(|text| text.len() <= BODY_SHOWN_MAX)
}

/// Masks a text by its form, and returns whether it is JSON; `None` if its form is not known.
fn masked(text: &str, content_type: Option<&str>) -> Option<(String, bool)> {
    if let Some(json) = mask_json(text, BODY_SHOWN_MAX) {
        return Some((json, true));
    }
    let kind =
        content_type.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    match kind.as_deref() {
        Some("application/x-www-form-urlencoded") => Some((mask_form(text), false)),
        None | Some("text/plain") if is_form(text) => Some((mask_form(text), false)),
        None | Some("text/plain") => Some((mask_text(text), false)),
        Some(_) => None,
    }
}

/// Whether a text is written as a form.
fn is_form(text: &str) -> bool {
    !text.contains(char::is_whitespace) && text.split('&').all(|pair| pair.contains('='))
}

fn bounded(mut text: String) -> String {
    if truncate(&mut text, PART_SHOWN_MAX) {
        text.push('…');
    }
    text
}

/// Cuts a text at `most` bytes, or before, where a character begins; returns whether it was longer.
fn truncate(text: &mut String, most: usize) -> bool {
    let is_longer = text.len() > most;
    text.truncate(text.floor_char_boundary(most));
    is_longer
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use super::*;
    use crate::request::Method;

    fn shown(request: &HttpRequest) -> RequestView {
        RequestView::of_request(request, false)
    }

    /// OPS-22, OPS-23: a request is shown, and none of its secrets is.
    #[test]
    fn ops_22_ops_23_a_request_is_shown_without_its_secrets() {
        let path = "/pay/aB3dE5fG7hJ9kL1mN3pQ5r?order=7&token=hunter2";
        let request = HttpRequest::new(Method::Post, path)
            .with_header("X-Tag", "a")
            .with_header("x-vault-token", "hunter2")
            .with_body(json!({ "amount": 12, "card": { "password": "hunter2", "keys": ["hunter2"] } }));
        let view = shown(&request);
        let line = view.line.as_ref().unwrap();
        assert_eq!((line.method, &*line.path), ("POST", "/pay/redacted"));
        assert_eq!(view.query.as_deref(), Some("order=7&token=redacted"));
        assert_eq!(view.headers[0], ("X-Tag".into(), "a".into()));
        let body = view.body.as_ref().unwrap();
        let json = r#"{"amount":12,"card":{"keys":"redacted","password":"redacted"}}"#;
        assert_eq!((body.text.as_deref(), body.is_json, body.is_truncated), (Some(json), true, false));
        assert!(!format!("{view:?}").contains("hunter2"), "{view:?}");
        let rules = r#"{"callback":{"token":"/secret","url":"X-Hook"},"poll":{"done":{"/s":[1]},"path":"/jobs/{/id}?token=hunter2"}}"#;
        let raw = RawValue::from_string(rules.to_owned()).unwrap();
        let view = view.with_completion(Some(&raw));
        assert_eq!(view.completion, Some(rules.replace("hunter2", "redacted")));
    }

    /// OPS-22: text is shown by its form; what has another is not shown.
    #[test]
    fn ops_22_a_body_of_unknown_form_is_not_shown() {
        let multipart = "--b\r\ncontent-disposition: form-data; name=\"password\"\r\n\r\nhunter2\r\n--b--";
        let table = [
            (
                Some("application/x-www-form-urlencoded"),
                "a=1&password=hunter2",
                Some("a=1&password=redacted"),
            ),
            (None, "a=1&password=hunter2", Some("a=1&password=redacted")),
            (None, "one of a-1", Some("one of a-1")),
            (Some("text/plain; charset=utf-8"), "password: hunter2", Some("password: redacted")),
            (Some("application/xml"), "<password>hunter2</password>", None),
            (Some("multipart/form-data; boundary=b"), multipart, None),
            (
                Some("application/octet-stream"),
                r#"{"password":"hunter2"}"#,
                Some(r#"{"password":"redacted"}"#),
            ),
        ];
        for (kind, text, expected) in table {
            let mut request = HttpRequest::new(Method::Post, "/").with_body(text);
            request.headers.extend(kind.map(|kind| ("content-type".to_owned(), kind.to_owned())));
            let body = shown(&request).body.unwrap();
            assert_eq!((body.text.as_deref(), body.len), (expected, Some(text.len())), "{kind:?}");
        }
        let bytes = shown(&HttpRequest::new(Method::Post, "/").with_body(Bytes::from_static(b"\xff\0")));
        assert_eq!((bytes.body.unwrap().text, bytes.line.unwrap().path), (None, "/".into()));
        assert_eq!(shown(&HttpRequest::new(Method::Get, "/")).body, None);
        let streamed = RequestView::of_request(&HttpRequest::new(Method::Post, "/"), true);
        assert_eq!(streamed.body.unwrap().len, None);
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let long = "ä".repeat(BODY_SHOWN_MAX);
        let view = shown(
            &HttpRequest::new(Method::Post, format!("/{long}?{long}"))
                .with_header("x-tag", "word ".repeat(1_000))
                .with_body(json!({ "text": long, "password": "hunter2" })),
        );
        let body = view.body.unwrap();
        let text = body.text.unwrap();
        assert!(body.is_truncated && !body.is_json && text.len() <= BODY_SHOWN_MAX, "{}", text.len());
        assert!(body.len > Some(2 * BODY_SHOWN_MAX));
        let parts = [view.line.unwrap().path, view.query.unwrap(), view.headers[0].1.clone()];
        for part in parts {
            assert!(part.len() <= PART_SHOWN_MAX + 3 && part.ends_with('…'), "{}", part.len());
        }
        let payload = RequestView::of_payload(br#"{"api_key":"hunter2","n":1.10}"#).body.unwrap();
        assert_eq!(payload.text.as_deref(), Some(r#"{"api_key":"redacted","n":1.10}"#));
        assert_eq!(RequestView::of_payload(b"\xff").body.unwrap().text, None);
    }
}
