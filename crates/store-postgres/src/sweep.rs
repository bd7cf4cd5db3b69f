//! Finds results that are too old to keep. Results are stored in the order of acceptance, and
//! mostly ended in it, so the old ones are found at the front. Old results behind younger ones are
//! found by a second scan that resumes, each time, where it stopped. Both scan a bounded number of
//! rows. A whole range of seqs is dropped at once when nothing of it is kept.

use std::sync::PoisonError;
use std::time::Duration;

use tidegate_core::{Seq, Time};
use tidegate_store::log::{Ownership, Retention};
use tidegate_store::{Result, StoreErrorKind};

use crate::session::RetrySafety;
use crate::{PostgresStore, checks, rows};

/// The rows that one step scans.
const LOOKED_AT: usize = 4_096;
/// The rows that one step removes.
const REMOVED_AT_ONCE: usize = 1_000;
/// How much longer results of earlier ranges are kept, so that their range can be dropped as a
/// whole.
const RANGE_GRACE: Duration = Duration::from_secs(3_600);
/// The maximum number of steps of the first scan.
const STEPS_MAX: usize = 64;

const SWEEP: &str = "SELECT verdict, number, reached, is_over FROM sweep($1, $2, $3, $4, $5, $6, $7)";
const DROP: &str = "SELECT verdict, number FROM drop_range($1, $2, $3)";

/// The result of one step of a scan.
struct Step {
    removed: usize,
    reached: Seq,
    is_over: bool,
}

impl PostgresStore {
    /// Removes what retention no longer keeps; returns the number of removed operations.
    pub(crate) async fn sweep_results(&self, owner: Ownership, retention: Retention) -> Result<usize> {
        let (mut removed, mut after) = (self.drop_ranges(owner, retention).await?, Seq(0));
        if removed >= retention.most {
            return Ok(removed);
        }
        for _ in 0..STEPS_MAX {
            let step = self.run_sweep_step(owner, retention, retention.most - removed, after).await?;
            removed += step.removed;
            after = step.reached;
            if removed >= retention.most || step.is_over {
                return Ok(removed);
            }
            if step.removed == 0 {
                break;
            }
        }
        let from =
            self.sweep_resume.lock().unwrap_or_else(PoisonError::into_inner).get(&owner.partition).copied();
        let from = from.unwrap_or_default().max(after);
        let step = self.run_sweep_step(owner, retention, retention.most - removed, from).await?;
        let next = if step.is_over { Seq(0) } else { step.reached };
        self.sweep_resume.lock().unwrap_or_else(PoisonError::into_inner).insert(owner.partition, next);
        Ok(removed + step.removed)
    }

    /// Drops ranges of which nothing is kept. That costs the same however much is in them, so it is
    /// not bounded by the number of operations to remove at once.
    async fn drop_ranges(&self, owner: Ownership, retention: Retention) -> Result<usize> {
        let (partition, epoch) = (i32::from(owner.partition), owner.epoch.0.cast_signed());
        let (cut, mut removed) = (cutoff(retention), 0);
        loop {
            let dropped = self
                .sessions
                .row(RetrySafety::Harmless, DROP, |q| q.bind(partition).bind(epoch).bind(cut))
                .await;
            let row = match dropped {
                // Another session uses it: the next sweep retries.
                Err(error) if error.kind() == StoreErrorKind::Unavailable => return Ok(removed),
                other => other?,
            };
            let number: i64 = self.sessions.column(&row, 1)?;
            match self.sessions.column(&row, 0)? {
                "ok" => removed += usize::try_from(number).unwrap_or_default(),
                "none" => return Ok(removed),
                refused => return Err(checks::refusal(owner, refused, number)),
            }
        }
    }

    async fn run_sweep_step(
        &self,
        owner: Ownership,
        retention: Retention,
        most: usize,
        after: Seq,
    ) -> Result<Step> {
        let (partition, epoch) = (i32::from(owner.partition), owner.epoch.0.cast_signed());
        let cut = cutoff(retention);
        let most = rows::count(most.min(REMOVED_AT_ONCE));
        let row = self
            .sessions
            .row(RetrySafety::Harmless, SWEEP, |q| {
                let q = q.bind(partition).bind(epoch).bind(cut).bind(most);
                let q = q.bind(after.0.cast_signed()).bind(rows::count(LOOKED_AT));
                q.bind(rows::span(RANGE_GRACE))
            })
            .await?;
        let number: i64 = self.sessions.column(&row, 1)?;
        match self.sessions.column(&row, 0)? {
            "ok" => Ok(Step {
                removed: usize::try_from(number).unwrap_or_default(),
                reached: Seq(self.sessions.column::<i64>(&row, 2)?.cast_unsigned()),
                is_over: self.sessions.column(&row, 3)?,
            }),
            refused => Err(checks::refusal(owner, refused, number)),
        }
    }
}

/// The time before which results are removed, as it is bound.
fn cutoff(retention: Retention) -> i64 {
    rows::micros(retention.ended_before.min(Time::from_micros(i64::MAX as u64)))
}
