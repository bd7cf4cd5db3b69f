//! A cache of responses that were stored or served recently, so that a retry costs neither the
//! writer nor the disk. Only the writer's thread changes it, after a commit and before it replies:
//! the cache always agrees with the file.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tidegate_core::Time;
use tidegate_core::shared::record::{self, Record, RecordStage};

/// The bytes of cached responses.
const BYTES_MAX: usize = 16 << 20;
/// The bytes that a response counts in addition to its own.
const OVERHEAD: usize = 256;

#[derive(Default)]
struct CacheState {
    /// The records, each with its sequence number.
    records: HashMap<String, (u64, Record<Bytes>)>,
    /// Sequence numbers and names in order of insertion; entries of removed records may remain.
    order: VecDeque<(u64, String)>,
    came: u64,
    bytes: usize,
}

/// Recently completed records.
#[derive(Default)]
pub(super) struct RecordCache(Mutex<CacheState>);

impl RecordCache {
    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the completed record under a key, if it is cached and has not expired.
    pub(super) fn completed(&self, key: &str, now: Time) -> Option<Record<Bytes>> {
        self.lock()
            .records
            .get(key)
            .map(|(_, record)| record)
            .filter(|record| record::is_live(record, now))
            .cloned()
    }

    /// Updates the cache with the current record of a key.
    pub(super) fn update(&self, key: &str, record: Option<&Record<Bytes>>) {
        let mut shelf = self.lock();
        match record {
            Some(record) if matches!(record.stage, RecordStage::Completed(_)) => shelf.put(key, record),
            _ => shelf.remove(key),
        }
    }

    /// Drops expired records, as a sweep of the file did.
    pub(super) fn drop_expired(&self, now: Time) {
        let mut shelf = self.lock();
        let gone: Vec<String> = shelf
            .records
            .iter()
            .filter(|(_, (_, record))| record::is_sweepable(record, now))
            .map(|(key, _)| key.clone())
            .collect();
        gone.iter().for_each(|key| shelf.remove(key));
    }
}

impl CacheState {
    fn put(&mut self, key: &str, record: &Record<Bytes>) {
        if self.records.contains_key(key) {
            return;
        }
        self.came += 1;
        self.bytes += cost(key, record);
        self.records.insert(key.to_owned(), (self.came, record.clone()));
        self.order.push_back((self.came, key.to_owned()));
        while self.bytes > BYTES_MAX
            && let Some((number, oldest)) = self.order.pop_front()
        {
            if self.is_current(number, &oldest) {
                self.remove(&oldest);
            }
        }
        // Entries of removed records must not accumulate.
        if self.order.len() > 2 * self.records.len() + 64 {
            let mut order = std::mem::take(&mut self.order);
            order.retain(|(number, name)| self.is_current(*number, name));
            self.order = order;
        }
    }

    fn is_current(&self, number: u64, name: &str) -> bool {
        self.records.get(name).is_some_and(|(came, _)| *came == number)
    }

    fn remove(&mut self, key: &str) {
        if let Some((_, record)) = self.records.remove(key) {
            self.bytes -= cost(key, &record);
        }
    }
}

fn cost(key: &str, record: &Record<Bytes>) -> usize {
    let answer = match &record.stage {
        RecordStage::Completed(answer) => answer.len(),
        RecordStage::Processing { .. } => 0,
    };
    key.len() * 2 + answer + OVERHEAD
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_core::shared::record::{HolderToken, OnLapse};

    use super::*;

    fn record(len: usize) -> Record<Bytes> {
        Record {
            fingerprint: [0; 32],
            token: HolderToken([0; 16]),
            created: Time::ZERO,
            expires: Time::ZERO.after(Duration::from_secs(60)),
            on_lapse: OnLapse::TakeOver,
            stage: RecordStage::Completed(vec![0; len].into()),
        }
    }

    fn counts(recent: &RecordCache) -> (usize, usize) {
        let shelf = recent.lock();
        (shelf.bytes, shelf.records.len())
    }

    /// IDM-11: however many responses are stored, the cache is bounded, and evicts the oldest
    /// first.
    #[test]
    fn what_is_at_hand_is_bounded() {
        let recent = RecordCache::default();
        let large = record(1 << 20);
        for nth in 0..100 {
            recent.update(&format!("k{nth}"), Some(&large));
        }
        let (bytes, count) = counts(&recent);
        assert!(bytes <= BYTES_MAX && count == 15, "{bytes} bytes of {count}");
        assert!(
            recent.completed("k99", Time::ZERO).is_some() && recent.completed("k0", Time::ZERO).is_none()
        );
        for _ in 0..1_000 {
            recent.update("k", Some(&record(1)));
            recent.update("k", None);
        }
        let names = recent.lock().order.len();
        assert!(names < 200, "{names} names");
    }

    #[test]
    fn what_has_expired_is_not_given() {
        let recent = RecordCache::default();
        recent.update("k", Some(&record(1)));
        let last = Time::ZERO.after(Duration::from_secs(60));
        assert!(recent.completed("k", last).is_some(), "the last moment is part of its time");
        let later = last.after(Duration::from_micros(1));
        assert!(recent.completed("k", later).is_none());
        recent.drop_expired(later);
        assert_eq!(counts(&recent), (0, 0));
    }
}
