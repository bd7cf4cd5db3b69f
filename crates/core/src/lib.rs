//! The vocabulary of Tidegate and every decision it makes, as pure functions and one plain state
//! machine. No I/O, no async, no clock, no randomness, no wire format: time and randomness are
//! arguments, so the same input always gives the same result.
//!
//! ```
//! use std::time::Duration;
//!
//! use tidegate_core::outcome::{AttemptEnd, OutcomeClass, classify};
//! use tidegate_core::{FaultClass, Time};
//!
//! assert_eq!(FaultClass::of_status(429), Some(FaultClass::RateLimited));
//! // Sent, and no response came: it may have taken effect, unless a repeat does no harm.
//! assert_eq!(classify(AttemptEnd::NoAnswer, false), OutcomeClass::Unknown);
//! assert_eq!(classify(AttemptEnd::NoAnswer, true), OutcomeClass::NotStarted);
//! assert_eq!(Time::from_millis(5).after(Duration::from_secs(1)), Time::from_millis(1_005));
//! ```

pub mod backoff;
pub mod bounds;
pub mod bucket;
pub mod cap;
pub mod credential;
pub mod fact;
pub mod fault;
pub mod fingerprint;
pub mod id;
pub mod journal;
pub mod model;
pub mod operation;
pub mod outcome;
pub mod rng;
pub mod shared;
pub mod state;
pub mod time;
pub mod url_path;
pub mod verdict;

pub use fact::Fact;
pub use fault::{Fault, FaultClass};
pub use id::{Fence, OperationId, Seq, Turn};
pub use model::Model;
pub use operation::{Charge, Draft, OnFailure, OnUnknown};
pub use outcome::{AttemptEnd, OutcomeClass, RetryRule, ServerErrors, VerdictClass};
pub use state::{EndState, State};
pub use time::Time;
pub use verdict::{Hint, Verdict};
