//! The log of writes, in order, in bounded memory: the oldest are dropped, and a page shows it.

use std::collections::VecDeque;

use serde::Serialize;

/// Most writes kept.
pub const LOG_MAX: usize = 100_000;
/// Most writes per page.
pub const PAGE_MAX: usize = 10_000;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoggedWrite {
    /// Its number in the order of writes; the first is 1.
    pub n: u64,
    /// The HTTP method.
    pub method: String,
    /// The path.
    pub path: String,
    /// Its idempotency key, or else the `id` of its body.
    pub id: Option<String>,
    /// Whether it had happened before.
    pub duplicate: bool,
}

/// The writes.
#[derive(Debug, Default)]
pub struct WriteLog {
    entries: VecDeque<LoggedWrite>,
}

/// A page of the log.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct WriteLogPage<'a> {
    /// The writes, in order.
    pub writes: Vec<&'a LoggedWrite>,
    /// The cursor of the next page.
    pub next: u64,
    /// The oldest write that is still kept; 0 when there is none.
    pub oldest: u64,
}

impl WriteLog {
    /// Appends a write.
    pub fn push(&mut self, entry: LoggedWrite) {
        if self.entries.len() == LOG_MAX {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    /// Returns the writes after number `after`.
    #[must_use]
    pub fn page(&self, after: u64) -> WriteLogPage<'_> {
        let start = self.entries.partition_point(|entry| entry.n <= after);
        let writes: Vec<_> = self.entries.range(start..).take(PAGE_MAX).collect();
        let next = writes.last().map_or(after, |entry| entry.n);
        WriteLogPage { writes, next, oldest: self.entries.front().map_or(0, |entry| entry.n) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_one_another_and_memory_is_bounded() {
        let mut log = WriteLog::default();
        assert_eq!(log.page(7), WriteLogPage { writes: Vec::new(), next: 7, oldest: 0 });
        let last = LOG_MAX as u64 + 5;
        for n in 1..=last {
            log.push(LoggedWrite { n, method: "POST".into(), path: "/".into(), id: None, duplicate: false });
        }
        let (mut after, mut count) = (0, 0);
        loop {
            let page = log.page(after);
            assert!(page.writes.len() <= PAGE_MAX);
            assert_eq!(page.oldest, 6);
            if page.writes.is_empty() {
                break;
            }
            count += page.writes.len();
            after = page.next;
        }
        assert_eq!((count, after), (LOG_MAX, last));
    }
}
