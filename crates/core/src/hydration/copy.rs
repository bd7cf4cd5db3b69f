//! The local copy: which of two states is newer, and what becomes of the stored one when an event
//! arrives. The data itself is not seen here.

use std::cmp::Ordering;

use super::mode::HydrationMode;
use crate::time::Time;

/// When a statement about an entity was true, as far as its source says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntityStamp {
    /// Grows with every change of the entity.
    pub version: Option<u64>,
    /// When the source looked, by its own clock.
    pub as_of: Option<Time>,
}

impl EntityStamp {
    /// Compares by version if both have one, otherwise by time. `None` if neither is possible.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        let versions = self.version.zip(other.version).map(|(own, other)| own.cmp(&other));
        versions.or_else(|| self.as_of.zip(other.as_of).map(|(own, other)| own.cmp(&other)))
    }

    /// The stamp of both together: each figure the larger. A newer version has its own time, or
    /// none.
    fn merge(&self, other: &Self) -> Self {
        let versions = self.version.zip(other.version);
        if versions.is_some_and(|(own, other)| own > other) {
            return *self;
        }
        Self { version: self.version.max(other.version), as_of: self.as_of.max(other.as_of) }
    }
}

/// What is stored under a key, without the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyState {
    /// What is current of the data; `None` when nothing is. There may be more, which is stale.
    pub fresh: Option<HydrationMode>,
    /// When that was true.
    pub stamp: EntityStamp,
    /// Whether the entity was deleted: there is no data then, only a tombstone.
    pub is_deleted: bool,
}

/// What becomes of the stored copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyUpdate {
    /// Nothing: the stored one is newer, or this proves nothing.
    Ignore,
    /// This takes its place; of an older copy no data is kept.
    Replace(CopyState),
    /// The data of this goes over the stored data, field by field.
    Overlay(CopyState),
    /// The copy is removed without a trace.
    Remove,
}

/// Places an update that brings `mode`.
#[must_use]
pub fn place_update(stored: Option<&CopyState>, mode: &HydrationMode, stamp: EntityStamp) -> CopyUpdate {
    let fresh = |mode: HydrationMode, stamp| CopyState { fresh: Some(mode), stamp, is_deleted: false };
    let Some(stored) = stored else {
        return CopyUpdate::Replace(fresh(mode.clone(), stamp));
    };
    let order = stamp.compare(&stored.stamp);
    if stored.is_deleted {
        // A tombstone that says when it was written yields to what is surely newer only.
        let has_stamp = stored.stamp != EntityStamp::default();
        let revives = order == Some(Ordering::Greater) || !has_stamp;
        return if revives { CopyUpdate::Replace(fresh(mode.clone(), stamp)) } else { CopyUpdate::Ignore };
    }
    match order {
        Some(Ordering::Less) => CopyUpdate::Ignore,
        _ if *mode == HydrationMode::Full => {
            CopyUpdate::Replace(fresh(HydrationMode::Full, stamp.merge(&stored.stamp)))
        }
        Some(Ordering::Greater) => CopyUpdate::Overlay(fresh(mode.clone(), stamp.merge(&stored.stamp))),
        Some(Ordering::Equal) | None => {
            let both = stored.fresh.as_ref().map_or_else(|| mode.clone(), |fresh| fresh.union(mode));
            CopyUpdate::Overlay(fresh(both, stamp.merge(&stored.stamp)))
        }
    }
}

/// Places a "not found". `is_asked` says that it answers a question asked after the copy was
/// stored; otherwise it must prove that it is newer. `is_deleted` is false for an entity that may
/// not be seen: its copy goes, and it may come back without being newer.
#[must_use]
pub fn place_absence(
    stored: Option<&CopyState>,
    stamp: EntityStamp,
    is_asked: bool,
    is_deleted: bool,
) -> CopyUpdate {
    let Some(stored) = stored else {
        // Most ids that are not found never existed: no tombstones for those.
        let is_tombstone = is_deleted && stamp.version.is_some();
        let tombstone = CopyState { fresh: None, stamp, is_deleted: true };
        return if is_tombstone { CopyUpdate::Replace(tombstone) } else { CopyUpdate::Ignore };
    };
    let counts = match stamp.compare(&stored.stamp) {
        Some(Ordering::Greater) => true,
        Some(Ordering::Less) => false,
        Some(Ordering::Equal) | None => is_asked,
    };
    match (counts, is_deleted) {
        (false, _) => CopyUpdate::Ignore,
        (true, true) => CopyUpdate::Replace(CopyState {
            fresh: None,
            stamp: stamp.merge(&stored.stamp),
            is_deleted: true,
        }),
        (true, false) => CopyUpdate::Remove,
    }
}

/// Places an invalidation: the data stays as stale, a tombstone as it is.
#[must_use]
pub fn place_stale(stored: Option<&CopyState>) -> CopyUpdate {
    match stored {
        Some(stored) if stored.fresh.is_some() => CopyUpdate::Overlay(CopyState { fresh: None, ..*stored }),
        _ => CopyUpdate::Ignore,
    }
}
