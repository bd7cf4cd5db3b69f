//! Tokens taken from one bucket. A dropped grant keeps the tokens it reserved, which is right when
//! the actual cost is unknown.

use tidegate_core::shared::bucket::Settlement;

use crate::tokens::{NOTHING, to_tokens};
use crate::{ReportedLevels, Result, SharedBucket, Tokens};

/// Tokens that were taken from one bucket.
#[derive(Debug)]
#[must_use = "a grant says that the call may be made now"]
pub struct Grant {
    bucket: SharedBucket,
    reserved: u64,
    remaining: u64,
}

impl Grant {
    pub(crate) const fn new(bucket: SharedBucket, reserved: u64, remaining: u64) -> Self {
        Self { bucket, reserved, remaining }
    }

    /// The tokens that were left in the bucket.
    #[must_use]
    pub fn remaining(&self) -> f64 {
        to_tokens(self.remaining)
    }

    /// The tokens that were taken.
    #[must_use]
    pub fn reserved(&self) -> f64 {
        to_tokens(self.reserved)
    }

    /// The bucket's name.
    #[must_use]
    pub fn bucket(&self) -> &str {
        self.bucket.name()
    }

    /// Settles the grant with the actual cost. Unused tokens are returned; excess usage is taken as
    /// far as the bucket has tokens. A grant is settled once.
    ///
    /// # Errors
    /// `Invalid` for an invalid cost; otherwise the store's error, and then the reserved tokens
    /// stay taken or the outcome is unknown.
    pub async fn settle(self, actual: impl Into<Tokens>) -> Result<()> {
        let actual = actual.into().checked("cost", self.bucket.name(), NOTHING)?;
        let settlement = Settlement { reserved: self.reserved, actual };
        if actual != self.reserved {
            self.bucket.store().settle_bucket(self.bucket.name(), settlement).await?;
        }
        Ok(())
    }
    /// Settles the grant with the actual cost and with what the API reported. The reported figures
    /// are [learned](SharedBucket::learn). Of the reported remainder and the known level the lower
    /// one counts, so that responses that arrive out of order never raise a balance.
    ///
    /// # Errors
    /// As for [`Grant::settle`]. The reported figures are learned even then.
    pub async fn settle_as_reported(self, actual: impl Into<Tokens>, told: ReportedLevels) -> Result<()> {
        self.bucket.learn(&told);
        let name = self.bucket.name();
        let actual = actual.into().checked("cost", name, NOTHING)?;
        let remaining = told.remaining.and_then(|left| left.checked("rest", name, NOTHING).ok());
        self.bucket.settle_reported(Settlement { reserved: self.reserved, actual }, remaining).await
    }
}
