//! The outbound port: one attempt at a call in, a verdict and hints out. It knows no store and no queue, repeats
//! nothing by itself, and tells what was *not sent* from what is *unknown*. Plain HTTP lives here too, because every
//! dialect stands on it.

pub mod http;
pub mod port;
pub mod request;
pub mod retry_after;
pub mod secret;

pub use http::HttpUpstreams;
pub use port::{Call, CallCost, CallFuture, CallRequirements, FieldRefusal, Outcome, Upstream};
pub use request::{Body, Envelope, HttpRequest, Method};
pub use secret::Secret;
