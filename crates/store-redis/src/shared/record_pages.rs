//! Pages of idempotency records: shard by shard, each along its index. A page resumes behind the
//! last record that was scanned, even when that one has been removed meanwhile.

use std::fmt;

use redis::Value;
use tidegate_core::shared::record::{self, Record};
use tidegate_store::checks::invalid_error;
use tidegate_store::{RecordPage, Result};

use super::record_value::RecordHead;
use crate::errors::unusable;
use crate::keys::RECORD_SHARDS;
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, reply};

/// The fewest and the most records that one script scans.
const AT_ONCE: (usize, usize) = (16, 128);
/// The records that one page scans, however few of them are live.
const LOOKED_AT_MAX: usize = 1_000;

/// The position of a record in the index of its shard. Records of one score are in the order of
/// their bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IndexPosition {
    score: u64,
    key: String,
}

/// The position of a listing. Its text form is the cursor of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordCursor {
    shard: u64,
    last: Option<IndexPosition>,
}

impl fmt::Display for RecordCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.last {
            Some(IndexPosition { score, key }) => write!(f, "{}:{score}:{key}", self.shard),
            None => write!(f, "{}", self.shard),
        }
    }
}

impl RecordCursor {
    const START: Self = Self { shard: 0, last: None };

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let shard = parts.next()?.parse().ok()?;
        let last = match (parts.next(), parts.next()) {
            (Some(score), Some(key)) => {
                Some(IndexPosition { score: score.parse().ok()?, key: key.to_owned() })
            }
            (None, None) => None,
            _ => return None,
        };
        Some(Self { shard, last })
    }
}

impl RedisStore {
    pub(super) async fn page_of_records(&self, after: Option<&str>, most: usize) -> Result<RecordPage> {
        let walk = after.map_or(Some(RecordCursor::START), RecordCursor::parse);
        let mut walk = walk.ok_or_else(|| invalid_error("this is not a cursor of a list of records"))?;
        let now = self.time().await?;
        // Its record may have been removed; then those of its score are listed again.
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
                walk = RecordCursor { shard: walk.shard + 1, last: None };
                seen = None;
            }
        }
        Ok(page)
    }

    /// The next records of a shard, including expired ones.
    async fn records_behind(
        &self,
        walk: &RecordCursor,
        limit: usize,
    ) -> Result<Vec<(IndexPosition, Option<Record<usize>>)>> {
        let (score, key) = match &walk.last {
            Some(IndexPosition { score, key }) => (score.to_string(), &**key),
            None => (String::new(), ""),
        };
        let call = ScriptCall::new(&scripts::RECORD_LIST, [self.keys.record_index(walk.shard)])
            .with_arg(limit)
            .with_arg(self.keys.records(walk.shard))
            .with_arg(score)
            .with_arg(key);
        let answer =
            call.send(&self.connection).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        reply::list(answer)?.into_iter().map(row).collect()
    }
}

/// Parses a record with its position; `None` when it has been removed, or its claim is in progress.
fn row(value: Value) -> Result<(IndexPosition, Option<Record<usize>>)> {
    let (score, key, head, len): (u64, String, Vec<u8>, usize) = reply::parsed(value)?;
    Ok((IndexPosition { score, key }, RecordHead::parse(&head, len)?.map(|kept| kept.record)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_reads_what_it_wrote() {
        let place = IndexPosition { score: 7, key: "a:b::ü".to_owned() };
        for walk in [
            RecordCursor::START,
            RecordCursor { shard: 3, last: None },
            RecordCursor { shard: 15, last: Some(place) },
        ] {
            assert_eq!(RecordCursor::parse(&walk.to_string()), Some(walk));
        }
        for wrong in ["", "x", "1:", "1:2", "1:x:key", ":2:key"] {
            assert_eq!(RecordCursor::parse(wrong), None, "{wrong:?}");
        }
    }
}
