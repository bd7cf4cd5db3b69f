//! Interprets the response to one call: what it means for the operation, and what it says about
//! limits, as hints.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::operation::MICRO;
use tidegate_core::{Fault, FaultClass, Hint, Time, Verdict};
use tidegate_upstream::http::response::{Content, RequestSummary, UpstreamResponse};
use tidegate_upstream::http::{Meaning, ResponseInterpreter};

use super::DiscordDialect;
use super::api_error::ApiError;
use super::rate_limit_headers::{RateLimitHeaders, Scope, TooManyRequests, retry_after_in_body};
use super::route::Route;

/// How long nothing is sent with a token that Discord does not know.
pub(crate) const UNKNOWN_TOKEN: Duration = Duration::from_secs(15 * 60);
/// How long nothing is sent when the address is refused and the response does not say for how long.
const REFUSED_ADDRESS: Duration = Duration::from_secs(3_600);
/// How long to wait for data that is not ready, when the response does not say.
const NOT_READY: Duration = Duration::from_secs(5);
/// The assumed rate per second of a route that reports no limit: no less than all routes together
/// may have.
const UNLIMITED_PER_S: u64 = 50;

/// Reads the response to one call in flight.
pub(super) struct ResponseReader<'a> {
    pub dialect: &'a DiscordDialect,
    pub route: Route,
    /// The limit of its route.
    pub limit: Arc<str>,
    /// The hidden limit that it counts against.
    pub hidden: Option<Arc<str>>,
}

/// What a response means, and which limits it counts against.
struct Interpretation {
    verdict: Verdict,
    hints: Vec<Hint>,
    /// Whether Discord counts it against the address.
    is_invalid: bool,
}

impl ResponseInterpreter for ResponseReader<'_> {
    fn interpret(
        self: Box<Self>,
        answer: &UpstreamResponse,
        asked: &RequestSummary<'_>,
        verdict: Verdict,
    ) -> Meaning {
        let body: &[u8] = match &answer.content {
            Content::Whole(body) => body,
            Content::TooLarge { .. } | Content::Cut(_) | Content::Relayed => b"",
        };
        let rate = RateLimitHeaders::from_headers(&answer.headers, answer.at);
        let Interpretation { verdict, mut hints, is_invalid } = match answer.status.as_u16() {
            429 => self.interpret_429(answer, asked, body, &rate),
            202 => self.interpret_usual(not_ready_verdict(asked, body).unwrap_or(verdict), answer, &rate),
            401 | 403 => Interpretation {
                is_invalid: true,
                ..self.interpret_refusal(answer, asked, body, &rate, verdict)
            },
            400..=499 => self.interpret_refusal(answer, asked, body, &rate, verdict),
            500..=599 => self.interpret_failure(answer, asked, body, &rate, verdict),
            _ => self.interpret_usual(verdict, answer, &rate),
        };
        if let Some(hash) = rate.bucket {
            self.dialect.buckets.put(self.route.key(), hash);
        }
        if !is_invalid {
            // A token was set aside in case the call is invalid, and is returned.
            hints.push(Hint { limit: Arc::clone(&self.dialect.invalid), spent: Some(0), ..Hint::default() });
        }
        Meaning { verdict, hints, spending: Vec::new() }
    }
}

