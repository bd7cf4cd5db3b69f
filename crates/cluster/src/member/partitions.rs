//! The partitions that this node serves: acquires them, hands them over, and handles the outcome of
//! either. It starts what the share requires without waiting for it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_store::log::PartitionOwner;
use tokio::time::Instant;

use super::Member;
use super::handshake::HandshakeRound;
use crate::host::{AcquireError, PartitionHandle};
use crate::share::{Candidate, share};

/// How long before a partition that could not be read is tried again, unless another node has it.
const UNREADABLE_FOR: Duration = Duration::from_secs(60);

/// The completion of something that was started in the background.
pub(super) enum Event {
    Acquired(Partition, Result<Arc<dyn PartitionHandle>, AcquireError>),
    HandedOver(Partition),
    Ended(Partition, Arc<dyn PartitionHandle>, String),
    HandshakesDone(HandshakeRound),
}

/// A partition that this node serves.
pub(super) struct ServedPartition {
    handle: Arc<dyn PartitionHandle>,
    /// Whether it is being handed over.
    leaving: bool,
}

impl Member {
    /// Acquires the partitions missing from this node's share and hands over those that are not in
    /// it.
    pub(super) fn apply_share(
        &mut self,
        staying: &[Candidate],
        owners: &BTreeMap<Partition, PartitionOwner>,
    ) {
        let me = self.settings.node.clone();
        let owned = owners.iter().map(|(partition, owner)| (*partition, owner.node.as_str())).collect();
        let shares = share(staying, &owned, self.view.borrow().partitions);
        for (partition, node) in &shares {
            let waits = owners.get(partition).is_some_and(|owner| owner.node != me);
            if *node == me && !waits {
                self.start_acquiring(*partition);
            }
        }
        let held: Vec<Partition> = self.held.keys().copied().collect();
        for partition in held {
            if self.leaving || shares.get(&partition).is_some_and(|node| *node != me) {
                self.hand_over(partition);
            }
        }
    }

    fn start_acquiring(&mut self, partition: Partition) {
        let has_reason = self.leaving || !self.joined || self.unreadable.contains_key(&partition);
        if has_reason || self.held.contains_key(&partition) || !self.acquiring.insert(partition) {
            return;
        }
        let (host, tell) = (Arc::clone(&self.host), self.tell.clone());
        tokio::spawn(async move {
            let taken = host.acquire_partition(partition).await;
            // Without a member there is no one to serve it for.
            let _ = tell.send(Event::Acquired(partition, taken));
        });
    }

    fn hand_over(&mut self, partition: Partition) {
        let Some(held) = self.held.get_mut(&partition).filter(|held| !held.leaving) else { return };
        held.leaving = true;
        let (tenant, tell) = (Arc::clone(&held.handle), self.tell.clone());
        tracing::info!(partition, "handing over partition");
        tokio::spawn(async move {
            tenant.hand_over().await;
            let _ = tell.send(Event::HandedOver(partition));
        });
    }

    /// Hands over every partition: this node leaves, and does not know who will acquire them.
    pub(super) fn hand_over_all(&mut self) {
        let held: Vec<Partition> = self.held.keys().copied().collect();
        held.into_iter().for_each(|partition| self.hand_over(partition));
    }

    pub(super) async fn handle_event(&mut self, event: Event) {
        match event {
            Event::Acquired(partition, Ok(tenant)) => {
                tracing::info!(partition, "serving");
                self.acquiring.remove(&partition);
                let (watched, tell) = (Arc::clone(&tenant), self.tell.clone());
                tokio::spawn(async move {
                    let why = watched.ended().await;
                    let _ = tell.send(Event::Ended(partition, watched, why));
                });
                self.held.insert(partition, ServedPartition { handle: tenant, leaving: false });
            }
            Event::Acquired(partition, Err(AcquireError { why, unreadable: true })) => {
                tracing::error!(
                    partition,
                    why,
                    "this node cannot read the partition and leaves it to other nodes for a while"
                );
                self.acquiring.remove(&partition);
                self.unreadable.insert(partition, Instant::now() + UNREADABLE_FOR);
            }
            Event::Acquired(partition, Err(AcquireError { why, .. })) => {
                // Another node may have been quicker: the next look decides.
                tracing::info!(partition, why, "partition not acquired");
                self.acquiring.remove(&partition);
                return;
            }
            Event::HandshakesDone(round) => {
                self.record_handshakes(round);
                return;
            }
            Event::HandedOver(partition) => {
                self.held.remove(&partition);
            }
            Event::Ended(partition, tenant, why) => {
                let is_it = |held: &&ServedPartition| !held.leaving && Arc::ptr_eq(&held.handle, &tenant);
                if self.held.get(&partition).filter(is_it).is_none() {
                    return;
                }
                tracing::warn!(partition, %why, "partition no longer served");
                self.held.remove(&partition);
            }
        }
        self.hint().await;
    }
}
