//! What came of passing a request on, where the answer alone does not say it.

/// Put by a service into the extensions of its response when it answers in another's place: a proxy that answers 502 knows
/// whether it ever sent the request. Without it a response is taken for the handler's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was sent on: the key is free again.
    NotStarted,
    /// It was sent, and what came of it is not known: `on_unknown` decides.
    Unknown,
}
