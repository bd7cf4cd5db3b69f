//! The ownership of a partition: one epoch after the other, each for a time. Pure: the stores keep
//! the state and supply the time.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::id::Partition;
use tidegate_store::log::{Epoch, Ownership, PartitionOwner};
use tidegate_store::{Error, Result, StoreErrorKind};

/// The newest epoch of a partition and its holder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EpochLease {
    pub(crate) epoch: Epoch,
    /// The holder, and until when; `None` when it was released.
    holder: Option<(Arc<str>, Time)>,
}

impl EpochLease {
    /// A partition without an owner; the next epoch is the one after `epoch`.
    pub(crate) const fn free(epoch: Epoch) -> Self {
        Self { epoch, holder: None }
    }

    /// Starts the next epoch, unless another node's lease is valid. A node that asks again takes
    /// over from itself.
    pub(crate) fn own(
        &mut self,
        partition: Partition,
        node: &Arc<str>,
        now: Time,
        ttl: Duration,
    ) -> Result<Ownership> {
        if let Some((holder, until)) = &self.holder
            && holder != node
            && *until > now
        {
            let left = until.since(now).as_millis();
            let message = format!("partition {partition} is owned by {holder} for another {left} ms");
            return Err(Error::new(StoreErrorKind::Held, message));
        }
        self.epoch = Epoch(self.epoch.0 + 1);
        let until = now.after(ttl);
        self.holder = Some((Arc::clone(node), until));
        Ok(Ownership { partition, epoch: self.epoch, until })
    }

    /// Extends the ownership.
    pub(crate) fn renew(&mut self, owner: Ownership, now: Time, ttl: Duration) -> Result<Ownership> {
        self.check(owner)?;
        let Some((_, until)) = &mut self.holder else {
            return Err(fenced(owner, self.epoch, "it was released"));
        };
        *until = now.after(ttl);
        Ok(Ownership { until: *until, ..owner })
    }

    /// Ends the ownership; an older owner has nothing left to release.
    pub(crate) fn release(&mut self, owner: Ownership) {
        if owner.epoch == self.epoch {
            self.holder = None;
        }
    }

    /// The current owner.
    pub(crate) fn current_owner(&self, partition: Partition, now: Time) -> Option<PartitionOwner> {
        let (node, until) = self.holder.as_ref().filter(|(_, until)| *until > now)?;
        Some(PartitionOwner { partition, node: node.to_string(), epoch: self.epoch, until: *until })
    }

    /// Rejects an owner that has been superseded by a newer one.
    pub(crate) fn check(&self, owner: Ownership) -> Result<()> {
        if owner.epoch == self.epoch && owner.epoch != Epoch::default() {
            return Ok(());
        }
        Err(fenced(owner, self.epoch, "a newer owner exists"))
    }
}

fn fenced(owner: Ownership, newest: Epoch, why: &str) -> Error {
    let (partition, epoch, newest) = (owner.partition, owner.epoch.0, newest.0);
    let message = format!("epoch {epoch} of partition {partition} has ended ({why}; the newest is {newest})");
    Error::new(StoreErrorKind::Fenced, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn kind<T>(answer: &Result<T>) -> Option<StoreErrorKind> {
        answer.as_ref().err().map(Error::kind)
    }

    /// OPS-8: one owner at a time, and requests of an older one are rejected.
    #[test]
    fn ops_8_epochs_grow_and_old_ones_are_fenced() {
        let (ann, ben): (Arc<str>, Arc<str>) = ("ann".into(), "ben".into());
        let (start, mut tenure) = (Time::from_millis(1_000), EpochLease::default());
        let first = tenure.own(3, &ann, start, TTL).unwrap();
        assert_eq!(kind(&tenure.own(3, &ben, start, TTL)), Some(StoreErrorKind::Held));
        let renewed = tenure.renew(first, start.after(TTL / 2), TTL).unwrap();
        assert_eq!(kind(&tenure.own(3, &ben, start.after(TTL), TTL)), Some(StoreErrorKind::Held));
        let second = tenure.own(3, &ben, renewed.until, TTL).unwrap();
        assert!(second.epoch > first.epoch);
        assert_eq!(kind(&tenure.check(first)), Some(StoreErrorKind::Fenced));
        assert_eq!(kind(&tenure.renew(first, start, TTL)), Some(StoreErrorKind::Fenced));
        tenure.release(first);
        assert_eq!(
            kind(&tenure.own(3, &ann, renewed.until, TTL)),
            Some(StoreErrorKind::Held),
            "released by the wrong one"
        );
        tenure.release(second);
        assert_eq!(tenure.own(3, &ann, renewed.until, TTL).unwrap().epoch, Epoch(3));
    }

    #[test]
    fn a_node_takes_over_from_itself_and_nobody_owns_by_saying_so() {
        let ann: Arc<str> = "ann".into();
        let (now, mut tenure) = (Time::from_millis(1_000), EpochLease::default());
        let made_up = Ownership { partition: 0, epoch: Epoch(0), until: Time::MAX };
        assert_eq!(kind(&tenure.check(made_up)), Some(StoreErrorKind::Fenced));
        let first = tenure.own(0, &ann, now, TTL).unwrap();
        let again = tenure.own(0, &ann, now, TTL).unwrap();
        assert_eq!(kind(&tenure.check(first)), Some(StoreErrorKind::Fenced));
        assert!(tenure.check(again).is_ok());
    }
}
