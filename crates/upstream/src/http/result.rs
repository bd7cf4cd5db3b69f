//! The stored result of a response: `{"status", "headers", "body"}`, and `"truncated"` when the
//! body is missing. `"json": false` says that a body with a JSON content type is stored in another
//! form, so that `decode_body` returns the original bytes. Only headers about the result are kept,
//! and never a cookie.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tidegate_core::bounds::RESULT_LEN_MAX;
use tidegate_core::url_query::mask_urls;

use super::response::Content;

/// Longest header value that is kept, in bytes.
const VALUE_LEN_MAX: usize = 4 * 1024;
/// More deeply nested JSON is kept as text, so that every reader of a result can parse it.
const DEPTH_MAX: usize = 100;

const KEPT: [&str; 21] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-location",
    "content-type",
    "date",
    "deprecation",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "request-id",
    "retry-after",
    "sunset",
    "x-request-id",
    "x-shopify-api-deprecated-reason",
    "x-shopify-api-version",
    "x-shopify-shop-api-call-limit",
    "x-total-count",
];
/// Headers with URLs, which are kept without the secrets in their queries.
const URLS: [&str; 3] = ["content-location", "link", "location"];
const KEPT_PREFIXES: [&str; 2] = ["ratelimit", "x-ratelimit-"];
const KEPT_SUFFIXES: [&str; 2] = ["-correlation-id", "-request-id"];

#[derive(Serialize)]
struct StoredResponse<'a> {
    status: Option<u16>,
    headers: Headers<'a>,
    body: StoredBody<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    json: Option<bool>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum StoredBody<'a> {
    Nothing,
    Json(&'a RawValue),
    Text(&'a str),
    Binary { base64: String },
}

struct Headers<'a>(&'a HeaderMap);

impl Serialize for Headers<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for name in self.0.keys().filter(|name| is_kept(name.as_str())) {
            let values: Vec<_> =
                self.0.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
            let value = values.join(", ");
            if !values.is_empty() && value.len() <= VALUE_LEN_MAX {
                let has_urls = URLS.contains(&name.as_str());
                map.serialize_entry(name.as_str(), &if has_urls { mask_urls(&value) } else { value.into() })?;
            }
        }
        map.end()
    }
}

fn is_kept(name: &str) -> bool {
    KEPT.contains(&name)
        || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || KEPT_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Encodes a result, never longer than the bound on results. What was not a response has no status.
#[must_use]
pub fn encode(status: impl Into<Option<u16>>, headers: &HeaderMap, content: Content) -> Bytes {
    let status = status.into();
    let note = match content {
        Content::Whole(bytes) => {
            let body = body(headers, &bytes);
            let json =
                (is_json(content_type_of(headers)) && !matches!(body, StoredBody::Json(_))).then_some(false);
            let kept = StoredResponse { status, headers: Headers(headers), body, json, truncated: false };
            match serde_json::to_vec(&kept) {
                Ok(json) if json.len() <= RESULT_LEN_MAX => return Bytes::from(json),
                _ => format!(
                    "The body of {} bytes was not kept: as JSON it is larger than {RESULT_LEN_MAX}.",
                    bytes.len()
                ),
            }
        }
        Content::TooLarge { most } => format!("The body was not kept: it is larger than {most} bytes."),
        Content::Cut(reason) => format!("The body was not kept: {reason}."),
        Content::Relayed => "The body was not kept: it was streamed to the client.".to_owned(),
    };
    let kept = StoredResponse {
        status,
        headers: Headers(headers),
        body: StoredBody::Text(&note),
        json: None,
        truncated: true,
    };
    serde_json::to_vec(&kept).map_or_else(|_| Bytes::new(), Bytes::from)
}

fn body<'a>(headers: &HeaderMap, bytes: &'a [u8]) -> StoredBody<'a> {
    if bytes.is_empty() {
        return StoredBody::Nothing;
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return StoredBody::Binary { base64: STANDARD.encode(bytes) };
    };
    if is_json(content_type_of(headers))
        && depth(bytes) <= DEPTH_MAX
        && let Ok(json) = serde_json::from_str::<&RawValue>(text)
    {
        return StoredBody::Json(json);
    }
    StoredBody::Text(text)
}

/// Returns the original bytes of a stored body, given its JSON, the content type of its headers,
/// and the stored `json` flag.
#[must_use]
pub fn decode_body(kept: &str, content_type: &str, json: Option<bool>) -> Option<Bytes> {
    if is_json(content_type) && json != Some(false) {
        return Some(Bytes::copy_from_slice(kept.as_bytes()));
    }
    match kept.as_bytes().first()? {
        b'n' => Some(Bytes::new()),
        b'"' => serde_json::from_str::<String>(kept).ok().map(Bytes::from),
        _ => {
            let Base64 { base64 } = serde_json::from_str(kept).ok()?;
            STANDARD.decode(base64.as_ref()).ok().map(Bytes::from)
        }
    }
}

