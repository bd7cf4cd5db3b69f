//! Pages of operations, newest first. A page ends when it is full or enough rows were scanned;
//! operations that did not succeed have an index of their own.

use tidegate_core::bounds::LIST_SCANNED_MAX;
use tidegate_core::id::Partition;
use tidegate_core::{EndState, Seq, State};
use tidegate_store::Result;
use tidegate_store::log::{StoredPage, StoredQuery};

use crate::errors::nothing_changed;
use crate::session::RetrySafety;
use crate::{PostgresStore, rows};

/// `edge` is the first row that is no longer scanned.
const NEWEST: &str = "
WITH edge AS MATERIALIZED (
    SELECT seq FROM operations WHERE partition = $1 AND seq <= $2 ORDER BY seq DESC OFFSET $3 LIMIT 1
), found AS (
    SELECT o.seq, o.at, o.grp, o.kind, o.key, o.envelope, ''::bytea AS payload,
        r.at AS ended_at, r.state, r.attempt, r.fault_class, r.fault, ''::bytea AS body
    FROM operations AS o
        LEFT JOIN LATERAL (SELECT * FROM results WHERE partition = $1 AND seq = o.seq OFFSET 0) AS r ON true
    WHERE o.partition = $1 AND o.seq <= $2 AND o.seq > coalesce((SELECT seq FROM edge), -1)
        AND ($4::text IS NULL OR o.grp = $4) AND ($5::text IS NULL OR o.kind = $5)
        AND ($6::text IS NULL OR r.state = $6)
    ORDER BY o.seq DESC LIMIT $7
)
SELECT found.*, edge.seq AS edge FROM found FULL JOIN edge ON false ORDER BY found.seq DESC NULLS LAST";

const UNSUCCESSFUL: &str = "
WITH edge AS MATERIALIZED (
    SELECT seq FROM results WHERE partition = $1 AND state <> 'succeeded' AND state = $6 AND seq <= $2
    ORDER BY seq DESC OFFSET $3 LIMIT 1
), found AS (
    SELECT o.seq, o.at, o.grp, o.kind, o.key, o.envelope, ''::bytea AS payload,
        r.at AS ended_at, r.state, r.attempt, r.fault_class, r.fault, ''::bytea AS body
    FROM results AS r
        CROSS JOIN LATERAL (SELECT * FROM operations WHERE partition = $1 AND seq = r.seq OFFSET 0) AS o
    WHERE r.partition = $1 AND r.state <> 'succeeded' AND r.state = $6 AND r.seq <= $2
        AND r.seq > coalesce((SELECT seq FROM edge), -1)
        AND ($4::text IS NULL OR o.grp = $4) AND ($5::text IS NULL OR o.kind = $5)
    ORDER BY r.seq DESC LIMIT $7
)
SELECT found.*, edge.seq AS edge FROM found FULL JOIN edge ON false ORDER BY found.seq DESC NULLS LAST";

impl PostgresStore {
    /// Reads the page that a query selects.
    pub(crate) async fn page(&self, partition: Partition, query: &StoredQuery) -> Result<StoredPage> {
        let mut page = StoredPage::default();
        let Some(first) = query.before.map_or(Some(u64::MAX), |before| before.0.checked_sub(1)) else {
            return Ok(page);
        };
        let first = i64::try_from(first).unwrap_or(i64::MAX);
        let ended = query.ended.map(|ended| State::from(ended).as_str());
        let statement = match query.ended {
            Some(EndState::Failed | EndState::Canceled) => UNSUCCESSFUL,
            Some(EndState::Succeeded) | None => NEWEST,
        };
        let wanted = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
        let found = self
            .sessions
            .rows(RetrySafety::Harmless, statement, |list| {
                list.bind(i32::from(partition))
                    .bind(first)
                    .bind(LIST_SCANNED_MAX as i64)
                    .bind(query.group.as_deref())
                    .bind(query.kind.as_deref())
                    .bind(ended)
                    .bind(wanted)
            })
            .await?;
        let wrong = |cause| nothing_changed(&self.sessions.place, &cause);
        for row in &found {
            if let Some(edge) = sqlx::Row::try_get::<Option<i64>, _>(row, "edge").map_err(wrong)? {
                page.next = Some(Seq(edge.cast_unsigned() + 1));
            } else {
                page.items.push(rows::stored(row).map_err(wrong)?);
            }
        }
        if page.items.len() > query.limit {
            page.items.truncate(query.limit);
            page.next = page.items.last().map(|last| last.operation.seq).or(query.before);
        }
        Ok(page)
    }
}
