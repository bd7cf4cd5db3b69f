//! Everything specific to Discord: its limits and refusals (the dialect), a guild's template,
//! managed names, the live guild as Discord lists it, and the plan that leads from one to the
//! other. All of these are pure computation. The deployer executes a plan through the queue and
//! keeps the journal.
//!
//! ```
//! use tidegate_discord::{DeployRequest, Deployer, Id, NoopListener};
//!
//! const TEMPLATE: &str = "
//! prefix: SSO
//! roles:
//!   - key: agent
//!     name: Support agent
//! channels:
//!   - key: news
//!     name: Latest news
//!     type: text
//! ";
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let simulator = tidegate_sim::DiscordSim::start(Default::default()).await?;
//! # let (token, url) = ("secret", format!("http://{}/api/v10", simulator.addr()));
//! // `file:DIR`, `redis://…` and `postgres://…` keep the journal, so that the next run resumes.
//! let store = tidegate_discord::store::open("memory:").await?;
//! let deployer = Deployer::builder(store, token)
//! #   .base_url(url)
//!     .open()
//!     .await?;
//!
//! let request = DeployRequest::new(Id(4177), TEMPLATE);
//! let report = deployer.apply(&request, &NoopListener).await?;
//! assert_eq!(report.created, 2);
//!
//! // The guild matches now: nothing is created twice.
//! let report = deployer.apply(&request, &NoopListener).await?;
//! assert_eq!((report.created, report.skipped), (0, 2));
//! deployer.engine().drain().await;
//! # Ok(())
//! # }
//! ```
//!
//! The features `embedded` (default), `redis` and `postgres` choose the stores.

mod bounds;
mod counted;
pub mod deploy;
pub mod dialect;
pub mod guild;
mod id;
pub mod journal;
mod key;
pub mod name;
pub mod permission;
pub mod plan;
pub mod template;

pub use deploy::{
    DeployReport, DeployRequest, Deployer, DeployerBuilder, NoopListener, ProgressEvent, ProgressListener,
};
pub use dialect::{DiscordDialect, DiscordSettings};
pub use id::Id;
pub use key::{ObjectKey, ObjectKind};
pub use plan::Plan;
pub use template::Template;

#[doc(inline)]
pub use tidegate;
#[doc(inline)]
pub use tidegate::store;
