//! The encoding of a record in Redis: one string, a head of fixed size followed by the response
//! when there is one. Decides nothing. The layout is frozen by a test; a value with another first
//! byte is not read.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::shared::record::{ABANDONED_RETENTION, HolderToken, OnLapse, Record, RecordStage};
use tidegate_store::Result;

use crate::errors::unreadable;

/// The length of a head, in bytes.
pub(super) const HEAD_LEN: usize = 75;
/// The layout version, which is the first byte.
const LAYOUT: u8 = 1;
/// The largest score of a sorted set that is exact.
const SCORE_MAX: u64 = (1 << 53) - 1;

/// The second byte: in flight.
const IN_WORK: u8 = 1;
/// It expired in flight, and a sweep has marked it: in the index it is at the end of its grace day.
const LATE: u8 = 2;
/// The response follows the head.
const COMPLETED: u8 = 3;

/// A record without its response, of which the size is known, and how it is indexed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordHead {
    pub(super) record: Record<usize>,
    /// Whether a sweep has marked that it expired unfinished.
    pub(super) is_late: bool,
}

impl RecordHead {
    /// Parses a value, of which `head` is the beginning and `len` the whole length; `None` when it
    /// is empty.
    pub(super) fn parse(head: &[u8], len: usize) -> Result<Option<Self>> {
        if head.is_empty() {
            return Ok(None);
        }
        let kept = Self::decode(head, len);
        kept.map(Some)
            .ok_or_else(|| unreadable("an idempotency record in Redis is not as this program writes it"))
    }

    fn decode(head: &[u8], len: usize) -> Option<Self> {
        let ([LAYOUT, stage], rest) = head.split_first_chunk()? else { return None };
        let (token, rest) = rest.split_first_chunk()?;
        let (fingerprint, rest) = rest.split_first_chunk()?;
        let (created, rest) = rest.split_first_chunk()?;
        let (expires, rest) = rest.split_first_chunk()?;
        let (until, rest) = rest.split_first_chunk()?;
        let time = |bytes: &[u8; 8]| Time::from_micros(u64::from_be_bytes(*bytes));
        let record = Record {
            fingerprint: *fingerprint,
            token: HolderToken(*token),
            created: time(created),
            expires: time(expires),
            on_lapse: match rest.first()? {
                0 => OnLapse::TakeOver,
                1 => OnLapse::Hold,
                _ => return None,
            },
            stage: match *stage {
                IN_WORK | LATE => RecordStage::Processing { until: time(until) },
                COMPLETED => RecordStage::Completed(len.checked_sub(HEAD_LEN)?),
                _ => return None,
            },
        };
        Some(Self { record, is_late: *stage == LATE })
    }

    /// Encodes the head.
    pub(super) fn encode(&self) -> Vec<u8> {
        let Record { fingerprint, token, created, expires, on_lapse, stage } = &self.record;
        let (stage, until) = match stage {
            RecordStage::Processing { until } => (if self.is_late { LATE } else { IN_WORK }, *until),
            RecordStage::Completed(_) => (COMPLETED, Time::ZERO),
        };
        let mut head = Vec::with_capacity(HEAD_LEN);
        head.extend([LAYOUT, stage]);
        head.extend(token.0);
        head.extend(fingerprint);
        for time in [*created, *expires, until] {
            head.extend(time.as_micros().to_be_bytes());
        }
        head.push(u8::from(*on_lapse == OnLapse::Hold));
        head
    }

    /// The record that follows this one after a step, and its score if the index must change.
    pub(super) fn followed_by(before: Option<&Self>, record: Record<usize>) -> (Self, Option<u64>) {
        let is_in_work = matches!(record.stage, RecordStage::Processing { .. });
        let is_same = |before: &&Self| {
            let before = &before.record;
            (before.created, before.expires) == (record.created, record.expires)
        };
        match before.filter(is_same).filter(|_| is_in_work) {
            Some(before) if !before.is_late => (Self { record, is_late: false }, None),
            before => {
                let next = Self { record, is_late: before.is_some() };
                let due = next.due();
                (next, Some(due))
            }
        }
    }

    /// The record that follows when a sweep found it too early: one that expired unfinished is
    /// marked as late.
    pub(super) fn put_off(&self, now: Time) -> (Self, u64) {
        let is_in_work = matches!(self.record.stage, RecordStage::Processing { .. });
        let is_late = self.is_late || (is_in_work && self.record.expires < now);
        let next = Self { record: self.record.clone(), is_late };
        let due = next.due();
        (next, due)
    }

    /// When a sweep looks at it: just after its expiry; for a late one, when its grace day is over
    /// and it is not in flight.
    pub(super) fn due(&self) -> u64 {
        let Record { expires, stage, .. } = &self.record;
        let due = match stage {
            RecordStage::Processing { until } if self.is_late => {
                expires.after(ABANDONED_RETENTION).max(*until)
            }
            _ => expires.after(Duration::from_micros(1)),
        };
        due.as_micros().min(SCORE_MAX)
    }
}

