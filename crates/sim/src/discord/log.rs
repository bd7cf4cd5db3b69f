//! The writes that happened, in order, with the reason that was given. In bounded memory: the oldest are dropped.

use std::collections::VecDeque;

use serde::Serialize;

/// Most writes that are kept.
const LOG_MAX: usize = 100_000;
/// Most writes in one page.
const PAGE_MAX: usize = 10_000;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GuildWrite {
    /// Its place in the order of writes; the first is 1.
    pub n: u64,
    /// The guild.
    pub guild: String,
    /// The route.
    pub route: String,
    /// What was written.
    pub id: String,
    /// Why, as the caller says.
    pub reason: Option<String>,
    /// Whether it was done by hand.
    pub by_hand: bool,
}

/// The writes.
#[derive(Debug, Default)]
pub struct GuildWriteLog(VecDeque<GuildWrite>);

impl GuildWriteLog {
    /// One more.
    pub fn push(&mut self, entry: GuildWrite) {
        if self.0.len() == LOG_MAX {
            self.0.pop_front();
        }
        self.0.push_back(entry);
    }

    /// The number of the last one.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.0.back().map_or(0, |entry| entry.n)
    }

    /// What came after the write number `after`.
    #[must_use]
    pub fn page(&self, after: u64) -> Vec<&GuildWrite> {
        let start = self.0.partition_point(|entry| entry.n <= after);
        self.0.range(start..).take(PAGE_MAX).collect()
    }
}
