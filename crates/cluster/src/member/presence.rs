//! Signs of life: this node's word in the register, and what the register and the leases say of all.

use std::collections::BTreeMap;

use tidegate_core::id::Partition;
use tidegate_store::log::Tenancy;
use tidegate_store::nodes::Node;
use tidegate_store::{Kind, Result};
use tokio::time::Instant;

use super::Member;
use crate::join::Settings;
use crate::notice;

impl Member {
    pub(super) async fn ask(&mut self) -> Result<(Vec<Node>, BTreeMap<Partition, Tenancy>)> {
        self.unreadable.retain(|_, until| *until > Instant::now());
        let without = self.unreadable.keys().copied().collect();
        let Settings { node, address, ttl, .. } = &self.settings;
        let notice = notice::notice(address, self.leaving, &without);
        let is_new = notice != self.put_up;
        let heard = if is_new { None } else { self.store.heartbeat(node, *ttl).await.err() };
        // Forgotten, when it gave no sign of life for too long.
        let is_forgotten = heard.as_ref().is_some_and(|error| error.kind() == Kind::Invalid);
        if is_new || is_forgotten {
            self.store.register(node, &notice, *ttl).await?;
        } else if let Some(error) = heard {
            return Err(error);
        }
        self.put_up = notice;
        let nodes = self.store.list_nodes().await?;
        let owners = self.store.owners().await?;
        Ok((nodes, owners.into_iter().map(|owner| (owner.partition, owner)).collect()))
    }
}