/// The prefix of a record held by this holder, unless it is late.
pub(super) fn held_prefix(holder: HolderToken) -> [u8; 18] {
    let mut start = [0; 18];
    start[..2].copy_from_slice(&[LAYOUT, IN_WORK]);
    start[2..].copy_from_slice(&holder.0);
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(stage: RecordStage<usize>) -> RecordHead {
        let record = Record {
            fingerprint: [0xaa; 32],
            token: HolderToken([0xbb; 16]),
            created: Time::from_micros(0x0102_0304_0506_0708),
            expires: Time::from_micros(0x1112_1314_1516_1718),
            on_lapse: OnLapse::Hold,
            stage,
        };
        RecordHead { record, is_late: false }
    }

    fn in_work() -> RecordHead {
        sample(RecordStage::Processing { until: Time::from_micros(0x2122_2324_2526_2728) })
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The layout is on users' servers: a change of these bytes is a new layout.
    #[test]
    fn the_layout_is_as_it_was() {
        let (token, print) = ("bb".repeat(16), "aa".repeat(32));
        let times = "01020304050607081112131415161718";
        let kept = in_work();
        assert_eq!(hex(&kept.encode()), format!("0101{token}{print}{times}212223242526272801"));
        let late = RecordHead { is_late: true, ..kept.clone() };
        assert_eq!(hex(&late.encode()), format!("0102{token}{print}{times}212223242526272801"));
        let completed = sample(RecordStage::Completed(5));
        assert_eq!(hex(&completed.encode()), format!("0103{token}{print}{times}000000000000000001"));
        assert_eq!(completed.encode().len(), HEAD_LEN);
        assert!(kept.encode().starts_with(&held_prefix(kept.record.token)));
    }

    #[test]
    fn what_was_written_is_read() {
        let late = RecordHead { is_late: true, ..in_work() };
        for kept in [in_work(), late, sample(RecordStage::Completed(0)), sample(RecordStage::Completed(9))] {
            let len = if let RecordStage::Completed(len) = kept.record.stage { len } else { 0 };
            assert_eq!(RecordHead::parse(&kept.encode(), HEAD_LEN + len).unwrap(), Some(kept));
        }
        assert_eq!(RecordHead::parse(b"", 0).unwrap(), None);
    }

    #[test]
    fn what_is_not_a_record_is_unreadable() {
        let head = in_work().encode();
        let with = |place: usize, byte: u8| {
            let mut head = head.clone();
            head[place] = byte;
            head
        };
        for wrong in
            [with(0, 2), with(1, 0), with(1, 4), with(74, 2), head[..74].to_vec(), vec![1], vec![1, 1]]
        {
            assert!(RecordHead::parse(&wrong, wrong.len()).is_err(), "{wrong:?}");
        }
    }

    /// IDM-6: a sweep looks at a record when it expires, and a day later at one that was in flight
    /// then.
    #[test]
    fn idm_6_a_late_record_is_due_a_day_later_until_it_is_completed() {
        let work = in_work();
        let expires = work.record.expires;
        let renewed = |until| Record { stage: RecordStage::Processing { until }, ..work.record.clone() };
        assert_eq!(
            RecordHead::followed_by(None, work.record.clone()).1,
            Some(SCORE_MAX),
            "as late as can be told"
        );
        let mut early = work.clone();
        early.record.expires = Time::from_micros(500);
        let (early, due) = early.put_off(Time::from_micros(500));
        assert_eq!((early.is_late, due), (false, 501));
        let (late, due) = early.put_off(Time::from_micros(501));
        assert!(late.is_late);
        let (RecordStage::Processing { until }, day) = (&late.record.stage, ABANDONED_RETENTION) else {
            panic!("in work")
        };
        assert_eq!(due, until.max(&Time::from_micros(500).after(day)).as_micros().min(SCORE_MAX));
        assert_eq!(RecordHead::followed_by(Some(&work), renewed(expires)).1, None, "the index stays");
        let completed = Record { stage: RecordStage::Completed(3), ..late.record.clone() };
        let (completed, due) = RecordHead::followed_by(Some(&late), completed);
        assert_eq!((completed.is_late, due), (false, Some(501)));
    }

    /// The scripts know these figures too.
    #[test]
    fn scripts_know_the_layout() {
        let range = format!("0, {})", HEAD_LEN - 1);
        for script in [
            include_str!("../scripts/record_complete.lua"),
            include_str!("../scripts/record_swap.lua"),
            include_str!("../scripts/record_list.lua"),
        ] {
            assert!(script.contains(&range), "{range} in {script}");
        }
        let completed = format!("'\\{LAYOUT}\\{COMPLETED}'");
        assert!(include_str!("../scripts/record_complete.lua").contains(&completed), "{completed}");
    }
}
