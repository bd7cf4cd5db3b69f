//! The queues of groups, in short: how long each is, and what it waits for.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use super::group::GroupPlacement;
use super::{Group, Model};
use crate::time::Time;

/// A group with at least one operation, in short.
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'a> {
    /// Its name.
    pub name: &'a Arc<str>,
    /// The kind of its first operation.
    pub kind: &'a Arc<str>,
    /// The number of its operations.
    pub depth: u32,
    /// When the first of them was accepted.
    pub head_at: Time,
    /// What it waits for; `None` when it waits for an operator.
    pub waits_for: Option<QueueCause>,
}

/// What a group waits for, in short: the same for groups that wait for the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueCause {
    /// The end of a call in flight, or of a job elsewhere.
    Running,
    /// A free worker.
    Worker,
    /// A time.
    Time,
    /// A limit, by its place.
    Limit(usize),
    /// One of several alternatives, by the place of their list.
    Alternatives(usize),
}

impl QueueCause {
    fn of(group: &Group) -> Option<Self> {
        if group.is_stopped() {
            return None;
        }
        Some(match group.placement {
            _ if group.run.is_some() => Self::Running,
            GroupPlacement::Running => Self::Running,
            GroupPlacement::Unqueued | GroupPlacement::Ready => Self::Worker,
            GroupPlacement::Asleep(_) => Self::Time,
            GroupPlacement::Waiting(limit) => Self::Limit(limit.at()),
            GroupPlacement::Parked(chain) => Self::Alternatives(chain.at()),
        })
    }
}

impl fmt::Display for QueueCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Worker => f.write_str("worker"),
            Self::Time => f.write_str("time"),
            Self::Limit(place) => write!(f, "limit-{place}"),
            Self::Alternatives(place) => write!(f, "alternatives-{place}"),
        }
    }
}

impl Model {
    /// Iterates over groups with at least one operation, by name, after `after`.
    pub fn queues<'a>(&'a self, after: Option<&'a str>) -> impl Iterator<Item = QueueView<'a>> + 'a {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_group.range::<str, _>((start, Bound::Unbounded)).filter_map(|(name, ix)| {
            let group = &self.groups[ix.at()];
            let head = self.head_of(group)?;
            let (kind, waits_for) = (&self.kinds[usize::from(head.kind)], QueueCause::of(group));
            Some(QueueView { name, kind, depth: group.depth, head_at: head.at, waits_for })
        })
    }
}
