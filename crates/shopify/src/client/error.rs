//! The errors of a call to Shopify: one kind for programs and one sentence for people. No sentence
//! contains a token, a body or the URL of a result. *Not sent* and *unknown* are always
//! distinguished.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use tidegate_upstream::FieldRefusal;

use crate::bulk::ResultUrl;

/// An error of a call.
pub struct Error {
    kind: ShopifyErrorKind,
    source: Option<ErrorSource>,
}

/// The cause of an error.
pub type ErrorSource = Box<dyn std::error::Error + Send + Sync>;

/// The result type of the client.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an error.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShopifyErrorKind {
    /// The call is invalid; nothing was sent.
    #[error("{0}")]
    Invalid(String),
    /// The limiter's store did not respond; nothing was sent.
    #[error("The limiter's store did not respond, so the call was not made.")]
    Limiter,
    /// It did not run, and would have to wait longer than the caller's patience.
    #[error("It did not run: the shop's limits allow it in {} ms, which exceeds the patience.", wait.as_millis())]
    Throttled {
        /// When it could run.
        wait: Duration,
    },
    /// It did not run, and never will as it is.
    #[error("It costs {cost} points, and the maximum is {most}: ask for less at once.")]
    TooCostly {
        /// Its cost, in points.
        cost: f64,
        /// The highest possible cost, in points.
        most: f64,
    },
    /// Shopify refused it.
    #[error("It was answered {status}.")]
    Refused {
        /// The status of the response.
        status: u16,
        /// The body, as far as it is JSON.
        body: Box<Value>,
    },
    /// No part of a query or mutation ran.
    #[error("No part of it ran: {}.", words(codes))]
    Graphql {
        /// The codes of the errors, where they have one.
        codes: Vec<String>,
        /// The errors as received.
        errors: Box<Value>,
    },
    /// A mutation was refused with `userErrors`.
    #[error("Shopify refused it with userErrors: {}.", words(codes))]
    UserErrors {
        /// Their codes, where they have one.
        codes: Vec<String>,
        /// The errors as received.
        errors: Box<Value>,
    },
    /// It was never sent, despite all attempts.
    #[error("It was not sent: {0}")]
    NotSent(String),
    /// It was sent and no usable response arrived; it was safe to retry, and retrying did not help.
    #[error("It was retried and did not succeed: {0}")]
    Failed(String),
    /// It was sent and no usable response arrived. It may have taken effect, and must not be
    /// repeated blindly.
    #[error("Its outcome is unknown, and it may have happened: {0}")]
    Unknown(String),
    /// The maximum number of bulk operations is running.
    #[error("The shop already runs the maximum number of bulk operations{}.", listed(running))]
    Busy {
        /// The ids of those that are running, as far as Shopify reported them.
        running: Vec<String>,
    },
    /// A bulk operation ended without success.
    #[error("The bulk operation {id} ended as {status}{}.", because(error_code.as_deref()))]
    Ended {
        /// Its id.
        id: String,
        /// How it ended: `FAILED`, `CANCELED` or `EXPIRED`.
        status: String,
        /// Why, as Shopify's code.
        error_code: Option<String>,
        /// The URL of its partial result, if there is one.
        partial: Option<ResultUrl>,
    },
    /// Shopify knows no such bulk operation.
    #[error("Shopify knows no bulk operation {0}.")]
    Gone(String),
    /// It is unknown whether a bulk mutation ran already.
    #[error(
        "It is unknown whether the bulk mutation is {0}, which has the same text: it was not started again."
    )]
    Ambiguous(String),
    /// A response or result arrived but cannot be read.
    #[error("The response cannot be read: {0}")]
    Unreadable(String),
}

impl Error {
    /// Creates an error of this kind.
    #[must_use]
    pub const fn new(kind: ShopifyErrorKind) -> Self {
        Self { kind, source: None }
    }

    pub(crate) fn with_source(kind: ShopifyErrorKind, source: impl Into<ErrorSource>) -> Self {
        Self { kind, source: Some(source.into()) }
    }

    /// Returns its kind.
    #[must_use]
    pub const fn kind(&self) -> &ShopifyErrorKind {
        &self.kind
    }

    /// Returns whether the call may have taken effect all the same.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self.kind, ShopifyErrorKind::Unknown(_))
    }

    /// Returns whether the same call may succeed later without harm: it did not run, or running it
    /// twice has the same effect.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            ShopifyErrorKind::Limiter
                | ShopifyErrorKind::Throttled { .. }
                | ShopifyErrorKind::NotSent(_)
                | ShopifyErrorKind::Failed(_)
                | ShopifyErrorKind::Busy { .. }
        )
    }
}

impl fmt::Debug for ShopifyErrorKind {
    /// Prints the sentence; never what Shopify sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({:?})", self.to_string())
    }
}

impl From<ShopifyErrorKind> for Error {
    fn from(kind: ShopifyErrorKind) -> Self {
        Self::new(kind)
    }
}

impl From<FieldRefusal> for Error {
    fn from(refusal: FieldRefusal) -> Self {
        Self::new(ShopifyErrorKind::Invalid(refusal.message))
    }
}

impl From<tidegate_limits::Error> for Error {
    fn from(error: tidegate_limits::Error) -> Self {
        match error {
            tidegate_limits::Error::Invalid(message) => Self::new(ShopifyErrorKind::Invalid(message)),
            tidegate_limits::Error::TooCostly { cost, capacity, .. } => {
                Self::new(ShopifyErrorKind::TooCostly { cost, most: capacity })
            }
            error => Self::with_source(ShopifyErrorKind::Limiter, error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.kind, f)
    }
}

impl fmt::Debug for Error {
    /// Prints the sentence and its cause; never what Shopify sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}", self.kind.to_string())?;
        if let Some(source) = &self.source {
            write!(f, ", {:?}", source.to_string())?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

fn words(codes: &[String]) -> String {
    if codes.is_empty() { "no code was given".to_owned() } else { codes.join(", ") }
}

fn listed(running: &[String]) -> String {
    if running.is_empty() { String::new() } else { format!(": {}", running.join(", ")) }
}

fn because(code: Option<&str>) -> String {
    code.map_or_else(String::new, |code| format!(" ({code})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// OPS-22: no kind prints what Shopify sent.
    #[test]
    fn ops_22_a_kind_prints_its_sentence_and_no_body() {
        let sent = || Box::new(json!({ "message": "hunter2" }));
        for kind in [
            ShopifyErrorKind::Refused { status: 404, body: sent() },
            ShopifyErrorKind::Graphql { codes: vec!["X".into()], errors: sent() },
            ShopifyErrorKind::UserErrors { codes: Vec::new(), errors: sent() },
        ] {
            let printed = format!("{kind:?} {kind} {:?}", Error::from(kind.clone()));
            assert!(!printed.contains("hunter2") && printed.starts_with("Kind("), "{printed}");
        }
    }
}
