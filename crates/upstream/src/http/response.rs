//! Interprets a response: its status and whether it is complete decide by the request's rule, and
//! its `Retry-After`, or the reset of its rate limit, says when.

use std::fmt;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, DATE, HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::{AttemptEnd, Fault, FaultClass, RetryRule, Time, Verdict, VerdictClass};
use tidegate_encoding::{AcceptEncoding, Codings, DecodeError, decode};

use super::dialect::{Meaning, ResponseInterpreter};
use super::limit_reset::LimitReset;
use super::result;
use super::target::BaseUrl;
use crate::port::Outcome;
use crate::request::Method;
use crate::retry_after;
use crate::secret::Secret;

/// From this duration on, a message counts seconds.
const SECONDS_FROM: Duration = Duration::from_secs(10);

/// Formats a duration for a message: in milliseconds, or in whole seconds where it is long.
pub(super) fn format_span(span: Duration) -> String {
    let millis = span.as_millis();
    if span < SECONDS_FROM { format!("{millis} ms") } else { format!("{} s", millis.div_ceil(1_000)) }
}

/// What the interpretation of a response needs to know about its request, and a message may say.
#[derive(Clone, Copy, Debug)]
pub struct RequestSummary<'a> {
    /// The method.
    pub method: Method,
    /// The name of the upstream.
    pub upstream: &'a str,
    /// Its base URL.
    pub base: &'a BaseUrl,
    /// The rule by which it may be sent again.
    pub retry_rule: RetryRule,
}

impl fmt::Display for RequestSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.method, self.upstream)
    }
}

/// The body of a response, as far as it was received.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// The complete body.
    Whole(Bytes),
    /// Larger than may be kept.
    TooLarge {
        /// The bound, in bytes.
        most: usize,
    },
    /// Incomplete, for this reason.
    Cut(String),
    /// Streamed to a client; nothing of it was kept.
    Relayed,
}

/// A response of an upstream.
#[derive(Clone)]
pub struct UpstreamResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub content: Content,
    /// When it came.
    pub at: Time,
}

impl UpstreamResponse {
    /// Decodes the body, as far as it may be kept. A body that does not match the coding in its
    /// header, or whose coding is not supported, stays as it came.
    #[must_use]
    pub async fn decoded(mut self, most: usize) -> Self {
        let Content::Whole(body) = &self.content else { return self };
        let Some(codings) = codings(&self.headers).filter(|codings| !codings.is_empty()) else { return self };
        self.content = match decode(&codings, body, most).await {
            Ok(body) => Content::Whole(body),
            Err(DecodeError::TooLarge) => Content::TooLarge { most },
            Err(DecodeError::Damaged) => return self,
        };
        self.headers.remove(CONTENT_ENCODING);
        self.headers.remove(CONTENT_LENGTH);
        self
    }

    /// Masks a credential in the body: a server may repeat what it was sent.
    #[must_use]
    pub(super) fn masked(mut self, secret: &Secret) -> Self {
        if let Content::Whole(body) = self.content {
            self.content = Content::Whole(secret.mask(body));
        }
        self
    }

    /// Whether a client with this `Accept-Encoding` can read the body as it came.
    #[must_use]
    pub fn is_readable_to(&self, accept: Option<&str>) -> bool {
        is_readable(&self.headers, accept)
    }

    /// The outcome, by its interpreter or by its status alone, and the result to keep.
    #[must_use]
    pub fn outcome(
        self,
        asked: &RequestSummary<'_>,
        reader: Option<Box<dyn ResponseInterpreter + '_>>,
    ) -> Outcome {
        let verdict = if self.is_unchanged(asked) { Verdict::Done } else { self.verdict(asked) };
        let Meaning { verdict, hints, spending } = match reader {
            Some(reader) => reader.interpret(&self, asked, verdict),
            None => Meaning { verdict, hints: Vec::new(), spending: Vec::new() },
        };
        let body = result::encode(self.status.as_u16(), &self.headers, self.content);
        let outcome = Outcome::unanswered(verdict).with_hints(hints).with_body(body);
        outcome.with_status(self.status.as_u16()).with_spending(spending)
    }

