//! Costs of calls on their way to an archive: a list of notes, one for each append with costs,
//! written by the append's own script. A note is the append and the costs as JSON: `17
//! [[1780000000000000,"op_…",3,0,"acme/points",…]]`.

use std::borrow::Cow;

use redis::cmd;
use serde::{Deserialize, Serialize};
use tidegate_core::id::Partition;
use tidegate_core::{Fence, Time};
use tidegate_store::Result;
use tidegate_store::archive_queue::CostBatch;
use tidegate_store::costs::Cost;
use tidegate_store::log::{Lsn, Ownership};

use crate::errors::{undecided, unreadable, unusable};
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, log, reply};

/// The notes that are read at once: each has as many costs as an append may.
const NOTES_AT_ONCE: usize = 16;

/// A cost as it is noted: when, operation, claim, place, limit, shape, requested, actual, restore
/// rate. Notes of earlier versions end before the last.
#[derive(Serialize, Deserialize)]
struct Row<'a>(
    u64,
    String,
    u64,
    u8,
    #[serde(borrow)] Cow<'a, str>,
    #[serde(borrow)] Cow<'a, str>,
    u64,
    Option<u64>,
    #[serde(default)] Option<u64>,
);

impl<'a> Row<'a> {
    fn of(cost: &'a Cost) -> Self {
        let (limit, shape) = (Cow::Borrowed(&*cost.limit), Cow::Borrowed(&*cost.shape));
        let (at, operation) = (cost.at.as_micros(), cost.operation.to_string());
        let (requested, actual, rate) = (cost.requested, cost.actual, cost.restore_rate);
        Self(at, operation, cost.claim.0, cost.nth, limit, shape, requested, actual, rate)
    }

    fn read(self) -> Option<Cost> {
        let Self(at, operation, claim, nth, limit, shape, requested, actual, restore_rate) = self;
        Some(Cost {
            at: Time::from_micros(at),
            operation: operation.parse().ok()?,
            claim: Fence(claim),
            nth,
            limit: (*limit).into(),
            shape: (*shape).into(),
            requested,
            actual,
            restore_rate,
        })
    }
}

/// The note that is written with the append.
pub(crate) fn cost_note(costs: &[Cost]) -> Result<String> {
    let rows: Vec<Row<'_>> = costs.iter().map(Row::of).collect();
    let rows = serde_json::to_string(&rows)
        .map_err(|cause| unreadable("a note of costs cannot be written").with_source(cause))?;
    Ok(format!(" {rows}"))
}

fn parse_note(note: &str) -> Result<(Lsn, Vec<Cost>)> {
    let parts = || {
        let (lsn, rows) = note.split_once(' ')?;
        let rows: Vec<Row<'_>> = serde_json::from_str(rows).ok()?;
        let costs: Option<Vec<Cost>> = rows.into_iter().map(Row::read).collect();
        Some((Lsn(lsn.parse().ok()?), costs?))
    };
    parts().ok_or_else(|| unreadable("a note of costs is damaged"))
}

impl RedisStore {
    pub(crate) async fn read_costs(&self, partition: Partition, most: usize) -> Result<Option<CostBatch>> {
        let mut ask = cmd("LRANGE");
        ask.arg(self.keys.spent(partition)).arg(0).arg(NOTES_AT_ONCE - 1);
        let answer =
            self.connection.send(&ask).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let notes: Vec<String> = reply::parsed(answer)?;
        let mut spent: Option<CostBatch> = None;
        for note in &notes {
            let (lsn, costs) = parse_note(note)?;
            let spent = spent.get_or_insert_with(|| CostBatch { costs: Vec::new(), upto: lsn });
            spent.costs.extend(costs);
            spent.upto = spent.upto.max(lsn);
            if spent.costs.len() >= most {
                break;
            }
        }
        Ok(spent)
    }

    pub(crate) async fn trim_costs(&self, owner: Ownership, upto: Lsn) -> Result<()> {
        let keys = [self.keys.head(owner.partition), self.keys.spent(owner.partition)];
        let call = ScriptCall::new(&scripts::BOOKED, keys).with_arg(owner.epoch.0).with_arg(upto.0);
        let doing = format!("trim the cost queue of partition {}", owner.partition);
        let answer = call.send(&self.connection).await;
        let answer = answer.map_err(|failed| undecided(self.connection.name(), &doing, failed))?;
        let (word, mut parts) = reply::split_verdict(answer)?;
        if word == "ok" { Ok(()) } else { Err(log::fenced(owner, &reply::part_at::<String>(&mut parts, 0)?)) }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{OperationId, Seq};

    use super::*;

    #[test]
    fn costs_are_noted_and_read_and_damaged_notes_refused() {
        let cost = Cost {
            at: Time::from_micros(1_780_000_000_123_457),
            operation: OperationId::new(Time::from_millis(7), 3, Seq(9)),
            claim: Fence(4),
            nth: 1,
            limit: "acme/points".into(),
            shape: "Größe \"quoted\" #1".into(),
            requested: 52_000_000,
            actual: None,
            restore_rate: None,
        };
        let costs = vec![cost.clone(), Cost { actual: Some(7), restore_rate: Some(50), ..cost.clone() }];
        let note = format!("17{}", cost_note(&costs).unwrap());
        assert_eq!(parse_note(&note).unwrap(), (Lsn(17), costs));
        let id = cost.operation;
        let older =
            format!(r#"3 [[1780000000123457,"{id}",4,1,"acme/points","Größe \"quoted\" #1",52000000,null]]"#);
        assert_eq!(parse_note(&older).unwrap(), (Lsn(3), vec![cost]), "as an earlier version wrote it");
        for damaged in ["", "17", "17 ", "x []", "17 [[1]]", "17 {}", r#"17 [[1,"op",1,1,"l","s",1,null]]"#] {
            assert!(parse_note(damaged).is_err(), "{damaged:?}");
        }
    }
}
