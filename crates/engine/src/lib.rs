//! The engine: one owner applies commands to the model of a partition, makes each batch durable and
//! only then replies; claimed operations are executed and settled. It knows neither which backend
//! keeps the log nor which API is called.

mod archiver;
mod calls;
mod carry;
mod clock;
mod completion;
mod costs;
mod engine;
mod envelope;
mod error;
mod events;
mod list;
mod options;
mod owner;
mod payloads;
mod prepare;
mod query;
mod reason;
mod rng;
mod spent;
mod submission;
mod view;

pub use archiver::{Backlog, SharedArchive};
pub use calls::InFlightCalls;
pub use completion::{Completion, CompletionKey, CompletionProof, CompletionReceipt};
pub use costs::cost_report;
pub use engine::{Engine, Executors};
pub use error::{Error, ErrorCode, Result};
pub use events::{Change, Event, Subscription};
pub use options::Options;
pub use submission::{Receipt, Submission};
pub use view::{Filter, GroupFilter, GroupPage, OperationPage, OperationView, Reason};
