//! The work of each kind: what waits for a worker, what workers hold, and what awaits its end.

use std::sync::Arc;

use super::Model;
use super::group::GroupIx;
use super::pool::PoolIx;
use crate::bounds::QUERY_SCAN_MAX;
use crate::id::Turn;

/// The work of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindLoad {
    /// The kind.
    pub kind: Arc<str>,
    /// Whether it is left to remote workers, or executed by no one.
    pub is_remote: bool,
    /// Operations that wait for a worker. Those that waited for a limit are among them once it was
    /// looked at again.
    pub ready: u64,
    /// Operations that a worker holds.
    pub running: u64,
    /// Operations whose job ends elsewhere, and that no worker holds.
    pub awaiting: u64,
}

impl Model {
    /// Counts the work of each kind, in each state up to a bound. A kind that is left to remote
    /// workers is among them without work too.
    #[must_use]
    pub fn kind_loads(&self) -> Vec<KindLoad> {
        let unused = self.remote_kinds.iter().filter(|kind| !self.kinds.contains(kind));
        let mut loads: Vec<KindLoad> =
            self.kinds.iter().chain(unused).map(|kind| self.empty_load(kind)).collect();
        let is_unclaimed = |ix: &&GroupIx| self.groups[ix.at()].run.is_none();
        let mut from = PoolIx(0);
        while let Some((pool, ..)) = self.ready.range((from, Turn(0), GroupIx(0))..).next().copied() {
            let of_pool = self.ready.range((pool, Turn(0), GroupIx(0))..).take_while(|(of, ..)| *of == pool);
            let ready = of_pool.map(|(.., ix)| ix).filter(is_unclaimed).take(QUERY_SCAN_MAX);
            self.for_each_head(ready, |kind| loads[kind].ready += 1);
            let Some(next) = pool.0.checked_add(1) else { break };
            from = PoolIx(next);
        }
        self.for_each_head(self.running.values().take(QUERY_SCAN_MAX), |kind| loads[kind].running += 1);
        self.for_each_head(self.awaiting.values().take(QUERY_SCAN_MAX), |kind| loads[kind].awaiting += 1);
        loads
    }

    fn empty_load(&self, kind: &Arc<str>) -> KindLoad {
        let is_remote = self.remote_kinds.contains(kind);
        KindLoad { kind: Arc::clone(kind), is_remote, ready: 0, running: 0, awaiting: 0 }
    }

    /// Calls `count` with the place of the kind of the first operation of each group.
    fn for_each_head<'a>(&self, groups: impl Iterator<Item = &'a GroupIx>, mut count: impl FnMut(usize)) {
        for ix in groups {
            if let Some(head) = self.head_of(&self.groups[ix.at()]) {
                count(usize::from(head.kind));
            }
        }
    }
}
