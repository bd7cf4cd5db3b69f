//! Makes a POST happen once. A client that retries a request after a timeout gets the first
//! response, on one machine or many, through a `tower` layer or a reverse proxy ([`proxy`]) in
//! front of any service.
//!
//! ```
//! use std::convert::Infallible;
//!
//! use http::{Request, Response};
//! use http_body_util::BodyExt;
//! use tidegate_idempotency::{IdempotencyLayer, KeyStore, LayerBody, Policy, ScopeExtractor};
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tidegate_idempotency::BoxError> {
//! // Machines share `redis://…` and `postgres://…`.
//! let store = tidegate_idempotency::store::open("memory:").await?;
//! // Keys belong to a caller: here to a tenant. A credential may change between two tries.
//! let callers = ScopeExtractor::header(http::HeaderName::from_static("x-tenant"));
//! let layer = IdempotencyLayer::new(KeyStore::new(store), Policy::default(), callers)?;
//!
//! // Any tower service, such as an axum router.
//! let service = layer.layer(service_fn(async |_order: Request<LayerBody>| {
//!     Ok::<_, Infallible>(Response::new("created".to_owned()))
//! }));
//!
//! let order = || {
//!     let order = Request::post("/orders").header("x-tenant", "acme");
//!     order.header("idempotency-key", "order-1001").body(String::new())
//! };
//! let first = service.clone().oneshot(order()?).await?.into_body().collect().await?;
//! let again = service.oneshot(order()?).await?;
//! assert_eq!(again.headers()["idempotent-replayed"], "true");
//! assert_eq!(again.into_body().collect().await?.to_bytes(), first.to_bytes());
//! # Ok(())
//! # }
//! ```
//!
//! The layer claims the key in the store in one atomic step, renews the claim while the handler
//! runs, and saves the response before the client sees the end of it. Authorization happens outside
//! of the layer, before it. The features `embedded` (default), `redis` and `postgres` choose the
//! stores.

mod body;
mod counters;
mod fingerprint;
mod held_key;
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
pub use counters::HitCounts;
// For proxies of Tidegate itself.
#[doc(hidden)]
pub use held_key::HeldKey;
pub use hop_by_hop::strip as strip_hop_by_hop;
pub use key::{HEADER, IdempotencyKey, KeyAlphabet};
pub use key_admin::{
    KeyAdmin, KeyDetail, KeyFilter, KeyPage, KeyState, KeySummary, RecordedAnswer, RecordingOutcome,
};
pub use key_store::KeyStore;
pub use layer::{Idempotency, IdempotencyLayer};
pub use name::RecordName;
pub use policy::{
    BodyComparison, InFlightPolicy, PathComparison, Policy, PolicyError, RefusalDialect,
    StoreUnavailablePolicy, UnknownOutcomePolicy,
};
pub use request_body::BODIES_MAX_DEFAULT;
pub use saved_response::{SealingKeyError, SealingKeys};
pub use scope::{CallerScope, ScopeExtractor};
pub use sweeper::sweep_periodically;
#[doc(inline)]
pub use tidegate_backend as store;
/// Put by a service into the extensions of its response when it responds on behalf of another: a
/// proxy that returns 502 knows whether it ever sent the request. Without it the status decides.
pub use tidegate_core::OutcomeClass;
