//! The bulk operations of one shop: started, run and completed by the clock, as many at once as
//! allowed. Their results are in `rows`.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_core::Time;

/// Most operations remembered per shop; the oldest are dropped.
const BULKS_MAX: usize = 1_000;

/// The kind of document that is run in bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkKind {
    /// A query.
    Query,
    /// A mutation for each row of a file.
    Mutation,
}

/// The stage of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkStage {
    /// Accepted.
    Created,
    /// Running.
    Running,
    /// Completed; the result is available.
    Completed,
    /// Being canceled.
    Canceling,
    /// Canceled.
    Canceled,
}

/// One operation.
#[derive(Clone, Debug)]
pub struct BulkRun {
    /// Its number.
    pub number: u64,
    /// Its kind.
    pub kind: BulkKind,
    /// The document.
    pub text: String,
    size: BulkSize,
    begun: Time,
    cancelled: Option<Time>,
}

/// The duration of an operation and the size of its result.
#[derive(Clone, Copy, Debug)]
pub struct BulkSize {
    /// How long it takes.
    pub takes: Duration,
    /// How many objects it returns.
    pub objects: u64,
    /// How many of them have no parent.
    pub roots: u64,
}

/// All operations of a shop.
#[derive(Debug, Default)]
pub struct BulkRuns {
    all: VecDeque<BulkRun>,
    started: u64,
}

impl BulkKind {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Mutation => "mutation",
        }
    }
}

impl BulkStage {
    /// Returns its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "CREATED",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Canceling => "CANCELING",
            Self::Canceled => "CANCELED",
        }
    }

    const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled)
    }
}

impl BulkRun {
    /// Returns its global id.
    #[must_use]
    pub fn id(&self) -> String {
        format!("gid://shopify/BulkOperation/{}", self.number)
    }

    /// Returns its stage. Accepting and canceling take a tenth of what running takes.
    #[must_use]
    pub fn stage(&self, now: Time) -> BulkStage {
        if let Some(cancelled) = self.cancelled {
            let stopped = cancelled.after(self.size.takes / 10);
            return if now >= stopped { BulkStage::Canceled } else { BulkStage::Canceling };
        }
        if now >= self.begun.after(self.size.takes) {
            BulkStage::Completed
        } else if now >= self.begun.after(self.size.takes / 10) {
            BulkStage::Running
        } else {
            BulkStage::Created
        }
    }

    /// Returns all fields. `url` is that of its result.
    #[must_use]
    pub fn fields(&self, url: &str, now: Time) -> Map<String, Value> {
        let stage = self.stage(now);
        let done = stage == BulkStage::Completed;
        let ended = match self.cancelled {
            Some(at) => at.after(self.size.takes / 10),
            None => self.begun.after(self.size.takes),
        };
        let counted = |objects: u64| if done { objects } else { 0 }.to_string();
        let facts = json!({
            "id": self.id(),
            "__typename": "BulkOperation",
            "type": self.kind.name().to_uppercase(),
            "status": stage.name(),
            "errorCode": null,
            "query": self.text,
            "createdAt": date(self.begun),
            "completedAt": stage.is_over().then(|| date(ended)),
            "objectCount": counted(self.size.objects),
            "rootObjectCount": counted(self.size.roots),
            "fileSize": null,
            "url": done.then_some(url),
            "partialDataUrl": null,
        });
        if let Value::Object(facts) = facts { facts } else { Map::new() }
    }
}

impl BulkRuns {
    /// Returns the ids of those of a kind that have not ended.
    #[must_use]
    pub fn running_ids(&self, kind: BulkKind, now: Time) -> Vec<String> {
        let busy = self.all.iter().filter(|bulk| bulk.kind == kind && !bulk.stage(now).is_over());
        busy.map(BulkRun::id).collect()
    }

    /// Starts an operation.
    pub fn start(&mut self, number: u64, kind: BulkKind, text: &str, size: BulkSize, now: Time) -> &BulkRun {
        if self.all.len() == BULKS_MAX {
            self.all.pop_back();
        }
        self.started += 1;
        let bulk = BulkRun { number, kind, text: text.to_owned(), size, begun: now, cancelled: None };
        self.all.push_front(bulk);
        &self.all[0]
    }

