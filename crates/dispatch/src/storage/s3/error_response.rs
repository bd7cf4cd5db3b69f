//! Reads the error of an S3 service: the code and the message of its XML. Everything else in it,
//! such as the string to sign, is left out.

use http::StatusCode;
use tidegate_upstream::http::response::{Content, UpstreamResponse};

use crate::storage::StorageError;

/// Longest code and longest message that are kept, in characters.
const TEXT_LEN_MAX: usize = 300;

/// Codes of client errors that pass: the service did not read the request in time, or is busy.
const TRANSIENT: [&str; 2] = ["RequestTimeout", "SlowDown"];

/// The error in a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ErrorResponse {
    pub status: StatusCode,
    pub code: String,
    pub message: String,
}

impl ErrorResponse {
    /// Reads a response that is no success.
    pub(super) fn read(response: &UpstreamResponse) -> Self {
        let body = match &response.content {
            Content::Whole(body) => String::from_utf8_lossy(body),
            Content::TooLarge { .. } | Content::Cut(_) | Content::Relayed => "".into(),
        };
        let element = |name: &str| element(&body, name).unwrap_or_default();
        Self { status: response.status, code: element("Code"), message: element("Message") }
    }

    /// Whether the same request may succeed later.
    pub(super) fn is_transient(&self) -> bool {
        self.status.is_server_error()
            || self.status == StatusCode::TOO_MANY_REQUESTS
            || self.status == StatusCode::REQUEST_TIMEOUT
            || TRANSIENT.contains(&self.code.as_str())
    }

    /// Whether it says that there is no such object. A bucket that does not exist is another error.
    pub(super) fn is_absent(&self) -> bool {
        self.status == StatusCode::NOT_FOUND && matches!(self.code.as_str(), "" | "NoSuchKey")
    }
}

impl From<ErrorResponse> for StorageError {
    fn from(error: ErrorResponse) -> Self {
        Self::Refused { status: error.status.as_u16(), code: error.code, message: error.message }
    }
}

/// The text of the first element of this name, on one line.
fn element(xml: &str, name: &str) -> Option<String> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    let text: String =
        text.chars().take(TEXT_LEN_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    Some(entities.iter().fold(text, |text, (entity, plain)| text.replace(entity, plain)))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;
    use tidegate_core::Time;

    use super::*;

    fn read(status: u16, body: &str) -> ErrorResponse {
        let content = Content::Whole(Bytes::copy_from_slice(body.as_bytes()));
        let status = StatusCode::from_u16(status).unwrap();
        ErrorResponse::read(&UpstreamResponse { status, headers: HeaderMap::new(), content, at: Time::ZERO })
    }

    #[test]
    fn code_and_message_are_read_and_nothing_else() {
        let xml = "<?xml version=\"1.0\"?>\n<Error><Code>SignatureDoesNotMatch</Code>\
                   <Message>The &quot;signature&quot; does\nnot match &amp;lt;.</Message>\
                   <StringToSign>hunter2</StringToSign></Error>";
        let error = read(403, xml);
        assert!(!error.is_transient() && !error.is_absent());
        let told = StorageError::from(error).to_string();
        assert_eq!(
            told,
            "the storage answered 403 SignatureDoesNotMatch: The \"signature\" does not match &lt;."
        );
        let long = format!("<Message>{}</Message>", "x".repeat(10_000));
        assert_eq!(read(403, &long).message.len(), TEXT_LEN_MAX);
    }

    #[test]
    fn what_passes_is_told_from_what_does_not() {
        for status in [500, 502, 503, 504, 429, 408] {
            assert!(read(status, "").is_transient(), "{status}");
        }
        assert!(read(400, "<Code>RequestTimeout</Code>").is_transient());
        for status in [301, 400, 403, 404, 409, 411] {
            assert!(!read(status, "").is_transient(), "{status}");
        }
        assert!(read(404, "").is_absent() && read(404, "<Code>NoSuchKey</Code>").is_absent());
        assert!(!read(404, "<Code>NoSuchBucket</Code>").is_absent());
        assert!(!read(403, "<Code>NoSuchKey</Code>").is_absent());
    }
}
