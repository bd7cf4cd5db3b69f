//! Pages of the names of leases or buckets, which have no index: node by node, each by its own scan
//! of all keys. Names that exist throughout are listed; while a server rehashes, a name may be
//! listed twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use redis::Value;
use tidegate_store::Result;
use tidegate_store::checks::invalid_error;

use crate::errors::unusable;
use crate::keys::KeyPattern;
use crate::{RedisStore, reply};

/// The keys that one step of a scan reads.
const AT_ONCE: usize = 1_000;
/// The steps of one page, however few names they find.
const STEPS_MAX: usize = 20;

/// The position of a listing. Its text form is the cursor of the next page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NameCursor {
    /// The node, by its lowest slot.
    slot: u16,
    /// Where its scan resumes.
    cursor: u64,
    /// The last name of that step that was returned.
    last: String,
}

impl fmt::Display for NameCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.slot, self.cursor, self.last)
    }
}

impl NameCursor {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let (slot, cursor) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { slot, cursor, last: parts.next()?.to_owned() })
    }
}

/// A page of names.
pub(super) struct NamePage {
    pub(super) names: Vec<String>,
    pub(super) next: Option<String>,
}

impl RedisStore {
    pub(super) async fn page_of_names(
        &self,
        family: &KeyPattern,
        after: Option<&str>,
        most: usize,
    ) -> Result<NamePage> {
        let walk = after.map_or(Some(NameCursor::default()), NameCursor::parse);
        let mut walk = walk.ok_or_else(|| invalid_error("this is not a cursor of a list of names"))?;
        let nodes = self.lowest_slots().await?;
        let mut names = Vec::new();
        for _ in 0..STEPS_MAX {
            let (next, mut found) = self.scan(family, &walk).await?;
            found.retain(|name| *name > walk.last);
            let room = most - names.len();
            if found.len() > room {
                found.truncate(room);
                walk.last = found.last().cloned().unwrap_or(walk.last);
                names.extend(found);
                break;
            }
            names.extend(found);
            let slot = match next {
                0 => nodes.range(walk.slot.saturating_add(1)..).next().copied(),
                _ => Some(walk.slot),
            };
            let Some(slot) = slot else { return Ok(NamePage { names, next: None }) };
            walk = NameCursor { slot, cursor: next, last: String::new() };
        }
        Ok(NamePage { names, next: Some(walk.to_string()) })
    }

    /// Runs one step of a node's scan: returns where it resumes, and the names that it found, in
    /// order.
    async fn scan(&self, family: &KeyPattern, walk: &NameCursor) -> Result<(u64, Vec<String>)> {
        let mut scan = redis::cmd("SCAN");
        scan.arg(walk.cursor).arg("MATCH").arg(&family.pattern).arg("COUNT").arg(AT_ONCE);
        let answer = self.connection.send_to_slot(walk.slot, scan).await;
        let answer = answer.map_err(|failed| unusable(self.connection.name(), failed))?;
        let (next, keys): (u64, Vec<Vec<u8>>) = reply::parsed(answer)?;
        let name = |key: Vec<u8>| self.keys.name_in(family, std::str::from_utf8(&key).ok()?);
        let mut names: Vec<String> = keys.into_iter().filter_map(name).collect();
        names.sort_unstable();
        names.dedup();
        Ok((next, names))
    }

    /// The nodes that have keys, each by its lowest slot; a single server is one of them.
    async fn lowest_slots(&self) -> Result<BTreeSet<u16>> {
        if !self.connection.is_cluster() {
            return Ok(BTreeSet::from([0]));
        }
        let mut ask = redis::cmd("CLUSTER");
        ask.arg("SLOTS");
        let answer = self.connection.send_to_slot(0, ask).await;
        let answer = answer.map_err(|failed| unusable(self.connection.name(), failed))?;
        let mut lowest: BTreeMap<(String, u16), u16> = BTreeMap::new();
        for range in reply::list(answer)? {
            let mut parts = reply::list(range)?;
            let first: u16 = reply::part_at(&mut parts, 0)?;
            let master: Value = reply::part_at(&mut parts, 2)?;
            let mut master = reply::list(master)?;
            let node = (reply::part_at(&mut master, 0)?, reply::part_at(&mut master, 1)?);
            let slot = lowest.entry(node).or_insert(first);
            *slot = first.min(*slot);
        }
        Ok(lowest.into_values().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_reads_what_it_wrote() {
        let walk = NameCursor { slot: 5_461, cursor: u64::MAX, last: "a:b::ü".to_owned() };
        for walk in [NameCursor::default(), walk] {
            assert_eq!(NameCursor::parse(&walk.to_string()), Some(walk));
        }
        for wrong in ["", "x", "1", "1:2", "x:2:n", "1:x:n", "70000:1:n"] {
            assert_eq!(NameCursor::parse(wrong), None, "{wrong:?}");
        }
    }
}
