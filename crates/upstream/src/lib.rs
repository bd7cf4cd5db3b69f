//! The outbound port: takes one attempt at a call, returns a verdict and hints. It knows no store
//! and no queue, retries nothing by itself, and distinguishes *not sent* from *unknown*. Plain HTTP
//! lives here too, because every dialect builds on it.

pub mod http;
pub mod port;
pub mod request;
pub mod retry_after;
pub mod secret;

pub use http::HttpUpstreams;
pub use port::{
    AcceptedJob, Call, CallCost, CallFuture, CallRequirements, FieldRefusal, JobNote, Outcome, Upstream,
};
pub use request::{Body, Envelope, HttpRequest, Method};
pub use secret::Secret;
