//! What can go wrong with a call to Shopify, as one kind for programs and one sentence for people. No sentence holds a
//! token, a body or the URL of a result. *Not sent* and *unknown* are told apart, always.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use tidegate_upstream::FieldRefusal;

use crate::bulk::ResultUrl;

/// What went wrong.
pub struct Error {
    kind: ShopifyErrorKind,
    source: Option<ErrorSource>,
}

/// What caused an error.
pub type ErrorSource = Box<dyn std::error::Error + Send + Sync>;

/// An answer, or what went wrong.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of error it is.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShopifyErrorKind {
    /// The call makes no sense; nothing was sent.
    #[error("{0}")]
    Invalid(String),
    /// The store of the limiter did not answer; nothing was sent.
    #[error("The limiter's store did not answer, so the call was not made.")]
    Limiter,
    /// It did not run, and will be allowed later than the caller's patience lasts.
    #[error("It did not run: the shop's limits allow it in {} ms, and patience ends before.", wait.as_millis())]
    Throttled {
        /// When it could run.
        wait: Duration,
    },
    /// It did not run, and never will as it is.
    #[error("It costs {cost} points, and the most is {most}: ask for less at once.")]
    TooCostly {
        /// What it costs, in points.
        cost: f64,
        /// The most there can be, in points.
        most: f64,
    },
    /// Shopify refused it.
    #[error("It was answered {status}.")]
    Refused {
        /// The status of the answer.
        status: u16,
        /// The body, as far as it is JSON.
        body: Box<Value>,
    },
    /// Nothing of a query or mutation ran.
    #[error("Nothing of it ran: {}.", words(codes))]
    Graphql {
        /// The codes of the errors, where they have one.
        codes: Vec<String>,
        /// The errors as they came.
        errors: Box<Value>,
    },
    /// A mutation was refused with `userErrors`.
    #[error("Shopify refused it with userErrors: {}.", words(codes))]
    UserErrors {
        /// Their codes, where they have one.
        codes: Vec<String>,
        /// The errors as they came.
        errors: Box<Value>,
    },
    /// It was never sent, however often it was tried.
    #[error("It was not sent: {0}")]
    NotSent(String),
    /// It was sent and no usable answer came; it was safe to repeat, and repeating did not help.
    #[error("It was repeated and did not succeed: {0}")]
    Failed(String),
    /// It was sent and no usable answer came. It may have happened, and must not be repeated blindly.
    #[error("Its outcome is unknown, and it may have happened: {0}")]
    Unknown(String),
    /// As many bulk operations run as may.
    #[error("The shop runs as many bulk operations as it may{}.", listed(running))]
    Busy {
        /// The ids of those that run, as far as Shopify told them.
        running: Vec<String>,
    },
    /// A bulk operation ended without success.
    #[error("The bulk operation {id} ended as {status}{}.", because(error_code.as_deref()))]
    Ended {
        /// Its id.
        id: String,
        /// How it ended: `FAILED`, `CANCELED` or `EXPIRED`.
        status: String,
        /// Why, in Shopify's word.
        error_code: Option<String>,
        /// Where what it had until then is, where there is any.
        partial: Option<ResultUrl>,
    },
    /// Shopify knows no such bulk operation.
    #[error("Shopify knows no bulk operation {0}.")]
    Gone(String),
    /// Whether a bulk mutation ran already cannot be told.
    #[error(
        "Whether the bulk mutation is {0}, which has the same text, cannot be told: it was not started again."
    )]
    Ambiguous(String),
    /// An answer or a result came and cannot be read.
    #[error("What came cannot be read: {0}")]
    Unreadable(String),
}

impl Error {
    /// An error of this kind.
    #[must_use]
    pub const fn new(kind: ShopifyErrorKind) -> Self {
        Self { kind, source: None }
    }

    pub(crate) fn with_source(kind: ShopifyErrorKind, source: impl Into<ErrorSource>) -> Self {
        Self { kind, source: Some(source.into()) }
    }

    /// What kind it is.
    #[must_use]
    pub const fn kind(&self) -> &ShopifyErrorKind {
        &self.kind
    }

    /// Whether it may have happened all the same.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        matches!(self.kind, ShopifyErrorKind::Unknown(_))
    }

    /// Whether the same call may succeed later, and does no harm: it did not run, or running twice is the same.
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
    /// The sentence; never what Shopify sent.
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
    /// The sentence and its cause; never what Shopify sent.
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
    if codes.is_empty() { "no code was said".to_owned() } else { codes.join(", ") }
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

    /// OPS-22: what Shopify sent is in no kind that is printed.
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
