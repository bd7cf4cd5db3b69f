//! A kept answer, given again.

use http::header::TRAILER;
use http::{HeaderName, HeaderValue, Response};

use crate::answer::Whole;
use crate::body::{Body, Pieces};

/// Says that an answer was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

pub(super) fn answer(whole: Whole) -> Response<Body> {
    let mut pieces = Pieces::from(whole.body);
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
