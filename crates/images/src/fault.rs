//! Why a submit, a poll or a job failed, whom that heats, and what may follow. Adapters look at
//! status and body; the rest is decided here, by the table of `tidegate_core::RetryRule`.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use tidegate_core::{AttemptEnd, Fault, FaultClass, RetryRule, ServerErrors, VerdictClass};

use crate::response::{ProviderReply, ProviderResponse};

/// Whose limit a throttled call exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThrottleScope {
    /// The key's.
    Key,
    /// The account's, or the project's, with all its keys.
    Account,
}

/// Why it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultCause {
    /// The input is wrong: no provider will take it.
    Input,
    /// A content filter refused the input or the output.
    Content,
    /// The credential is not accepted.
    Auth,
    /// The account has no credit.
    Credit,
    /// Too many calls, or a quota is exhausted.
    Throttled {
        /// How long to wait, if the provider says so.
        after: Option<Duration>,
        /// Whose limit it is.
        scope: ThrottleScope,
    },
    /// The provider failed, and no job exists or the job is over.
    Provider,
    /// The provider refused for another reason, such as a model that it does not have.
    Refused,
    /// The job failed, and nothing says whether by its input or by the provider.
    Unexplained,
    /// The job did not start or end by the deadline that its submit gave.
    Deadline,
    /// The request was not sent.
    NotSent,
    /// The request was sent, and a job may exist.
    Unknown,
}

/// What a fault counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heat {
    /// Nothing.
    Nobody,
    /// The key.
    Key,
    /// The account that owns the key.
    Account,
    /// The provider.
    Provider,
}

impl FaultCause {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Content => "content",
            Self::Auth => "auth",
            Self::Credit => "credit",
            Self::Throttled { .. } => "throttled",
            Self::Provider => "provider",
            Self::Refused => "refused",
            Self::Unexplained => "unexplained",
            Self::Deadline => "deadline",
            Self::NotSent => "not_sent",
            Self::Unknown => "unknown",
        }
    }

    /// What it counts against.
    #[must_use]
    pub const fn heat(self) -> Heat {
        match self {
            Self::Input | Self::Content | Self::Refused | Self::Unexplained | Self::Deadline => Heat::Nobody,
            Self::Auth | Self::Throttled { scope: ThrottleScope::Key, .. } => Heat::Key,
            Self::Credit | Self::Throttled { scope: ThrottleScope::Account, .. } => Heat::Account,
            Self::Provider | Self::NotSent | Self::Unknown => Heat::Provider,
        }
    }

    /// Whether the generation fails at once, because no other provider would do better.
    #[must_use]
    pub const fn ends_generation(self) -> bool {
        matches!(self, Self::Input | Self::Content)
    }

    /// Whether a job may exist, and be billed, although the submit failed.
    #[must_use]
    pub const fn may_be_billed(self) -> bool {
        matches!(self, Self::Unknown)
    }

    const fn class(self) -> FaultClass {
        match self {
            Self::Input | Self::Content => FaultClass::Validation,
            Self::Auth | Self::Credit => FaultClass::Forbidden,
            Self::Throttled { .. } => FaultClass::RateLimited,
            Self::Refused => FaultClass::NotFound,
            Self::Provider | Self::Unexplained | Self::Deadline | Self::NotSent | Self::Unknown => {
                FaultClass::Transient
            }
        }
    }
}

/// A failure: why, and a message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderFault {
    /// Why it failed.
    pub cause: FaultCause,
    /// The provider's words, or what happened. Never a credential.
    pub message: String,
}

impl fmt::Display for ProviderFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause.as_str(), self.message)
    }
}

impl From<&ProviderFault> for Fault {
    fn from(fault: &ProviderFault) -> Self {
        Self::new(fault.cause.class(), fault.message.clone())
    }
}

impl ProviderFault {
    /// Creates a fault; a long message is truncated.
    #[must_use]
    pub fn new(cause: FaultCause, message: impl Into<String>) -> Self {
        Self { cause, message: Fault::new(cause.class(), message).message }
    }

    /// The fault of a submit that was answered as a success, without what a success says.
    pub(crate) fn unreadable(response: &ProviderResponse<'_>) -> Self {
        let message = format!("the response cannot be read: {}", response.describe());
        Self::new(FaultCause::Unknown, message)
    }
}

/// What a call does, for what a failure of it may have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// It creates a job, which is billed.
    Submit,
    /// It reads, or a repeat of it does no harm.
    Read,
}

impl CallKind {
    const fn rule(self) -> RetryRule {
        RetryRule {
            is_repeatable: matches!(self, Self::Read),
            server_errors: ServerErrors::Unknown,
            key: tidegate_core::KeyUse::Absent,
        }
    }

    /// Splits a reply into a response that an adapter reads, or the fault without one. Half of a
    /// success is no success.
    pub(crate) fn response<'a>(
        self,
        reply: &ProviderReply<'a>,
    ) -> Result<ProviderResponse<'a>, ProviderFault> {
        let (end, message) = match *reply {
            ProviderReply::NotSent(message) => (AttemptEnd::NotSent, message),
            ProviderReply::NoAnswer(message) => (AttemptEnd::NoAnswer, message),
            ProviderReply::Response(response) if response.is_success() && !response.is_complete => {
                (response.end(), "the response broke off")
            }
            ProviderReply::Response(response) => return Ok(response),
        };
        let cause = match (self.rule().classify(end), end) {
            (_, AttemptEnd::NotSent) => FaultCause::NotSent,
            (VerdictClass::Unknown, _) => FaultCause::Unknown,
            _ => FaultCause::Provider,
        };
        Err(ProviderFault::new(cause, message))
    }

    /// The cause that a status alone gives, for a response that is no success.
    pub(crate) fn cause(self, response: &ProviderResponse<'_>, scope: ThrottleScope) -> FaultCause {
        match self.rule().classify(response.end()) {
            VerdictClass::Throttled => FaultCause::Throttled { after: response.retry_after(), scope },
            VerdictClass::Retry => FaultCause::Provider,
            VerdictClass::Unknown | VerdictClass::Done => FaultCause::Unknown,
            VerdictClass::Rejected => match response.status {
                401 | 403 | 407 => FaultCause::Auth,
                402 => FaultCause::Credit,
                400 | 411 | 413 | 414 | 415 | 422 => FaultCause::Input,
                _ => FaultCause::Refused,
            },
        }
    }
}

/// The text of a `detail`, which is a text or a list of problems with `loc` and `msg`.
pub(crate) fn detail_message(body: &Value) -> Option<String> {
    let problem = |item: &Value| {
        let message = item.get("msg")?.as_str()?;
        let loc = item.get("loc").and_then(Value::as_array);
        let part = |part: &Value| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
        let place: Vec<String> = loc.into_iter().flatten().filter(|part| *part != "body").map(part).collect();
        Some(if place.is_empty() { message.to_owned() } else { format!("{}: {message}", place.join(".")) })
    };
    match body.get("detail")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => {
            let problems: Vec<String> = list.iter().filter_map(problem).collect();
            (!problems.is_empty()).then(|| problems.join("; "))
        }
        _ => None,
    }
}
