//! Bulk operations of one shop: starts them under the shop's lease, waits for them, cancels them,
//! and reads their results line by line. Shopify decides how many may run; the lease only keeps its
//! users from being refused.

mod job;
pub mod lines;
pub mod operation;
mod protocol;
mod running;
mod waiters;

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use tidegate_limits::{LeaseAcquisition, LeaseGuard};

pub(crate) use job::Job;
pub use lines::ResultLines;
pub use operation::{BulkOperation, BulkStatus, CompletedBulk, ResultUrl};
pub use running::RunningBulk;
pub(crate) use waiters::Waiters;

use crate::client::error::{Result, ShopifyErrorKind};
use crate::client::{Error, Shopify};
use protocol::JobSearchResult;

/// Longest line of a result by default, in bytes.
pub(crate) const LINE_MAX_DEFAULT: usize = 16 * 1024 * 1024;

/// How long to wait between two polls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollIntervals {
    pub(crate) first: Duration,
    pub(crate) most: Duration,
}

impl Default for PollIntervals {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), most: Duration::from_secs(30) }
    }
}

impl PollIntervals {
    /// Returns the next pause, half as long again.
    pub(crate) fn next_after(self, pause: Duration) -> Duration {
        (pause + pause / 2).min(self.most)
    }
}

/// Bulk operations of one shop.
#[derive(Clone)]
pub struct Bulk {
    client: Shopify,
}

impl Bulk {
    pub(crate) const fn new(client: Shopify) -> Self {
        Self { client }
    }

    /// Runs a query in bulk. Waits for a slot of the shop's lease as long as the client's patience
    /// lasts, then checks whether the same query is running already, as after a crash. Adopts that
    /// one, or else starts a new one.
    ///
    /// # Errors
    /// `Busy` when no slot is free, in the lease or at Shopify; otherwise as for
    /// [`Shopify::graphql`].
    pub async fn query(&self, query: &str) -> Result<RunningBulk> {
        self.run(Job::query(query)).await
    }

    /// Runs a mutation in bulk for each line of a file that was uploaded to `staged_upload_path`
    /// before. The same mutation with the same file never runs twice: one that is running or has
    /// completed is adopted.
    ///
    /// # Errors
    /// As for [`Bulk::query`].
    pub async fn mutation(&self, mutation: &str, staged_upload_path: &str) -> Result<RunningBulk> {
        self.run(Job::mutation(mutation, staged_upload_path)).await
    }

    /// Returns the state of an operation.
    ///
    /// # Errors
    /// `Gone` when Shopify does not know it; otherwise as for [`Shopify::graphql`].
    pub async fn status(&self, id: &str) -> Result<BulkOperation> {
        protocol::fetch_operation(&self.client, id).await
    }

    /// Adopts an operation that someone else has started, by its id. It holds no lease.
    pub fn adopt(&self, id: &str) -> RunningBulk {
        RunningBulk::new(self.client.clone(), id.to_owned(), None, true)
    }

    /// Asks Shopify to stop an operation, which takes a while.
    ///
    /// # Errors
    /// `UserErrors` when it cannot be stopped; otherwise as for [`Shopify::graphql`].
    pub async fn cancel(&self, id: &str) -> Result<BulkOperation> {
        protocol::cancel(&self.client, id).await
    }

    /// Takes the body of a `bulk_operations/finish` webhook whose signature was checked, and wakes
    /// everyone who waits for that operation through this client or a clone of it. Returns the
    /// operation's id.
    ///
    /// # Errors
    /// `Unreadable` when it names no bulk operation.
    pub fn notify_finished(&self, webhook: &[u8]) -> Result<String> {
        let body: Value = serde_json::from_slice(webhook).unwrap_or_default();
        let id = body.get("admin_graphql_api_id").and_then(Value::as_str).filter(|id| operation::is_id(id));
        let Some(id) = id else {
            return Err(ShopifyErrorKind::Unreadable("the webhook names no bulk operation.".into()).into());
        };
        self.client.inner.waiters.wake(id);
        Ok(id.to_owned())
    }

    /// Reads a result line by line. Holds no more of it in memory than one line and what arrived
    /// with its end.
    ///
    /// # Errors
    /// `Unreadable` when it cannot be fetched, with the reason.
    pub async fn lines(&self, url: &ResultUrl) -> Result<ResultLines> {
        let inner = &self.client.inner;
        let told =
            |broken: tidegate_upstream::http::download::DownloadError| ShopifyErrorKind::Unreadable(broken.0);
        Ok(ResultLines::new(inner.downloads.open(url.as_str()).await.map_err(told)?, inner.line_max))
    }

    async fn run(&self, job: Job) -> Result<RunningBulk> {
        job.check()?;
        let guard = self.acquire_lease().await?;
        let (id, is_adopted) = self.start_or_adopt(&job, false).await?;
        Ok(RunningBulk::new(self.client.clone(), id, guard, is_adopted))
    }

    /// Acquires a slot of the shop's lease. In the queue, the queue manages the slots.
    async fn acquire_lease(&self) -> Result<Option<LeaseGuard>> {
        let Some(lease) = &self.client.inner.lease else { return Ok(None) };
        match lease.acquire_within(self.client.patience()).await? {
            LeaseAcquisition::Held(guard) => Ok(Some(guard)),
            LeaseAcquisition::Busy { .. } => Err(ShopifyErrorKind::Busy { running: Vec::new() }.into()),
        }
    }

    /// Looks for the job first, then starts it. Looks again when the request was lost on the way to
    /// Shopify. Returns the id, and whether it was running already.
    async fn start_or_adopt(&self, job: &Job, is_repeated: bool) -> Result<(String, bool)> {
        if let Some(id) = self.find_existing(job, is_repeated).await? {
            return Ok((id, true));
        }
        match protocol::start(&self.client, job).await {
            Ok(id) => Ok((id, false)),
            Err(error) if error.is_unknown() => match self.find_existing(job, true).await {
                Ok(Some(id)) => Ok((id, true)),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    async fn find_existing(&self, job: &Job, is_repeated: bool) -> Result<Option<String>> {
        match protocol::find(&self.client, job, is_repeated).await? {
            JobSearchResult::Match(id) => Ok(Some(id)),
            JobSearchResult::Possible(id) if is_repeated => Err(Error::new(ShopifyErrorKind::Ambiguous(id))),
            JobSearchResult::Possible(_) | JobSearchResult::None => Ok(None),
        }
    }

    /// For the queue: looks for a job that may have been started, and starts nothing. Returns the
    /// operation's id.
    pub(crate) async fn find_for_queue(&self, job: &Job) -> Result<Option<String>> {
        self.find_existing(job, true).await
    }

    /// For the queue: starts without a look what was never tried, and looks first where an
    /// attempt's outcome is unknown. Returns the operation's id.
    pub(crate) async fn start_for_queue(&self, job: &Job, look_first: bool) -> Result<String> {
        if look_first {
            return Ok(self.start_or_adopt(job, true).await?.0);
        }
        match protocol::start(&self.client, job).await {
            Err(error) if error.is_unknown() => {
                self.find_existing(job, true).await.ok().flatten().ok_or(error)
            }
            started => started,
        }
    }
}

impl fmt::Debug for Bulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bulk({})", self.client.shop())
    }
}
