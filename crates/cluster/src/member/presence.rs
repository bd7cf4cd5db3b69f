//! Heartbeats: publishes this node's record in the register, and reads the records and leases of
//! all nodes. A node joins in two steps: it publishes its record as a candidate that takes nothing,
//! reads who else has one, and only then counts as joined. So of two incompatible nodes at least
//! one sees the other before either takes anything.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_store::log::PartitionOwner;
use tidegate_store::nodes::{Node, NodeRecord};
use tidegate_store::{Result, StoreErrorKind};
use tokio::time::Instant;

use super::Member;
use crate::admission::{Admission, ThisNode, admission_of};
use crate::join::Settings;

type Owners = BTreeMap<Partition, PartitionOwner>;

impl Member {
    /// Sends a heartbeat, reads the register, and joins or steps back accordingly.
    pub(super) async fn refresh_membership(&mut self) -> Result<(Vec<Node>, Owners)> {
        self.unreadable.retain(|_, until| *until > Instant::now());
        self.publish_record().await?;
        let mut around = self.read_cluster().await?;
        let mut standing = self.judge_admission(&around);
        let joins = !self.joined && !self.leaving && standing.is_admitted();
        let before = (self.joined, self.is_candidate);
        if joins {
            self.is_candidate = true;
            self.publish_record().await?;
            around = self.read_cluster().await?;
            standing = self.judge_admission(&around);
            if standing.is_admitted() {
                standing =
                    self.host.prepare().await.map_or_else(Admission::Excluded, |()| Admission::Admitted);
            }
            self.joined = standing.is_admitted();
        }
        self.is_candidate &= matches!(standing, Admission::Waiting(_));
        self.joined &= standing.is_admitted();
        self.report_problem(standing);
        let has_changed = before != (self.joined, self.is_candidate);
        if joins || has_changed {
            self.publish_record().await?;
            around.0 = self.read_nodes().await?;
        }
        // This node receives its own hints: a hint without a change behind it would never end.
        if has_changed {
            self.hint().await;
        }
        Ok(around)
    }

    fn judge_admission(&self, (nodes, owners): &(Vec<Node>, Owners)) -> Admission {
        let Settings { node, address, placement_hash: placing, .. } = &self.settings;
        let owns = !self.held.is_empty() || !self.acquiring.is_empty();
        let me = ThisNode { node, address, placement_hash: placing, joined: self.joined, owns };
        admission_of(&me, nodes, owners, &self.findings)
    }

    async fn read_nodes(&self) -> Result<Vec<Node>> {
        self.store.list_nodes().await
    }

    async fn read_cluster(&self) -> Result<(Vec<Node>, Owners)> {
        let nodes = self.read_nodes().await?;
        let owners = self.store.partition_owners().await?;
        Ok((nodes, owners.into_iter().map(|owner| (owner.partition, owner)).collect()))
    }

    /// Updates this node's record in the register.
    async fn publish_record(&mut self) -> Result<()> {
        let serves = !self.held.is_empty() || !self.acquiring.is_empty();
        if !(self.joined || self.is_candidate || serves) {
            return self.withdraw_record().await;
        }
        let Settings { node, address, placement_hash: placing, ttl, .. } = &self.settings;
        let mut record = NodeRecord {
            address: address.clone(),
            leaving: self.leaving || !self.joined,
            unreadable: self.unreadable.keys().copied().collect(),
            placement_hash: Some(placing.clone()).filter(|hash| !hash.is_empty()),
        };
        if self.published_record.as_ref() == Some(&record) {
            match self.store.heartbeat(node, *ttl).await {
                Ok(_) => return Ok(()),
                // The record was removed because this node sent no heartbeat for too long:
                // incompatible nodes may have joined since.
                Err(error) if error.kind() == StoreErrorKind::Invalid => {
                    (self.joined, self.is_candidate) = (false, true);
                    record.leaving = true;
                }
                Err(error) => return Err(error),
            }
        }
        self.store.register(node, &record, *ttl).await?;
        self.published_record = Some(record);
        Ok(())
    }

    /// Withdraws this node's record, if it is published. Otherwise nothing is touched: the record
    /// may belong to another process of the same name.
    pub(super) async fn withdraw_record(&mut self) -> Result<()> {
        if self.published_record.take().is_some() {
            self.store.heartbeat(&self.settings.node, Duration::ZERO).await?;
        }
        Ok(())
    }

    /// Logs the problem when it has changed, once.
    fn report_problem(&mut self, standing: Admission) {
        let (node, joined) = (&*self.settings.node, self.joined);
        let trouble = standing.into_problem();
        if trouble != self.trouble {
            match &trouble {
                Some(why) if joined => {
                    tracing::warn!(node, why, "the node takes part, but there is a problem");
                }
                Some(why) => {
                    tracing::error!(node, why, "the node takes no partitions until this is fixed");
                }
                None if joined => tracing::info!(node, "the node takes part, without problems"),
                None => {}
            }
            self.trouble = trouble;
        }
    }
}