#[derive(Deserialize)]
struct Base64<'a> {
    #[serde(borrow)]
    base64: Cow<'a, str>,
}

fn content_type_of(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default()
}

fn is_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind == "text/json" || kind.ends_with("+json")
}

/// The nesting depth of arrays and objects, whatever else the text contains.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(headers: &[(&'static str, &'static str)], body: impl Into<Bytes>) -> String {
        let headers = headers.iter().map(|(n, v)| (n.parse().unwrap(), v.parse().unwrap())).collect();
        String::from_utf8(encode(200, &headers, Content::Whole(body.into())).to_vec()).unwrap()
    }

    #[test]
    fn json_is_kept_as_it_came() {
        let json = r#"{"b":12345678901234567890123, "a":1.10}"#;
        let kind = [("content-type", "application/problem+json; charset=utf-8")];
        let expected =
            format!(r#"{{"status":200,"headers":{{"content-type":"{}"}},"body":{json}}}"#, kind[0].1);
        assert_eq!(kept(&kind, json), expected);
    }

    #[test]
    fn what_is_not_json_is_text_or_base64() {
        let json = [("content-type", "application/json")];
        assert!(kept(&json, "{oops").ends_with(r#""body":"{oops","json":false}"#));
        assert!(kept(&[], "{}").ends_with(r#""body":"{}"}"#));
        assert!(kept(&json, "").ends_with(r#""body":null,"json":false}"#));
        assert!(kept(&json, &b"\xff\xfe"[..]).ends_with(r#""body":{"base64":"//4="},"json":false}"#));
        let deep = "[".repeat(101) + &"]".repeat(101);
        assert!(kept(&json, deep.clone()).contains(&format!("\"{deep}\"")));
        let text = r#"["[[[[\"[["]"#;
        assert_eq!(depth(text.as_bytes()), 1);
    }

    /// LIM-28: any body, with any content type, is restored exactly from the stored result.
    #[test]
    fn lim_28_a_kept_body_gives_its_bytes_back() {
        #[derive(serde::Deserialize)]
        struct Read<'a> {
            #[serde(borrow)]
            body: &'a RawValue,
            json: Option<bool>,
        }
        let deep = "[".repeat(101) + &"]".repeat(101);
        let bodies: [&[u8]; 9] = [
            b"",
            b"null",
            b"{\"b\": 1.10}",
            b"\"text\"",
            b"{oops",
            b"{\"base64\":\"//4=\"}",
            b"a\nb",
            b"\xff\xfe",
            deep.as_bytes(),
        ];
        for kind in ["", "application/json", "application/x-ndjson", "application/problem+json", "text/plain"]
        {
            for body in bodies {
                let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind.parse().unwrap())]);
                let kept = encode(200, &headers, Content::Whole(Bytes::copy_from_slice(body)));
                let read: Read<'_> = serde_json::from_slice(&kept).unwrap();
                let found = decode_body(read.body.get(), kind, read.json);
                assert_eq!(found.as_deref(), Some(body), "{kind}: {}", String::from_utf8_lossy(&kept));
            }
        }
    }

    /// OPS-22: cookies and other unrelated headers of a response are not kept.
    #[test]
    fn ops_22_only_headers_about_the_result_are_kept() {
        let headers = [
            ("set-cookie", "hunter2"),
            ("x-internal", "hunter2"),
            ("etag", "e"),
            ("x-ratelimit-limit", "9"),
            ("x-github-request-id", "7"),
        ];
        let kept = kept(&headers, "");
        assert!(kept.contains(r#""x-github-request-id":"7""#), "{kept}");
        assert!(
            !kept.contains("hunter2") && kept.contains(r#""etag":"e""#) && kept.contains("x-ratelimit-limit")
        );
    }

    /// OPS-22: a URL in a response is kept without the secrets in its query.
    #[test]
    fn ops_22_a_location_is_kept_without_its_secrets() {
        let headers = [
            ("location", "https://files.example/7?X-Amz-Signature=hunter2&part=1"),
            ("link", "</x?page=2&access_token=hunter2>; rel=\"next\""),
        ];
        let kept = kept(&headers, "");
        assert!(!kept.contains("hunter2"), "{kept}");
        assert!(kept.contains("part=1") && kept.contains("page=2"), "{kept}");
    }

    #[test]
    fn a_result_is_never_larger_than_it_may_be() {
        let control = vec![1_u8; RESULT_LEN_MAX / 2];
        let kept = kept(&[], control);
        assert!(kept.len() < 1_000 && kept.ends_with(r#""truncated":true}"#), "{}", kept.len());
    }
}
