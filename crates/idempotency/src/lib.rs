//! Makes a POST happen once. A client that retries a request after a timeout gets the first
//! response, on one machine or many, through a `tower` layer or a reverse proxy in front of any
//! service.
//!
//! The layer claims the key in the store in one atomic step, renews the claim while the handler
//! runs, and saves the response before the client sees the end of it. Authorization happens outside
//! of the layer, before it.

mod body;
mod counters;
mod fingerprint;
mod hop_by_hop;
mod key;
mod key_admin;
mod key_store;
mod keyed_request;
mod layer;
mod local_claims;
mod name;
mod policy;
pub mod proxy;
mod refusal;
mod request_body;
mod saved_response;
mod scope;
mod sweeper;
mod waiters;

pub use body::{BoxError, LayerBody};
pub use hop_by_hop::strip as strip_hop_by_hop;
pub use key::{HEADER, IdempotencyKey, KEY_LEN_MAX, KeyAlphabet};
pub use key_admin::{
    KeyAdmin, KeyDetail, KeyFilter, KeyPage, KeyState, KeySummary, RecordedAnswer, RecordingOutcome,
};
pub use key_store::KeyStore;
pub use layer::{Idempotency, IdempotencyLayer};
pub use name::RecordName;
pub use policy::{
    BodyComparison, InFlightPolicy, Policy, PolicyError, RefusalDialect, StoreUnavailablePolicy,
    UnknownOutcomePolicy,
};
pub use request_body::BODIES_MAX_DEFAULT;
pub use saved_response::{SealingKeyError, SealingKeys};
pub use scope::{CallerScope, ScopeExtractor};
pub use sweeper::sweep_periodically;
/// Put by a service into the extensions of its response when it responds on behalf of another: a
/// proxy that returns 502 knows whether it ever sent the request. Without it the status decides.
pub use tidegate_core::OutcomeClass;
