//! Whether an error of the HTTP client proves that a request was not processed, so that it may be
//! sent again whatever it does.

use std::error::Error;

/// True if the server has not processed the request that failed with this error. The client
/// reports "canceled" for requests that it still has whole, and for no others. By the rules of
/// HTTP/2, a refused stream was not processed, and neither was one beyond the last stream of a
/// connection that its server closes.
#[must_use]
pub fn is_unprocessed(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        let is_canceled = cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled);
        if is_canceled || cause.downcast_ref::<h2::Error>().is_some_and(is_refused) {
            return true;
        }
        next = cause.source();
    }
    false
}

/// The library reports GOAWAY only for streams beyond the last one that it names.
fn is_refused(error: &h2::Error) -> bool {
    error.is_remote()
        && match error.reason() {
            Some(h2::Reason::REFUSED_STREAM) => error.is_reset(),
            Some(h2::Reason::NO_ERROR) => error.is_go_away(),
            _ => false,
        }
}