impl ResponseReader<'_> {
    /// Interprets an ordinary response, with what the headers say.
    fn interpret_usual(
        &self,
        verdict: Verdict,
        answer: &UpstreamResponse,
        rate: &RateLimitHeaders<'_>,
    ) -> Interpretation {
        let mut hints = self.header_hints(rate);
        let is_unlimited = rate.limit.is_none() && self.dialect.buckets.get(&self.route.key()).is_none();
        if is_unlimited && answer.status.is_success() {
            hints.push(Hint {
                limit: Arc::clone(&self.limit),
                remaining: Some((UNLIMITED_PER_S - 1) * MICRO),
                capacity: Some(UNLIMITED_PER_S * MICRO),
                reset_at: Some(answer.at.after(Duration::from_secs(1))),
                ..Hint::default()
            });
        }
        Interpretation { verdict, hints, is_invalid: false }
    }

    /// Returns the hints of the headers for the route, and for those that share its hash.
    fn header_hints(&self, rate: &RateLimitHeaders<'_>) -> Vec<Hint> {
        let Some(capacity) = rate.limit else { return Vec::new() };
        let hint = |limit| Hint {
            limit,
            remaining: rate.remaining,
            capacity: Some(capacity),
            reset_at: rate.reset_at,
            ..Hint::default()
        };
        let bucket = rate.bucket.map(|hash| self.dialect.bucket_limit(hash, &self.route.major));
        [Some(Arc::clone(&self.limit)), bucket].into_iter().flatten().map(hint).collect()
    }

    /// Interprets a call that Discord refuses for good.
    fn interpret_refusal(
        &self,
        answer: &UpstreamResponse,
        asked: &RequestSummary<'_>,
        body: &[u8],
        rate: &RateLimitHeaders<'_>,
        verdict: Verdict,
    ) -> Interpretation {
        let Verdict::Rejected(by_status) = verdict else {
            return self.interpret_usual(verdict, answer, rate);
        };
        let refused = ApiError::read(body);
        let mut sentence =
            format!("{asked} was answered {}: {}", answer.status, refused.describe(&self.route));
        let mut hints = self.header_hints(rate);
        hints.extend(self.refund_hidden());
        // A token in the path is another one: a webhook that is gone says nothing about the bot.
        if answer.status.as_u16() == 401 && !self.route.has_token {
            let minutes = UNKNOWN_TOKEN.as_secs() / 60;
            sentence.push_str(&format!("; nothing is sent with this token for {minutes} minutes"));
            tracing::error!(upstream = %self.dialect.gate, minutes, "Discord does not know the token: nothing is sent");
            hints.push(closed_hint(&self.dialect.gate, answer.at.after(UNKNOWN_TOKEN)));
        }
        let fault = Fault::new(refused.class().unwrap_or(by_status.class), format!("{sentence}."));
        Interpretation { verdict: Verdict::Rejected(fault), hints, is_invalid: false }
    }

    /// Interprets a server error: the reason in its body, if it has one, belongs to the message.
    fn interpret_failure(
        &self,
        answer: &UpstreamResponse,
        asked: &RequestSummary<'_>,
        body: &[u8],
        rate: &RateLimitHeaders<'_>,
        mut verdict: Verdict,
    ) -> Interpretation {
        let failure = ApiError::read(body);
        if let (Verdict::Retry { fault, .. } | Verdict::Unknown(fault), true) =
            (&mut verdict, failure.has_reason())
        {
            let reason = failure.describe(&self.route);
            let message = format!("{asked} was answered {}: {reason}.", answer.status);
            *fault = fault.clone().with_message(message);
        }
        let mut hints = self.header_hints(rate);
        hints.extend(self.refund_hidden());
        Interpretation { verdict, hints, is_invalid: false }
    }

    /// Interprets a 429: closes the limit that it is about, for as long as it says.
    fn interpret_429(
        &self,
        answer: &UpstreamResponse,
        asked: &RequestSummary<'_>,
        body: &[u8],
        rate: &RateLimitHeaders<'_>,
    ) -> Interpretation {
        let TooManyRequests { scope, mut after } =
            TooManyRequests::from_response(&answer.headers, body, answer.at);
        let until = after.map(|after| answer.at.after(after)).or(rate.reset_at);
        // If the reported limit has something left, the limit that was hit is another one.
        let is_hidden = rate.remaining.is_some_and(|left| left > 0);
        let (limit, hints, whose) = match (scope, &self.hidden) {
            (Scope::User, Some(hidden)) if is_hidden => {
                (hidden, self.refund_hidden(), "a limit that Discord does not announce")
            }
            // Whatever its headers say of it: the routes that share it wait too.
            (Scope::User, _) => {
                let bucket = rate.bucket.map(|hash| self.dialect.bucket_limit(hash, &self.route.major));
                let limits = [Some(Arc::clone(&self.limit)), bucket].into_iter().flatten();
                let mut hints: Vec<_> =
                    limits.map(|limit| exhausted_hint(limit, until, rate.limit)).collect();
                hints.extend(self.refund_hidden());
                (&self.limit, hints, "the limit of its route")
            }
            // Responses to interactions are not counted there, and wait on their own.
            (Scope::Global, _) if self.route.is_interaction => {
                (&self.limit, Vec::new(), "the limit on all calls")
            }
            (Scope::Global, _) => (&self.dialect.global, self.refund_hidden(), "the limit on all calls"),
            (Scope::Shared, _) => (&self.limit, self.refund_hidden(), "a limit that others share"),
            (Scope::Edge, _) => {
                after = after.or(Some(REFUSED_ADDRESS));
                tracing::error!(upstream = %self.dialect.gate, "Discord's address refuses every call");
                (&self.dialect.gate, self.refund_hidden(), "a ban of this address")
            }
        };
        let wait = match after {
            Some(wait) => format!("it asks to wait {} ms", wait.as_millis()),
            None => "it does not say how long to wait".to_owned(),
        };
        let message = format!("{asked} was answered {}, by {whose}; {wait}.", answer.status);
        let fault = Fault::new(FaultClass::RateLimited, message);
        let verdict = Verdict::Throttled { after, scope: Some(Arc::clone(limit)), fault };
        Interpretation { verdict, hints, is_invalid: scope != Scope::Shared }
    }

    /// Refunds the hidden limit: a call that was refused for another reason, or failed, has not
    /// counted against it.
    fn refund_hidden(&self) -> Vec<Hint> {
        let hint = |limit| Hint { limit, spent: Some(0), ..Hint::default() };
        self.hidden.clone().map(hint).into_iter().collect()
    }
}

/// Returns the hint that nothing is left of a window until then, and that the refused call took
/// nothing.
fn exhausted_hint(limit: Arc<str>, until: Option<Time>, capacity: Option<u64>) -> Hint {
    let remaining = until.map(|_| 0);
    Hint { limit, remaining, capacity, reset_at: until, spent: Some(0), ..Hint::default() }
}

/// Returns a hint that closes a limit until then, whatever becomes of the call.
fn closed_hint(limit: &Arc<str>, until: Time) -> Hint {
    Hint { limit: Arc::clone(limit), reset_at: Some(until), ..Hint::default() }
}

/// Returns the verdict for a 202 that says to ask again.
fn not_ready_verdict(asked: &RequestSummary<'_>, body: &[u8]) -> Option<Verdict> {
    let refused = ApiError::read(body);
    let message = format!("{asked} was answered 202: it is not ready yet (code {}).", refused.code);
    let after = retry_after_in_body(body).unwrap_or(NOT_READY);
    let fault = Fault::new(FaultClass::Transient, message);
    refused.is_not_ready().then_some(Verdict::Retry { after: Some(after), fault })
}
