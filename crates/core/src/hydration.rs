//! Hydration: asking the owner of an entity for what a module lacks, once. Everything is decided
//! here, with time and randomness as arguments; asking, storing and waking are up to the caller.
//!
//! A *flight* is the hydration of one entity by one process: the questions that were published, and
//! the waiters. The order of a caller is fixed: look at the local copy; [`FlightTable::ask`], which
//! registers the waiter; look at the local copy again ([`FlightTable::found`]); publish. The order
//! of a receiver is fixed too: store the answer, then wake ([`FlightTable::updated`],
//! [`FlightTable::not_found`]). So whatever the interleaving, either the second look or the waking
//! sees the answer.
//!
//! Decisions:
//!
//! - **A wait is the caller's total.** The next question leaves `retry_backoff` after the last, not
//!   after a time-out: with the defaults at 0 and 200 ms, and the caller gives up at 500 ms.
//! - **A flight lives on its own.** It sends `1 + max_retries` questions unless it is answered,
//!   whatever its callers do. It turns *unanswered* one `wait_timeout` after its last question.
//!   From then to the end of its window newcomers fail at once and ask nothing, and a late answer
//!   still lands. This is the failure memory; it never means "not found".
//! - **A window ends** with the answer, with a gap (see below), or `in_flight_window` after the
//!   flight opened. If someone still waits then, a new round begins: deferred work is asked for
//!   `1 + max_retries` times per window until its own deadline.
//! - **A copy of a lower level is a copy**, tagged with its level; it satisfies no read of a higher
//!   one ([`HydrationMode::covers`]).
//! - **An upgrade is a question of its own**, not a retry. The first upgrade of a flight asks for
//!   what both want, the second for everything, so there are at most
//!   [`FLIGHT_UPGRADES_MAX`](crate::bounds::FLIGHT_UPGRADES_MAX).
//! - **Any `updated` counts**, whoever asked: it is stored if it is not older, clears the negative
//!   entry and wakes whom it satisfies. A `not-found` counts if it answers a question of this
//!   flight's *epoch*, or proves by `as_of` that it is newer than the question. An update, a gap
//!   and an invalidation begin a new epoch, so a late "not found" buries nothing that came into
//!   being since.
//! - **Order** is that of versions if both have one, otherwise that of `as_of`; without either the
//!   later arrival overlays the earlier ([`copy`]).
//! - **What an update brings**: the level that it states; for the answer to a question of this
//!   process at least what was asked; for an event with no correlation id everything; otherwise the
//!   fields it contains.
//! - **After a gap** (reconnect, lag) every open flight asks again, a flight that no one waits
//!   for is forgotten, and negative entries live for one more window at most, because the update
//!   that would have cleared them may be lost.
//! - **Jitter only shortens** the negative time to live, by up to a fifth: the configured time is
//!   the longest.
//! - **Tenant, type and id** are the key of everything.

pub mod copy;
mod flight;
mod key;
mod mode;
mod negatives;
mod question_rate;
mod rules;
mod table;
#[cfg(test)]
mod tests;

pub use copy::{CopyState, CopyUpdate, EntityStamp};
pub use flight::{FlightFailure, FlightView, Question, Waiter, WaiterKind, WaiterView};
pub use key::{CorrelationId, EntityKey, EntityKeyError, check_entity_type};
pub use mode::{HydrationMode, ModeError};
pub use negatives::{Absence, AbsenceReason};
pub use rules::FlightRules;
pub use table::ask::{AskOutcome, AskRequest, FlightBound};
pub use table::{AnswerOrigin, FlightTable, PublishOutcome, Ticket, TimerEffect};