    /// The verdict by its status alone, and whether it is complete.
    #[must_use]
    pub fn verdict(&self, asked: &RequestSummary<'_>) -> Verdict {
        let status = self.status.as_u16();
        let cut = match &self.content {
            Content::Cut(reason) => Some(reason),
            Content::Whole(_) | Content::TooLarge { .. } | Content::Relayed => None,
        };
        let after = self.asked_wait();
        let (is_complete, asks_to_wait) = (cut.is_none(), after.is_some());
        let end = AttemptEnd::Answered { status, is_complete, asks_to_wait };
        let class = asked.retry_rule.classify(end);
        if class == VerdictClass::Done {
            return Verdict::Done;
        }
        let is_key_in_use = status == 409 && class == VerdictClass::Retry;
        let why = if is_key_in_use { ": an earlier request with its key may be in progress" } else { "" };
        let sentence = format!("{asked} was answered {}{why}", self.status);
        let message = match (FaultClass::of_status(status), cut, after) {
            (Some(_), _, Some(wait)) => format!("{sentence}; it asks to wait {}.", format_span(wait)),
            (Some(_), _, None) => format!("{sentence}."),
            (None, Some(reason), _) if self.status.is_success() => format!("{sentence}, but {reason}."),
            (None, ..) => self.describe_redirect(&sentence, asked),
        };
        let fault_class = match (class, FaultClass::of_status(status)) {
            (VerdictClass::Throttled, _) => FaultClass::RateLimited,
            (VerdictClass::Rejected, None) => FaultClass::Validation,
            (_, Some(class)) if !is_key_in_use => class,
            _ => FaultClass::Transient,
        };
        let may_have_happened = asked.retry_rule.may_have_happened(end);
        let fault = Fault { may_have_happened, ..Fault::new(fault_class, message) };
        match class {
            VerdictClass::Done => Verdict::Done,
            VerdictClass::Throttled => {
                Verdict::Throttled { after, scope: Some(Arc::from(asked.upstream)), fault }
            }
            VerdictClass::Retry => Verdict::Retry { after, fault },
            VerdictClass::Rejected => Verdict::Rejected(fault),
            VerdictClass::Unknown => Verdict::Unknown(fault),
        }
    }

    /// Whether it tells a client that the version it has is the current one: the answer to a
    /// conditional request.
    fn is_unchanged(&self, asked: &RequestSummary<'_>) -> bool {
        self.status == StatusCode::NOT_MODIFIED && matches!(asked.method, Method::Get | Method::Head)
    }

    /// Describes a response that is neither a success nor a failure.
    fn describe_redirect(&self, sentence: &str, asked: &RequestSummary<'_>) -> String {
        match self.text(&LOCATION).and_then(|location| asked.base.redirect_target(location)) {
            Some(to) => format!("{sentence} and pointed to {to}; redirects are not followed."),
            None => format!("{sentence}, which is no answer to a call."),
        }
    }

    /// How long it asks to wait: by `Retry-After`, or until its rate limit is reset, if it refuses
    /// the call for that. A time is compared with the upstream's own clock if it sent its time.
    fn asked_wait(&self) -> Option<Duration> {
        let now = self.text(&DATE).and_then(retry_after::parse_http_date).unwrap_or(self.at);
        let after = self.text(&RETRY_AFTER).and_then(|text| retry_after::parse(text, now));
        let until_reset = || {
            let limits = LimitReset::from_headers(&self.headers, now);
            match self.status {
                StatusCode::TOO_MANY_REQUESTS => limits.wait,
                StatusCode::FORBIDDEN => limits.wait.filter(|_| limits.is_used_up),
                _ => None,
            }
        };
        after.or_else(until_reset)
    }

    fn text(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Whether a client with this `Accept-Encoding` can read a body with these headers as it came.
pub(super) fn is_readable(headers: &HeaderMap, accept: Option<&str>) -> bool {
    // An unsupported coding cannot be undone here either.
    codings(headers).is_none_or(|codings| AcceptEncoding::parse(accept.unwrap_or_default()).accepts(&codings))
}

/// The codings of a body; `None` when one of them is not supported.
fn codings(headers: &HeaderMap) -> Option<Codings> {
    let lines = headers.get_all(CONTENT_ENCODING).iter();
    let named = lines.map(|line| line.to_str().ok()).collect::<Option<Vec<_>>>()?;
    Codings::parse(&named.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_durations_are_in_seconds() {
        let shown = [0, 9_999, 10_000, 19_991].map(|millis| format_span(Duration::from_millis(millis)));
        assert_eq!(shown, ["0 ms", "9999 ms", "10 s", "20 s"]);
    }
}
