//! A POST happens once. A client that repeats a request after a time-out gets the first one's answer, on one machine or many,
//! through a `tower` layer or a reverse proxy in front of any service.
//!
//! The layer claims the key in the store in one atomic step, keeps the claim while the handler works, and stores the answer
//! before the client sees the end of it. Who may call at all is decided outside of it, before.

mod answer;
mod body;
mod fingerprint;
mod gate;
mod here;
mod hop;
mod intake;
mod key;
mod keys;
mod layer;
mod name;
mod policy;
pub mod proxy;
mod refusal;
mod run;
mod scope;
mod tally;
mod upkeep;
mod waiting;

pub use answer::{BadSeal, Seal};
pub use body::{Body, BoxError};
pub use gate::Gate;
pub use hop::strip as strip_hop_by_hop;
pub use intake::BODIES_MAX_DEFAULT;
pub use key::{HEADER, KEY_LEN_MAX, Key, KeyAlphabet};
pub use keys::{Keys, Listed, Page, RecordedAnswer, Recording, Shown, Standing, Which};
pub use layer::{Idempotency, IdempotencyLayer};
pub use name::Name;
pub use policy::{BodyComparison, Dialect, InFlight, OnUnknown, OutOfBounds, Policy, StoreAway};
pub use scope::{Scope, Scoping};
/// Put by a service into the extensions of its response when it answers in another's place: a
/// proxy that answers 502 knows whether it ever sent the request. Without it the status decides.
pub use tidegate_core::OutcomeClass;
pub use upkeep::sweep_now_and_then;
