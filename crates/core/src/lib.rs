//! The vocabulary of Tidegate and every decision it makes, as pure functions and one plain state
//! machine. No I/O, no async, no clock, no randomness, no wire format: time and randomness are
//! arguments, so the same input always gives the same result.
//!
//! ```
//! use tidegate_core::{AttemptEnd, OnUnknown, RetryRule, ServerErrors, VerdictClass};
//!
//! // A request that must not take effect twice, and one that may be repeated.
//! let once = RetryRule::new(OnUnknown::Ask, ServerErrors::Unknown);
//! let repeatable = RetryRule::new(OnUnknown::Repeat, ServerErrors::Unknown);
//!
//! // Sent, and no response came.
//! assert_eq!(once.classify(AttemptEnd::NoAnswer), VerdictClass::Unknown);
//! assert_eq!(repeatable.classify(AttemptEnd::NoAnswer), VerdictClass::Retry);
//! ```

pub mod alternatives;
pub mod backoff;
pub mod bounds;
pub mod breaker;
pub mod bucket;
pub mod cap;
mod credential;
pub mod error_code;
pub mod fact;
pub mod fault;
pub mod fingerprint;
pub mod header_storage;
pub mod hydration;
pub mod id;
pub mod journal;
pub mod limit_name;
pub mod masking;
pub mod model;
pub mod operation;
pub mod outcome;
pub mod placement;
pub mod rng;
pub mod shared;
pub mod state;
#[cfg(test)]
mod steps;
pub mod text;
pub mod time;
pub mod url_path;
pub mod url_query;
pub mod verdict;

pub use alternatives::{Alternative, Alternatives, PickStrategy, UnknownSubmit};
pub use error_code::ErrorCode;
pub use fact::Fact;
pub use fault::{Fault, FaultClass};
pub use id::{Fence, OperationId, Seq, Turn};
pub use limit_name::LimitName;
pub use model::Model;
pub use operation::{Charge, Draft, OnFailure, OnUnknown};
pub use outcome::{AttemptEnd, KeyUse, OutcomeClass, RetryRule, ServerErrors, VerdictClass};
pub use placement::Placement;
pub use state::{EndState, State};
pub use time::Time;
pub use verdict::{Blame, Hint, Verdict};
