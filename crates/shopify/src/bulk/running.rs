//! A bulk operation in progress: polled with growing pauses, or when a webhook arrives, until it
//! ends. Its slot of the lease is renewed meanwhile and released at its end, which wakes the next
//! waiter.

use std::fmt;

use tidegate_limits::LeaseGuard;
use tokio::time::timeout;

use super::operation::{BulkOperation, BulkStatus, CompletedBulk};
use super::{Bulk, protocol};
use crate::client::Shopify;
use crate::client::error::{Result, ShopifyErrorKind};

/// Consecutive polls that may fail before the wait is given up.
const FAILED_LOOKS_MAX: u32 = 5;

/// A bulk operation in progress. Dropping it releases its slot of the lease; Shopify continues the
/// operation.
#[must_use = "dropping it releases its slot while Shopify continues"]
pub struct RunningBulk {
    client: Shopify,
    id: String,
    guard: Option<LeaseGuard>,
    is_adopted: bool,
}

impl RunningBulk {
    pub(super) const fn new(
        client: Shopify,
        id: String,
        guard: Option<LeaseGuard>,
        is_adopted: bool,
    ) -> Self {
        Self { client, id, guard, is_adopted }
    }

    /// Returns its id: `gid://shopify/BulkOperation/…`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether it was in progress already and was adopted.
    #[must_use]
    pub const fn is_adopted(&self) -> bool {
        self.is_adopted
    }

    /// Returns the fence of its slot; `None` when it holds no slot.
    #[must_use]
    pub fn fence(&self) -> Option<u64> {
        self.guard.as_ref().map(LeaseGuard::fence)
    }

    /// Waits until it has ended, and releases its slot. A lease that was lost meanwhile changes
    /// nothing: Shopify still counts the operation.
    ///
    /// # Errors
    /// `Ended` when it failed, was canceled or expired; the error of polling, after several failed
    /// polls.
    pub async fn wait(mut self) -> Result<CompletedBulk> {
        let ended = self.poll_until_end().await;
        self.release_lease().await;
        finished(ended?)
    }

    /// Asks Shopify to stop it, waits until it has stopped, and releases its slot.
    ///
    /// # Errors
    /// As for [`Bulk::cancel`] and [`RunningBulk::wait`], except that being canceled is no error.
    pub async fn cancel(mut self) -> Result<BulkOperation> {
        let ended = match protocol::cancel(&self.client, &self.id).await {
            Ok(_) => self.poll_until_end().await,
            Err(error) => Err(error),
        };
        self.release_lease().await;
        ended
    }

    async fn poll_until_end(&self) -> Result<BulkOperation> {
        let ear = self.client.inner.waiters.register(&self.id);
        let pauses = self.client.inner.poll_intervals;
        let (mut pause, mut failed) = (pauses.first, 0);
        loop {
            // Either way it is time to poll.
            let _ = timeout(pause, ear.woken()).await;
            match Bulk::new(self.client.clone()).status(&self.id).await {
                Ok(operation) if !operation.status.is_under_way() => return Ok(operation),
                Ok(_) => failed = 0,
                Err(error) if error.is_retryable() && failed < FAILED_LOOKS_MAX => failed += 1,
                Err(error) => return Err(error),
            }
            pause = pauses.next_after(pause);
        }
    }

    /// Releases the lease. If that fails, the lease expires.
    async fn release_lease(&mut self) {
        if let Some(guard) = self.guard.take()
            && let Err(error) = guard.release().await
        {
            tracing::warn!(shop = %self.client.shop(), %error, "the lease of a bulk operation was not released");
        }
    }
}

fn finished(operation: BulkOperation) -> Result<CompletedBulk> {
    let BulkOperation { id, status, error_code, objects, root_objects, file_size, url, partial, .. } =
        operation;
    if status == BulkStatus::Completed {
        return Ok(CompletedBulk { id, objects, root_objects, file_size, url });
    }
    Err(ShopifyErrorKind::Ended { id, status: status.as_str().to_owned(), error_code, partial }.into())
}

impl fmt::Debug for RunningBulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Running({}, {})", self.client.shop(), self.id)
    }
}
