//! Standard Webhooks: HMAC-SHA256 over `{id}.{timestamp}.{body}`. Verifies those of providers, and
//! signs our own.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use ring::hmac;
use tidegate_core::Time;

use super::{Webhook, WebhookError, WebhookKeys, check_timestamp, header};

/// The header with the id of a message.
pub const ID: HeaderName = HeaderName::from_static("webhook-id");
/// The header with the time of sending, in seconds.
pub const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
/// The header with the signatures.
pub const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// What a secret starts with.
const PREFIX: &str = "whsec_";
/// What the signatures of this scheme start with.
const VERSION: &str = "v1,";
/// The most signatures of one message.
const SIGNATURES_MAX: usize = 16;
/// The lengths that the specification allows for a secret, in bytes.
const SECRET_LEN: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret that signs and verifies.
#[derive(Clone)]
pub struct StandardSecret(hmac::Key);

impl fmt::Debug for StandardSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A text that is no secret of Standard Webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret is `whsec_` and the Base64 of 24 to 64 bytes")]
pub struct SecretError;

impl StandardSecret {
    /// Reads a secret, with or without `whsec_`.
    ///
    /// # Errors
    /// When it is not Base64, or too short or long.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let text = text.trim();
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX).unwrap_or(text)).map_err(|_| SecretError)?;
        if !SECRET_LEN.contains(&bytes.len()) {
            return Err(SecretError);
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    fn context(&self, id: &str, timestamp: u64, body: &[u8]) -> hmac::Context {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        context
    }
}

/// Signs a message of our own with each secret, the current one first: during a rotation a receiver
/// may know either. Returns its headers; `None` when the id cannot be in one.
#[must_use]
pub fn sign(secrets: &[StandardSecret], id: &str, at: Time, body: &[u8]) -> Option<HeaderMap> {
    let timestamp = at.as_millis() / 1_000;
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret| format!("{VERSION}{}", STANDARD.encode(secret.context(id, timestamp, body).sign())))
        .collect();
    // A full stop in the id would move the border between id and timestamp.
    if signatures.is_empty() || id.is_empty() || id.contains('.') {
        return None;
    }
    Some(HeaderMap::from_iter([
        (ID, HeaderValue::from_str(id).ok()?),
        (TIMESTAMP, HeaderValue::from(timestamp)),
        (SIGNATURE, HeaderValue::from_str(&signatures.join(" ")).ok()?),
    ]))
}

/// Verifies a message and returns its id.
///
/// # Errors
/// When it is incomplete, stale or forged.
pub fn verify<'a>(webhook: &Webhook<'a>, keys: &WebhookKeys) -> Result<&'a str, WebhookError> {
    let WebhookKeys::Standard(secrets) = keys else { return Err(WebhookError::NoKey) };
    if secrets.is_empty() {
        return Err(WebhookError::NoKey);
    }
    let id = header(webhook, "webhook-id")?;
    let timestamp = check_timestamp(header(webhook, "webhook-timestamp")?, webhook.received_at)?;
    let given: Vec<Vec<u8>> = header(webhook, "webhook-signature")?
        .split(' ')
        .take(SIGNATURES_MAX)
        .filter_map(|signature| STANDARD.decode(signature.strip_prefix(VERSION)?).ok())
        .collect();
    let signed = [format!("{id}.{timestamp}.").as_bytes(), webhook.body].concat();
    let is_valid =
        |secret: &StandardSecret| given.iter().any(|given| hmac::verify(&secret.0, &signed, given).is_ok());
    if secrets.iter().any(is_valid) { Ok(id) } else { Err(WebhookError::Forged) }
}
