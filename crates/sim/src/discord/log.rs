//! The log of writes, in order, with their reasons. In bounded memory: the oldest are dropped.

use std::collections::VecDeque;

use serde::Serialize;

/// Most writes kept.
const LOG_MAX: usize = 100_000;
/// Most writes per page.
const PAGE_MAX: usize = 10_000;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GuildWrite {
    /// Its number in the order of writes; the first is 1.
    pub n: u64,
    /// The guild.
    pub guild: String,
    /// The route.
    pub route: String,
    /// The id of the object written.
    pub id: String,
    /// The reason that the caller gave.
    pub reason: Option<String>,
    /// Whether the operator made it.
    pub by_hand: bool,
}

/// The writes.
#[derive(Debug, Default)]
pub struct GuildWriteLog(VecDeque<GuildWrite>);

impl GuildWriteLog {
    /// Appends a write.
    pub fn push(&mut self, entry: GuildWrite) {
        if self.0.len() == LOG_MAX {
            self.0.pop_front();
        }
        self.0.push_back(entry);
    }

    /// Returns the number of the last write.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.0.back().map_or(0, |entry| entry.n)
    }

    /// Returns the writes after number `after`.
    #[must_use]
    pub fn page(&self, after: u64) -> Vec<&GuildWrite> {
        let start = self.0.partition_point(|entry| entry.n <= after);
        self.0.range(start..).take(PAGE_MAX).collect()
    }
}
