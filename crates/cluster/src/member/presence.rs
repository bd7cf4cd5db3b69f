//! Signs of life: this node's word in the register, and what the register and the leases say of all. A node joins in two
//! steps: it puts up a sign as one that takes nothing, looks who else has one, and only then counts as there. So of two
//! that do not go together at least one sees the other before either takes anything.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_store::log::Tenancy;
use tidegate_store::{Kind, Result};
use tokio::time::Instant;

use super::Member;
use crate::join::Settings;
use crate::notice::{self, Sign};
use crate::standing::{Me, Standing, judge};

type Owners = BTreeMap<Partition, Tenancy>;

impl Member {
    /// Gives a sign of life, looks around, and joins or steps back by what it finds.
    pub(super) async fn ask(&mut self) -> Result<(Vec<Sign>, Owners)> {
        self.unreadable.retain(|_, until| *until > Instant::now());
        self.put_up().await?;
        let mut around = self.around().await?;
        let mut standing = self.judge(&around);
        let joins = !self.joined && !self.leaving && standing.is_good();
        let before = (self.joined, self.is_candidate);
        if joins {
            self.is_candidate = true;
            self.put_up().await?;
            around = self.around().await?;
            standing = self.judge(&around);
            if standing.is_good() {
                standing = self.host.prepare().await.map_or_else(Standing::Apart, |()| Standing::Good);
            }
            self.joined = standing.is_good();
        }
        self.is_candidate &= matches!(standing, Standing::Waits(_));
        self.joined &= standing.is_good();
        self.tell_of(standing);
        let has_changed = before != (self.joined, self.is_candidate);
        if joins || has_changed {
            self.put_up().await?;
            around.0 = self.signs().await?;
        }
        // It hears itself: a hint with nothing behind it would never end.
        if has_changed {
            self.hint().await;
        }
        Ok(around)
    }

    fn judge(&self, (signs, owners): &(Vec<Sign>, Owners)) -> Standing {
        let Settings { node, address, placing, .. } = &self.settings;
        let owns = !self.held.is_empty() || !self.coming.is_empty();
        let me = Me { node, address, placing, joined: self.joined, owns };
        judge(&me, signs, owners, &self.findings)
    }

    async fn signs(&self) -> Result<Vec<Sign>> {
        Ok(self.store.list_nodes().await?.into_iter().map(notice::read).collect())
    }

    async fn around(&self) -> Result<(Vec<Sign>, Owners)> {
        let signs = self.signs().await?;
        let owners = self.store.owners().await?;
        Ok((signs, owners.into_iter().map(|owner| (owner.partition, owner)).collect()))
    }

    /// Has the register say what is so.
    async fn put_up(&mut self) -> Result<()> {
        let serves = !self.held.is_empty() || !self.coming.is_empty();
        if !(self.joined || self.is_candidate || serves) {
            return self.take_down().await;
        }
        let Settings { node, address, placing, ttl, .. } = &self.settings;
        let without = self.unreadable.keys().copied().collect();
        let mut notice = notice::notice(address, self.leaving || !self.joined, &without, placing);
        if notice == self.put_up {
            match self.store.heartbeat(node, *ttl).await {
                Ok(_) => return Ok(()),
                // Forgotten, when it gave no sign of life for too long: others may be there who do not go with it.
                Err(error) if error.kind() == Kind::Invalid => {
                    (self.joined, self.is_candidate) = (false, true);
                    notice = notice::notice(address, true, &without, placing);
                }
                Err(error) => return Err(error),
            }
        }
        self.store.register(node, &notice, *ttl).await?;
        self.put_up = notice;
        Ok(())
    }

    /// Takes its sign down, if it is up. Without one nothing is touched: it may be that of another of the same name.
    pub(super) async fn take_down(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.put_up).is_empty() {
            self.store.heartbeat(&self.settings.node, Duration::ZERO).await?;
        }
        Ok(())
    }

    /// Says what is wrong when that has changed, once.
    fn tell_of(&mut self, standing: Standing) {
        let (node, joined) = (&*self.settings.node, self.joined);
        let trouble = standing.trouble();
        if trouble != self.trouble {
            match &trouble {
                Some(why) if joined => tracing::warn!(node, why, "it takes part, but something is wrong"),
                Some(why) => {
                    tracing::error!(node, why, "it takes no share of the partitions until that is mended");
                }
                None if joined => tracing::info!(node, "it takes part, and nothing is wrong any more"),
                None => {}
            }
            self.trouble = trouble;
        }
    }
}
