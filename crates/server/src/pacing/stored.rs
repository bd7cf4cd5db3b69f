//! The stored response, for a client whose operation ended on another node than the one that
//! accepted it: the status, the body, and the headers that are stored of any response.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use tidegate_core::{Fault, FaultClass, OperationId, State};
use tidegate_upstream::http::result::decode_body;

use super::response::{no_answer_response, upstream_response};

/// An operation as `GET /v1/operations/{id}` returns it.
#[derive(Deserialize)]
struct OperationJson<'a> {
    state: &'a str,
    attempt: u16,
    #[serde(borrow)]
    result: Option<ResultJson<'a>>,
    fault: Option<FaultJson>,
}

#[derive(Deserialize)]
struct ResultJson<'a> {
    status: u16,
    headers: BTreeMap<String, String>,
    #[serde(borrow)]
    body: &'a RawValue,
    json: Option<bool>,
    #[serde(default)]
    truncated: bool,
}

#[derive(Deserialize)]
struct FaultJson {
    class: String,
    message: String,
}

/// The response, if the operation has ended; `None` if it has not, or if the JSON cannot be read.
pub(crate) fn stored_response(method: &Method, id: OperationId, json: &[u8]) -> Option<Response> {
    let operation: OperationJson<'_> = serde_json::from_slice(json).ok()?;
    let state = State::parse(operation.state).filter(|state| state.is_ended())?;
    let fault = operation.fault.map(|fault| {
        Fault::new(FaultClass::parse(&fault.class).unwrap_or(FaultClass::Transient), fault.message)
    });
    let is_throttled = fault.as_ref().is_some_and(|fault| fault.class == FaultClass::RateLimited);
    let kept = operation.result.filter(|kept| !kept.truncated && !is_throttled);
    let whole = kept.and_then(|kept| Some((kept.status, header_map(&kept.headers), body_bytes(&kept)?)));
    Some(match whole {
        Some((status, headers, body)) => upstream_response(method, id, status, headers, body),
        None => no_answer_response(id, state, operation.attempt, fault.as_ref()),
    })
}

fn header_map(kept: &BTreeMap<String, String>) -> HeaderMap {
    let pair = |(name, value): (&String, &String)| {
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
    };
    kept.iter().filter_map(pair).collect()
}

fn body_bytes(kept: &ResultJson<'_>) -> Option<Bytes> {
    let kind = kept.headers.get("content-type").map_or("", String::as_str);
    decode_body(kept.body.get(), kind, kept.json)
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Seq, Time};

    use super::*;

    async fn respond_with(result: &str) -> (u16, Option<String>, Vec<u8>) {
        let id = OperationId::new(Time::from_millis(7), 3, Seq(9));
        let json = format!(r#"{{"id":"x","state":"succeeded","attempt":1,"result":{result},"fault":null}}"#);
        let response = stored_response(&Method::GET, id, json.as_bytes()).unwrap();
        let (parts, body) = response.into_parts();
        let code = parts.headers.get("x-tidegate-error").map(|code| code.to_str().unwrap().to_owned());
        (parts.status.as_u16(), code, axum::body::to_bytes(body, 1_000).await.unwrap().to_vec())
    }

    /// LIM-28: a stored response has the bytes of the original.
    #[tokio::test]
    async fn lim_28_a_stored_answer_is_the_answer() {
        let json = r#"{"status":201,"headers":{"content-type":"application/json"},"body":{"b": 1.10}}"#;
        assert_eq!(respond_with(json).await, (201, None, br#"{"b": 1.10}"#.to_vec()));
        let text = r#"{"status":200,"headers":{"content-type":"text/plain"},"body":"a\nb"}"#;
        assert_eq!(respond_with(text).await, (200, None, b"a\nb".to_vec()));
        let packed = r#"{"status":200,"headers":{"content-type":"application/json","content-encoding":"gzip"},"body":{"base64":"/w=="},"json":false}"#;
        assert_eq!(respond_with(packed).await, (200, None, vec![0xff]));
        let nothing = r#"{"status":204,"headers":{},"body":null}"#;
        assert_eq!(respond_with(nothing).await, (204, None, Vec::new()));
        let cut = r#"{"status":200,"headers":{},"body":"it was not kept","truncated":true}"#;
        assert_eq!(respond_with(cut).await.1.as_deref(), Some("TG0027"));
    }

    #[test]
    fn what_goes_on_has_no_answer_yet() {
        let id = OperationId::new(Time::from_millis(7), 3, Seq(9));
        let json = br#"{"state":"queued","attempt":0,"result":null,"fault":null}"#;
        assert!(stored_response(&Method::GET, id, json).is_none());
        let late =
            br#"{"state":"failed","attempt":0,"result":null,"fault":{"class":"transient","message":"late"}}"#;
        assert_eq!(stored_response(&Method::GET, id, late).unwrap().status(), 504);
    }
}
