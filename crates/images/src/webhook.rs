//! Webhooks: who sent one, when, and what it says. Signatures are compared in constant time, and a
//! message is accepted within five minutes of its timestamp.

pub mod jwks;
pub mod standard;

use std::time::Duration;

use http::HeaderMap;
use subtle::ConstantTimeEq as _;
use tidegate_core::Time;
use tidegate_core::bounds::WEBHOOK_SKEW_MAX;
use tidegate_upstream::Secret;

use crate::status::JobStatus;
use jwks::JwkSet;
use standard::StandardSecret;

/// A webhook as it came.
#[derive(Clone, Copy, Debug)]
pub struct Webhook<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its body, byte for byte.
    pub body: &'a [u8],
    /// The token in its URL.
    pub token: Option<&'a str>,
    /// When it came.
    pub received_at: Time,
}

/// What verifies webhooks of one provider.
#[derive(Clone, Debug)]
pub enum WebhookKeys {
    /// The secrets of Standard Webhooks: the current one, and older ones during a rotation.
    Standard(Vec<StandardSecret>),
    /// Public keys.
    Jwks(JwkSet),
    /// The token in the URL of this attempt, of a provider that signs nothing.
    Token(Secret),
}

/// Why a webhook is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// A header, or the token, is missing or not readable.
    #[error("the webhook has no readable {0}")]
    Missing(&'static str),
    /// Its timestamp is too old or too far in the future.
    #[error("the webhook's timestamp is more than 300 s from now")]
    Stale,
    /// No key verifies its signature.
    #[error("the webhook's signature is wrong")]
    Forged,
    /// It is genuine, and about another job than its address.
    #[error("the webhook is about another job than the one whose address it was sent to")]
    OtherJob,
    /// The keys are not of the kind that this provider uses.
    #[error("there is no key for this provider's webhooks")]
    NoKey,
    /// It is genuine, and not a message that the provider documents.
    #[error("the webhook's body cannot be read")]
    Unreadable,
}

/// What a webhook says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookReport {
    /// The id of the message, the same when it is repeated.
    pub delivery_id: Option<String>,
    /// The provider's id of the job, if the message has it.
    pub job_id: Option<String>,
    /// The state of the job.
    pub status: JobStatus,
}

/// A webhook that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceivedWebhook {
    /// The signature covers the body: it may be acted on.
    Signed(WebhookReport),
    /// Nothing proves the body. Poll the job, and act on that: what the message claims is left out.
    Unconfirmed {
        /// The id of the job that the message names, if any. It must be the attempt's own.
        job_id: Option<String>,
    },
}

/// Reads a timestamp in seconds and compares it with the clock.
pub(crate) fn check_timestamp(text: &str, now: Time) -> Result<u64, WebhookError> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let seconds: u64 = text.parse().ok().filter(|_| is_number).ok_or(WebhookError::Missing("timestamp"))?;
    let at = Time::ZERO.after(Duration::from_secs(seconds));
    let skew = at.since(now).max(now.since(at));
    if skew > WEBHOOK_SKEW_MAX { Err(WebhookError::Stale) } else { Ok(seconds) }
}

/// Returns a header's text.
pub(crate) fn header<'a>(webhook: &Webhook<'a>, name: &'static str) -> Result<&'a str, WebhookError> {
    let value = webhook.headers.get(name).and_then(|value| value.to_str().ok());
    value.filter(|value| !value.is_empty()).ok_or(WebhookError::Missing(name))
}

/// Compares the token in the URL with the attempt's own, in constant time.
pub(crate) fn check_token(webhook: &Webhook<'_>, keys: &WebhookKeys) -> Result<(), WebhookError> {
    let WebhookKeys::Token(expected) = keys else { return Err(WebhookError::NoKey) };
    let given = webhook.token.ok_or(WebhookError::Missing("token"))?;
    // An empty token would be known to everybody.
    let is_equal = bool::from(given.as_bytes().ct_eq(expected.reveal().as_bytes()));
    if is_equal && !given.is_empty() { Ok(()) } else { Err(WebhookError::Forged) }
}
