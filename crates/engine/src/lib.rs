//! A durable queue for calls to other people's APIs. An operation is accepted once, runs in order
//! within its group and within the limits of its upstream, and is settled once: done, failed, or
//! *unknown* when no one can say. It knows neither which store keeps the log nor which API is
//! called.
//!
//! ```
//! use std::time::Duration;
//!
//! use serde_json::json;
//! use tidegate::upstream::{HttpRequest, HttpUpstreams, LimitKind, Method, UpstreamConfig};
//! use tidegate::{Engine, State, Submission};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let simulator = tidegate_sim::HttpSim::start(Default::default()).await?;
//! # let base_url = format!("http://{}", simulator.addr());
//! // `file:DIR`, `redis://…` and `postgres://…` outlive the process.
//! let store = tidegate::store::open("memory:").await?;
//! let shop = UpstreamConfig::new("shop", base_url)
//!     .with_limit("requests", LimitKind::Drip { capacity: 40.0, refill_per_s: 2.0 });
//! let engine = Engine::builder(store).http(HttpUpstreams::new(vec![shop])?).open().await?;
//!
//! // Returns when the operation is durable. The same key again is the same operation.
//! let order = HttpRequest::new(Method::Post, "/orders").with_body(json!({ "sku": "a-1" }));
//! let order = Submission::http("shop", "customer-7", order)?.with_dedupe_key("order-1001");
//! let receipt = engine.submit(order).await?;
//!
//! let order = engine.wait(receipt.id, Duration::from_secs(10)).await?;
//! assert_eq!(order.state, State::Succeeded);
//! engine.drain().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`store`] has the stores and [`upstream`] what sends calls; both are crates of their own, and
//! re-exported so that this one is all you need. The features `embedded` (default), `redis` and
//! `postgres` choose the stores.

mod archiver;
mod calls;
mod carry;
mod clock;
mod completion;
mod costs;
mod details;
mod engine;
mod envelope;
mod error;
mod events;
mod figures;
mod journey;
mod list;
mod load;
mod options;
mod outage;
mod outcome_filter;
mod owner;
mod payloads;
mod prepare;
mod query;
mod reason;
mod rng;
mod seal;
mod spent;
mod submission;
mod view;
mod waiting_groups;
mod work;

pub use archiver::{Backlog, SharedArchive};
pub use calls::InFlightCalls;
pub use completion::{Completion, CompletionKey, CompletionProof, CompletionReceipt};
pub use costs::cost_report;
pub use engine::{CurrentAttempt, Engine, EngineBuilder, Executors, SeenOutcome};
pub use error::{Error, ErrorKind, Result};
pub use events::{Change, Event, EventSink, OperationLabels, Subscription};
pub use journey::{DecisionWait, EndedJourney, Journey, JourneyAttempt, JourneySink, JourneyTimes};
pub use load::{Activity, LimitClosings, PartitionLoad};
pub use options::Options;
pub use outcome_filter::OutcomeFilter;
pub use submission::{Receipt, RequestKey, Submission};
pub use tidegate_core::ErrorCode;
pub use tidegate_store::attempt::AttemptState;
pub use view::{
    AttemptView, Filter, GroupFilter, GroupPage, OperationDetails, OperationOutline, OperationPage,
    OperationView, Reason, SubmissionRules,
};
pub use waiting_groups::{AlikeGroups, WaitingGroup};
pub use work::{
    ClaimId, LeaseExtension, ReadyKinds, RemoteClaim, RemoteJob, WorkReceipt, WorkReport, WorkRequest,
};

#[doc(inline)]
pub use tidegate_backend as store;
pub use tidegate_core::fact::{LimitShape, LimitSource};
pub use tidegate_core::id::{Partition, Seq};
pub use tidegate_core::model::{
    AlternativeState, AlternativeStatus, Cause, Counts, GroupView, LimitView, Resolution,
};
pub use tidegate_core::operation::FailureRule;
pub use tidegate_core::{
    Blame, Charge, Fault, FaultClass, Fence, Hint, OnFailure, OnUnknown, OperationId, ServerErrors, State,
    Time, Verdict,
};
#[doc(inline)]
pub use tidegate_upstream as upstream;
