//! What is remembered as not found: for a while, and never more than a set number. When there is no
//! room the entry that would expire first goes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::copy::EntityStamp;
use super::key::EntityKey;
use crate::backoff::share;
use crate::time::{Time, micros};

/// Why an entity is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsenceReason {
    /// It was deleted, or there never was one.
    DeletedOrNeverExisted,
    /// There may be one, but not for this module.
    Inaccessible,
}

impl AbsenceReason {
    /// The name that events use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeletedOrNeverExisted => "deleted_or_never_existed",
            Self::Inaccessible => "inaccessible",
        }
    }

    /// Reads the name that events use.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::DeletedOrNeverExisted, Self::Inaccessible].into_iter().find(|reason| reason.name() == name)
    }
}

/// An entity that is not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// Why.
    pub reason: AbsenceReason,
    /// When that was true.
    pub stamp: EntityStamp,
}

#[derive(Clone, Copy, Debug)]
struct NegativeEntry {
    absence: Absence,
    noted: Time,
    until: Time,
}

/// The negative cache.
#[derive(Debug, Default)]
pub(super) struct NegativeCache {
    entries: BTreeMap<EntityKey, NegativeEntry>,
    by_expiry: BTreeSet<(Time, EntityKey)>,
    /// The last gap, and when entries from before it expire at the latest.
    gap: Option<(Time, Time)>,
}

/// The time to live: up to a fifth shorter than the configured one.
pub(super) fn jittered_ttl(ttl: Duration, chance: u32) -> Duration {
    ttl - Duration::from_micros(share(micros(ttl) / 5, chance))
}

impl NegativeCache {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The entry under a key that has not expired.
    pub(super) fn get(&self, key: &EntityKey, now: Time) -> Option<Absence> {
        let entry = self.entries.get(key)?;
        let until = match self.gap {
            Some((at, latest)) if entry.noted <= at => entry.until.min(latest),
            _ => entry.until,
        };
        (until > now).then_some(entry.absence)
    }

    pub(super) fn insert(&mut self, key: EntityKey, absence: Absence, now: Time, until: Time, most: usize) {
        self.remove(&key);
        self.drop_expired(now);
        while self.entries.len() >= most.max(1) {
            let Some((_, first)) = self.by_expiry.pop_first() else { break };
            self.entries.remove(&first);
        }
        self.by_expiry.insert((until, key.clone()));
        self.entries.insert(key, NegativeEntry { absence, noted: now, until });
    }

    pub(super) fn remove(&mut self, key: &EntityKey) -> bool {
        let Some(entry) = self.entries.remove(key) else { return false };
        self.by_expiry.remove(&(entry.until, key.clone()));
        true
    }

    /// Events may have been lost: what is remembered now expires at `latest`.
    pub(super) fn expire_by(&mut self, now: Time, latest: Time) {
        self.gap = Some((now, latest));
    }

    fn drop_expired(&mut self, now: Time) {
        while let Some((until, _)) = self.by_expiry.first()
            && *until <= now
            && let Some((_, key)) = self.by_expiry.pop_first()
        {
            self.entries.remove(&key);
        }
    }
}
