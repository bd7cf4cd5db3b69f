//! The executor of notifications. Each attempt is signed with the time at which it is sent, because
//! receivers refuse old timestamps; the id and the body stay the same. Any response but a success
//! is followed by another attempt, except for 410, by which a receiver says that it is gone.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode, response};
use tidegate_core::operation::time_left;
use tidegate_core::{Fault, FaultClass, OnUnknown, Verdict};
use tidegate_images::webhook::standard::{self, StandardSecret};
use tidegate_upstream::http::response::Content;
use tidegate_upstream::http::{ConfiguredLimits, LimitConfig, LimitDefinition, LimitKind, result};
use tidegate_upstream::{
    Call, CallFuture, CallRequirements, FieldRefusal, Outcome, RequestLine, Upstream, retry_after,
};

use super::retry_delay::retry_delay;
use super::target::check_target;
use super::transport::{DeliveryError, Transport};
use super::{KIND, Notification};

/// The default for how long one attempt may take in total.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(15);
/// The default for how many notifications are sent at once.
const AT_ONCE_DEFAULT: u32 = 16;

/// How notifications are signed and where they may go.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NotifierConfig {
    /// The secrets that sign, the current one first; older ones during a rotation.
    pub secrets: Vec<StandardSecret>,
    /// Whether receivers may be in a private network.
    pub allows_private: bool,
    /// How long one attempt may take in total.
    pub timeout: Duration,
    /// How many are sent at once.
    pub at_once: u32,
}

impl NotifierConfig {
    /// Creates a configuration with every default: receivers are on the public internet.
    #[must_use]
    pub const fn new(secrets: Vec<StandardSecret>) -> Self {
        Self { secrets, allows_private: false, timeout: TIMEOUT_DEFAULT, at_once: AT_ONCE_DEFAULT }
    }

    /// Sets whether receivers may be in a private network.
    #[must_use]
    pub const fn with_private(mut self, allows_private: bool) -> Self {
        self.allows_private = allows_private;
        self
    }

    /// Sets how long one attempt may take in total; 15 s by default.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how many are sent at once; 16 by default.
    #[must_use]
    pub const fn with_at_once(mut self, at_once: u32) -> Self {
        self.at_once = at_once;
        self
    }
}

/// Delivers notifications.
pub struct Notifier {
    config: NotifierConfig,
    transport: Transport,
    limits: ConfiguredLimits,
}

impl Notifier {
    /// Validates the configuration; opens no connection.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn new(config: NotifierConfig) -> Result<Self, FieldRefusal> {
        if config.secrets.is_empty() {
            return Err(FieldRefusal::new("webhook.secret", "Notifications need a secret that signs them."));
        }
        if config.timeout.is_zero() || config.at_once == 0 {
            return Err(FieldRefusal::new("webhook", "A zero lets no notification through."));
        }
        let slots = LimitConfig::new("slots", LimitKind::AtOnce { at_once: config.at_once });
        let limits = ConfiguredLimits::new(KIND, &[slots]);
        Ok(Self { transport: Transport::new(config.allows_private)?, config, limits })
    }

    /// The limits that must be set in the model before anything is sent.
    #[must_use]
    pub fn limits(&self) -> Vec<LimitDefinition> {
        self.limits.definitions()
    }

    async fn deliver(&self, call: Call<'_>) -> Outcome {
        let rejected = |message: String| {
            Outcome::unanswered(Verdict::Rejected(Fault::new(FaultClass::Validation, message)))
        };
        let checked = Notification::decode(call.payload)
            .and_then(|message| Ok((check_target(&message.url, self.config.allows_private)?, message)));
        let (url, message) = match checked {
            Ok(checked) => checked,
            Err(refusal) => return rejected(format!("It was not sent: {refusal}")),
        };
        let body = Bytes::copy_from_slice(message.body().as_bytes());
        let Some(headers) = standard::sign(&self.config.secrets, message.id(), call.now, &body) else {
            return rejected("It was not sent: its id cannot be in a header.".into());
        };
        let time_max = time_left(call.deadline, call.now, self.config.timeout);
        if time_max.is_zero() {
            let fault = Fault::new(FaultClass::Transient, "It was not sent: its deadline has passed.");
            return Outcome::unanswered(Verdict::Retry { after: None, fault });
        }
        match self.transport.post(&url, headers, body, time_max).await {
            Ok(response) => read_response(&response, &message, call),
            Err(error) => no_response(error, &message, call),
        }
    }
}

fn read_response(response: &response::Parts, message: &Notification, call: Call<'_>) -> Outcome {
    let status = response.status;
    let verdict = if status.is_success() {
        Verdict::Done
    } else {
        let class = FaultClass::of_status(status.as_u16()).unwrap_or(FaultClass::Validation);
        let fault = Fault::new(class, format!("The receiver returned {status}."));
        let asked = response.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked = asked.and_then(|text| retry_after::parse(text, call.now));
        match status {
            StatusCode::GONE => Verdict::Rejected(fault),
            _ => Verdict::Retry { after: Some(retry_delay(message.id(), call.attempt, asked)), fault },
        }
    };
    // Neither headers nor body of a receiver are needed by anyone.
    let kept = result::encode(status.as_u16(), &HeaderMap::new(), Content::Whole(Bytes::new()));
    Outcome::unanswered(verdict).with_status(status.as_u16()).with_body(kept)
}

fn no_response(error: DeliveryError, message: &Notification, call: Call<'_>) -> Outcome {
    let DeliveryError { may_have_arrived, reason } = error;
    let fault = Fault::new(FaultClass::Transient, format!("The receiver could not be reached: {reason}."));
    let fault = if may_have_arrived { fault.in_doubt() } else { fault };
    let after = Some(retry_delay(message.id(), call.attempt, None));
    // A receiver knows a repeat by its id.
    Outcome::unanswered(Verdict::Retry { after, fault })
}

impl Upstream for Notifier {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        let message = Notification::decode(payload)?;
        check_target(&message.url, self.config.allows_private)?;
        Ok(CallRequirements::new(self.limits.charges(cost)?).with_on_unknown(OnUnknown::Repeat))
    }

    fn is_submitted(&self) -> bool {
        false
    }

    fn request_line(&self, payload: &[u8]) -> Option<RequestLine> {
        let message = Notification::decode(payload).ok()?;
        let url = check_target(&message.url, true).ok()?;
        Some(RequestLine { method: "POST", path: url.path().to_owned() })
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(self.deliver(call))
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifier").field("config", &self.config).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
