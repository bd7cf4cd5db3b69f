//! A bulk operation under way: looked at with growing pauses, or when a webhook says so, until it ends. Its place of the
//! lease is renewed beside it and given back at its end, which wakes whoever is next.

use std::fmt;

use tidegate_limits::Guard;
use tokio::time::timeout;

use super::operation::{Finished, Operation, Status};
use super::{Bulk, protocol};
use crate::client::Shopify;
use crate::client::error::{Kind, Result};

/// Looks in a row that may fail before waiting is given up.
const FAILED_LOOKS_MAX: u32 = 5;

/// A bulk operation under way. Dropped, it gives its place of the lease back, and Shopify goes on with the operation.
#[must_use = "dropped, it gives its place back while Shopify goes on"]
pub struct Running {
    client: Shopify,
    id: String,
    guard: Option<Guard>,
    is_adopted: bool,
}

impl Running {
    pub(super) const fn new(client: Shopify, id: String, guard: Option<Guard>, is_adopted: bool) -> Self {
        Self { client, id, guard, is_adopted }
    }

    /// The same, looked at with the patience of another client.
    pub(crate) fn with_client(mut self, client: &Shopify) -> Self {
        self.client = client.clone();
        self
    }

    /// Its id: `gid://shopify/BulkOperation/…`.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether it was under way already and was taken on.
    #[must_use]
    pub const fn is_adopted(&self) -> bool {
        self.is_adopted
    }

    /// The fence of the place it holds; nothing when it holds none.
    #[must_use]
    pub fn fence(&self) -> Option<u64> {
        self.guard.as_ref().map(Guard::fence)
    }

    /// Waits until it has ended, and gives its place back. A lease that was lost meanwhile changes nothing: Shopify still
    /// counts the operation.
    ///
    /// # Errors
    /// `Ended` when it failed, was called off or ran out; what looking at it fails with, after several looks.
    pub async fn wait(mut self) -> Result<Finished> {
        let ended = self.look_until_it_ends().await;
        self.give_back().await;
        finished(ended?)
    }

    /// How it ended, whichever way.
    pub(crate) async fn end(self) -> Result<Operation> {
        self.look_until_it_ends().await
    }

    /// Asks Shopify to stop it, waits until it has, and gives its place back.
    ///
    /// # Errors
    /// As for [`Bulk::cancel`] and [`Running::wait`], save that it was called off.
    pub async fn cancel(mut self) -> Result<Operation> {
        let ended = match protocol::cancel(&self.client, &self.id).await {
            Ok(_) => self.look_until_it_ends().await,
            Err(error) => Err(error),
        };
        self.give_back().await;
        ended
    }

    async fn look_until_it_ends(&self) -> Result<Operation> {
        let ear = self.client.inner.ears.listen(&self.id);
        let pauses = self.client.inner.pauses;
        let (mut pause, mut failed) = (pauses.first, 0);
        loop {
            // Either way it is time to look.
            let _ = timeout(pause, ear.told()).await;
            match Bulk::new(self.client.clone()).status(&self.id).await {
                Ok(operation) if !operation.status.is_under_way() => return Ok(operation),
                Ok(_) => failed = 0,
                Err(error) if error.may_pass() && failed < FAILED_LOOKS_MAX => failed += 1,
                Err(error) => return Err(error),
            }
            pause = pauses.after(pause);
        }
    }

    /// What cannot be given back runs out.
    async fn give_back(&mut self) {
        if let Some(guard) = self.guard.take()
            && let Err(error) = guard.release().await
        {
            tracing::warn!(shop = %self.client.shop(), %error, "the lease of a bulk operation was not given back");
        }
    }
}

fn finished(operation: Operation) -> Result<Finished> {
    let Operation { id, status, error_code, objects, root_objects, file_size, url, partial, .. } = operation;
    if status == Status::Completed {
        return Ok(Finished { id, objects, root_objects, file_size, url });
    }
    Err(Kind::Ended { id, status: status.as_str().to_owned(), error_code, partial }.into())
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Running({}, {})", self.client.shop(), self.id)
    }
}
