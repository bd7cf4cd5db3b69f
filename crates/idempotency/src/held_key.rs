//! The key that a request holds while its handler runs. A handler that records it with its work
//! finds that work again when it is repeated after its process died.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// A key that is held, among the extensions of the request that a handler gets.
#[derive(Clone, Debug)]
pub struct HeldKey {
    /// The name of its record: caller, method, path and key.
    pub name: Arc<str>,
    /// How long the response is kept.
    pub ttl: Duration,
    /// Since when it is held by this request, at the earliest; `None` when it was taken over from a
    /// request that may have done its work.
    pub since: Option<Instant>,
}
