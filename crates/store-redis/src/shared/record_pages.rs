//! Pages of idempotency records: shard by shard, each along its index. A page goes on behind the last record that was
//! looked at, also when that one has gone meanwhile.

use std::fmt;

use redis::Value;
use tidegate_core::shared::record::{self, Record};
use tidegate_store::checks::invalid;
use tidegate_store::{RecordPage, Result};

use super::record_value::Kept;
use crate::keys::RECORD_SHARDS;
use crate::scripts::{self, Call};
use crate::trouble::unusable;
use crate::{Redis, reply};

/// Records that one script looks at, at least and at most.
const AT_ONCE: (usize, usize) = (16, 128);
/// Records that one page looks at, however few of them stand.
const LOOKED_AT_MAX: usize = 1_000;

/// Where a record is in the index of its shard. Those of one score lie in the order of their bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    score: u64,
    key: String,
}

/// How far a list has come. As text it is what the next page begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Walk {
    shard: u64,
    last: Option<Place>,
}

impl fmt::Display for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.last {
            Some(Place { score, key }) => write!(f, "{}:{score}:{key}", self.shard),
            None => write!(f, "{}", self.shard),
        }
    }
}

impl Walk {
    const START: Self = Self { shard: 0, last: None };

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let shard = parts.next()?.parse().ok()?;
        let last = match (parts.next(), parts.next()) {
            (Some(score), Some(key)) => Some(Place { score: score.parse().ok()?, key: key.to_owned() }),
            (None, None) => None,
            _ => return None,
        };
        Some(Self { shard, last })
    }
}

impl Redis {
    pub(super) async fn page_of_records(&self, after: Option<&str>, most: usize) -> Result<RecordPage> {
        let walk = after.map_or(Some(Walk::START), Walk::parse);
        let mut walk = walk.ok_or_else(|| invalid("a list of records does not go on from there"))?;
        let now = self.time().await?;
        // Its record may have gone; then those of its score come once more.
        let mut seen = walk.last.clone();
        let (mut page, mut looked_at) = (RecordPage::default(), 0);
        while walk.shard < RECORD_SHARDS {
            let room = most - page.records.len();
            if room == 0 || looked_at >= LOOKED_AT_MAX {
                page.next = Some(walk.to_string());
                return Ok(page);
            }
            let limit = room.clamp(AT_ONCE.0, AT_ONCE.1);
            let rows = self.records_behind(&walk, limit).await?;
            let is_last = rows.len() < limit;
            looked_at += rows.len();
            for (place, found) in rows {
                if page.records.len() == most {
                    page.next = Some(walk.to_string());
                    return Ok(page);
                }
                let is_new = seen.as_ref().is_none_or(|seen| place > *seen);
                let found = found.filter(|found| is_new && record::is_live(found, now));
                page.records.extend(found.map(|found| (place.key.clone(), found)));
                walk.last = Some(place);
            }
            if is_last {
                walk = Walk { shard: walk.shard + 1, last: None };
                seen = None;
            }
        }
        Ok(page)
    }

    /// The next records of a shard, those that have expired too.
    async fn records_behind(&self, walk: &Walk, limit: usize) -> Result<Vec<(Place, Option<Record<usize>>)>> {
        let (score, key) = match &walk.last {
            Some(Place { score, key }) => (score.to_string(), &**key),
            None => (String::new(), ""),
        };
        let call = Call::new(&scripts::RECORD_LIST, [self.keys.record_index(walk.shard)])
            .with(limit)
            .with(self.keys.records(walk.shard))
            .with(score)
            .with(key);
        let answer = call.send(&self.link).await.map_err(|failed| unusable(self.link.name(), failed))?;
        reply::list(answer)?.into_iter().map(row).collect()
    }
}

/// A record with its place; none when it has gone, or its claim is on its way.
fn row(value: Value) -> Result<(Place, Option<Record<usize>>)> {
    let (score, key, head, len): (u64, String, Vec<u8>, usize) = reply::parsed(value)?;
    Ok((Place { score, key }, Kept::read(&head, len)?.map(|kept| kept.record)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_reads_what_it_wrote() {
        let place = Place { score: 7, key: "a:b::ü".to_owned() };
        for walk in [Walk::START, Walk { shard: 3, last: None }, Walk { shard: 15, last: Some(place) }] {
            assert_eq!(Walk::parse(&walk.to_string()), Some(walk));
        }
        for wrong in ["", "x", "1:", "1:2", "1:x:key", ":2:key"] {
            assert_eq!(Walk::parse(wrong), None, "{wrong:?}");
        }
    }
}
