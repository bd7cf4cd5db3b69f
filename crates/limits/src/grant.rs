//! What was taken of one bucket. Dropped, it stays taken as it was asked: so it is when nobody knows what a call cost.

use tidegate_core::shared::bucket::Settlement;

use crate::tokens::{NOTHING, to_tokens};
use crate::{ReportedLevels, Result, SharedBucket, Tokens};

/// Tokens of one bucket that were taken.
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

    /// What was left in the bucket, in tokens.
    #[must_use]
    pub fn remaining(&self) -> f64 {
        to_tokens(self.remaining)
    }

    /// What was taken, in tokens.
    #[must_use]
    pub fn reserved(&self) -> f64 {
        to_tokens(self.reserved)
    }

    /// The bucket's name.
    #[must_use]
    pub fn bucket(&self) -> &str {
        self.bucket.name()
    }

    /// Says what it really cost: what was not used is given back, and what was used beyond is taken as far as there is
    /// any. Once for each grant.
    ///
    /// # Errors
    /// `Invalid` for a cost that makes no sense; the store's, and then what was asked stays taken, or it is unsure.
    pub async fn settle(self, actual: impl Into<Tokens>) -> Result<()> {
        let actual = actual.into().checked("cost", self.bucket.name(), NOTHING)?;
        let settlement = Settlement { reserved: self.reserved, actual };
        if actual != self.reserved {
            self.bucket.store().settle_bucket(self.bucket.name(), settlement).await?;
        }
        Ok(())
    }
    /// The same by what the API behind it said: its figures are [learned](Bucket::learn), and of what it says is left and
    /// what we know of the lower one counts, so that answers that come out of order never raise a balance.
    ///
    /// # Errors
    /// As for [`Grant::settle`]. What was said of the figures is learned all the same.
    pub async fn settle_as_reported(self, actual: impl Into<Tokens>, told: ReportedLevels) -> Result<()> {
        self.bucket.learn(&told);
        let name = self.bucket.name();
        let actual = actual.into().checked("cost", name, NOTHING)?;
        let remaining = told.remaining.and_then(|left| left.checked("rest", name, NOTHING).ok());
        self.bucket.settle_reported(Settlement { reserved: self.reserved, actual }, remaining).await
    }
}