    /// Cancels an operation that has not ended; `None` when there is no such operation.
    pub fn cancel(&mut self, id: &str, now: Time) -> Option<&BulkRun> {
        let bulk = self.all.iter_mut().find(|bulk| bulk.id() == id)?;
        if !bulk.stage(now).is_over() {
            bulk.cancelled.get_or_insert(now);
        }
        Some(bulk)
    }

    /// Returns the operation with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&BulkRun> {
        self.all.iter().find(|bulk| bulk.id() == id)
    }

    /// Returns the newest operation of a kind.
    #[must_use]
    pub fn newest(&self, kind: BulkKind) -> Option<&BulkRun> {
        self.all.iter().find(|bulk| bulk.kind == kind)
    }

    /// Returns those that match a search such as `status:running operation_type:mutation`, newest
    /// first.
    pub fn search(&self, query: &str, now: Time) -> impl Iterator<Item = &BulkRun> {
        let terms: Vec<_> = query.split_whitespace().filter_map(|term| term.split_once(':')).collect();
        self.all.iter().filter(move |bulk| {
            terms.iter().all(|(name, value)| match *name {
                "status" => bulk.stage(now).name().eq_ignore_ascii_case(value),
                "operation_type" => bulk.kind.name().eq_ignore_ascii_case(value),
                "id" => bulk.id() == *value || bulk.number.to_string() == *value,
                _ => true,
            })
        })
    }

    /// Returns how many were started.
    #[must_use]
    pub const fn started(&self) -> u64 {
        self.started
    }

    /// Returns how many have not ended.
    #[must_use]
    pub fn running(&self, now: Time) -> u64 {
        self.all.iter().filter(|bulk| !bulk.stage(now).is_over()).count() as u64
    }
}

/// Formats a time of the simulator as a date; its clock starts with 2026 and has months of 28 days.
fn date(at: Time) -> String {
    let seconds = at.as_millis() / 1_000;
    let (day, hour, minute) = (1 + seconds / 86_400 % 28, seconds / 3_600 % 24, seconds / 60 % 60);
    format!("2026-01-{day:02}T{hour:02}:{minute:02}:{:02}Z", seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn size(millis: u64) -> BulkSize {
        BulkSize { takes: Duration::from_millis(millis), objects: 9, roots: 3 }
    }

    #[test]
    fn an_operation_goes_through_its_stages() {
        let mut bulks = BulkRuns::default();
        let bulk = bulks.start(7, BulkKind::Query, "{}", size(2_000), at(0)).clone();
        let stages = [0, 199, 200, 1_999, 2_000].map(|millis| bulk.stage(at(millis)).name());
        assert_eq!(stages, ["CREATED", "CREATED", "RUNNING", "RUNNING", "COMPLETED"]);
        assert_eq!(bulk.fields("u", at(1_999))["url"], Value::Null);
        assert_eq!(bulk.fields("u", at(2_000))["url"], "u");
        assert_eq!(bulk.fields("u", at(2_000))["objectCount"], "9");
        let stopped = bulks.cancel(&bulk.id(), at(1_000)).unwrap();
        let stages = [1_000, 1_199, 1_200, 9_999].map(|millis| stopped.stage(at(millis)).name());
        assert_eq!(stages, ["CANCELING", "CANCELING", "CANCELED", "CANCELED"]);
        assert!(bulks.cancel("gid://shopify/BulkOperation/8", at(0)).is_none());
    }

    /// LIM-3: queries and mutations are counted separately, and operations that have ended no
    /// longer count.
    #[test]
    fn lim_3_places_are_taken_until_an_operation_is_over() {
        let mut bulks = BulkRuns::default();
        bulks.start(1, BulkKind::Query, "{}", size(1_000), at(0));
        bulks.start(2, BulkKind::Mutation, "{}", size(1_000), at(0));
        assert_eq!(bulks.running_ids(BulkKind::Query, at(999)), ["gid://shopify/BulkOperation/1"]);
        assert!(bulks.running_ids(BulkKind::Query, at(1_000)).is_empty());
        assert_eq!((bulks.running(at(999)), bulks.running(at(1_000)), bulks.started()), (2, 0, 2));
        let found = |query, now| bulks.search(query, at(now)).map(|bulk| bulk.number).collect::<Vec<_>>();
        assert_eq!(found("status:running", 500), [2, 1]);
        assert_eq!(found("status:RUNNING operation_type:mutation", 500), [2]);
        assert_eq!((found("status:running", 1_000), found("id:1", 0)), (vec![], vec![1]));
    }
}
