//! Replays a saved response, as it is or decoded for a client that does not accept its encoding.

use http::header::{CONTENT_ENCODING, ETAG, TRAILER, VARY};
use http::{HeaderName, HeaderValue, Response};
use tidegate_encoding::{AcceptEncoding, Codings, decode};

use crate::body::{CollectedBody, LayerBody};
use crate::saved_response::BufferedResponse;

/// The largest body that is decoded, in bytes.
const DECODED_MAX: usize = 64 << 20;
/// Headers that describe the bytes of an encoded body.
const OF_THE_BYTES: [&str; 5] =
    ["content-encoding", "content-digest", "repr-digest", "digest", "content-md5"];

/// Marks a replayed response.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

pub(super) async fn replay_response(
    whole: BufferedResponse,
    accepts: &AcceptEncoding,
) -> Response<LayerBody> {
    let whole = decode_for_client(whole, accepts).await;
    let mut pieces = CollectedBody::from(whole.body);
    pieces.trailers = whole.trailers;
    let announced = pieces.trailers.as_ref().and_then(|trailers| {
        let names: Vec<_> = trailers.keys().map(HeaderName::as_str).collect();
        HeaderValue::from_str(&names.join(", ")).ok()
    });
    let mut response = Response::new(pieces.into_body());
    *response.status_mut() = whole.status;
    let headers = response.headers_mut();
    for (name, value) in whole.headers {
        headers.append(name, value);
    }
    if let Some(announced) = announced {
        headers.insert(TRAILER, announced);
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

/// Converts the response to a form that the client accepts. One that cannot be decoded is sent as
/// it is.
async fn decode_for_client(mut whole: BufferedResponse, accepts: &AcceptEncoding) -> BufferedResponse {
    let named = whole.headers.iter().filter(|(name, _)| *name == CONTENT_ENCODING);
    let named: Vec<_> = named.filter_map(|(_, value)| value.to_str().ok()).collect();
    let Some(codings) = Codings::parse(&named.join(",")) else { return whole };
    if codings.is_empty() || whole.body.is_empty() || accepts.accepts(&codings) {
        return whole;
    }
    let Ok(body) = decode(&codings, &whole.body, DECODED_MAX).await else { return whole };
    whole.body = body;
    whole.headers.retain(|(name, _)| !OF_THE_BYTES.contains(&name.as_str()));
    for (_, tag) in whole.headers.iter_mut().filter(|(name, _)| *name == ETAG) {
        // The same response in other bytes.
        if let Some(weak) = tag.to_str().ok().filter(|tag| !tag.starts_with("W/"))
            && let Ok(weak) = HeaderValue::from_str(&format!("W/{weak}"))
        {
            *tag = weak;
        }
    }
    whole.headers.push((VARY, HeaderValue::from_static("accept-encoding")));
    whole
}
