//! Sends a call to an API, at most once, and says what its response means: done, throttled, retry,
//! rejected, or *unknown* when it may have taken effect. It knows no store and no queue, and
//! retries nothing by itself. Plain HTTP lives here too, because every dialect builds on it.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use tidegate_upstream::{Envelope, HttpRequest, HttpUpstreams, Method, Upstream, UpstreamConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let upstreams = HttpUpstreams::new(vec![UpstreamConfig::new("shop", "https://shop.example")])?;
//! let request = HttpRequest::new(Method::Post, "/orders").with_body("one of a-1");
//! let call = Envelope::new("shop", request).encode()?;
//!
//! // Checked before it is accepted; `carry` sends it when its limits are granted.
//! let required = upstreams.check(&call, &BTreeMap::new())?;
//! assert_eq!(&*required.charges[0].limit, "shop");
//! # Ok(())
//! # }
//! ```

mod field_refusal;
pub mod http;
pub mod port;
mod remote_kind;
pub mod request;
pub mod retry_after;
pub mod secret;

pub use http::{Dialect, HttpUpstreams, LimitConfig, LimitKind, TokenHeader, UpstreamConfig};
pub use port::{
    AcceptedJob, Call, CallCost, CallFuture, CallRequirements, CallbackMeaning, FieldRefusal, JobNote,
    Outcome, Upstream,
};
pub use remote_kind::{RemoteKind, RemoteKindConfig};
pub use request::{Body, BodyView, Envelope, HttpRequest, Method, RequestLine, RequestView};
pub use secret::Secret;
