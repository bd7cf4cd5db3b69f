//! What image providers speak over HTTP: requests to submit, poll and cancel a job, what responses
//! and errors mean, and webhooks with their signatures. Replicate, Google, fal and Higgsfield are
//! built in; others follow by configuration, or by implementing [`Provider`]. The crate is pure:
//! you bring the HTTP client and the clock.
//!
//! ```
//! use serde_json::json;
//! use tidegate_images::{JobRequest, Provider, ProviderReply, Replicate, Secret, SubmitOutcome};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let provider = Replicate::new(tidegate_images::replicate::BASE_URL);
//! let job = JobRequest {
//!     model: "black-forest-labs/flux-schnell",
//!     input: &json!({ "prompt": "a lighthouse at dusk" }),
//!     webhook: Some("https://app.example/api/webhooks/replicate/TOKEN"),
//!     attempt: "attempt-1",
//! };
//! let request = provider.submit(&job, &Secret::new("r8_key"))?;
//! assert!(request.url.ends_with("/models/black-forest-labs/flux-schnell/predictions"));
//!
//! // Send it once, with any client. This one got no response: a job may exist, and be billed.
//! match provider.read_submit(&job, &ProviderReply::NoAnswer("timed out")) {
//!     SubmitOutcome::Failed(fault) => assert!(fault.cause.may_be_billed()),
//!     other => println!("{other:?}"),
//! }
//! # Ok(())
//! # }
//! ```

pub mod defaults;
pub mod fal;
pub mod fault;
pub mod generic;
pub mod google;
pub mod higgsfield;
pub mod provider;
pub mod replicate;
pub mod request;
pub mod response;
pub mod status;
pub mod webhook;

pub use defaults::{Figure, ProviderDefaults};
pub use fal::Fal;
pub use fault::{FaultCause, Heat, ProviderFault, ThrottleScope};
pub use generic::{Generic, GenericConfig};
pub use google::Google;
pub use higgsfield::Higgsfield;
pub use provider::Provider;
pub use replicate::Replicate;
pub use request::{JobRequest, ProviderRequest, RequestError};
pub use response::{ProviderReply, ProviderResponse};
pub use status::{JobProgress, JobStatus, LookUpOutcome, OutputFile, PollStep, ProviderJob, SubmitOutcome};
pub use tidegate_core::Time;
pub use tidegate_upstream::Secret;
pub use webhook::{ReceivedWebhook, Webhook, WebhookError, WebhookKeys, WebhookReport};
