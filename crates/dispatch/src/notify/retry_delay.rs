//! When a notification is sent again: after seconds at first, then after hours. What the receiver
//! asks for counts if it is longer. Notifications that failed together do not all return together.

use std::time::Duration;

use tidegate_core::fingerprint::Fingerprint;

use super::ATTEMPTS;

/// The wait after each attempt, in seconds: eleven hours in all.
const WAITS_S: [u64; ATTEMPTS as usize - 1] = [5, 30, 120, 600, 1_800, 3_600, 10_800, 21_600];
/// Up to a tenth is added, by chance.
const JITTER_PART: u32 = 10;
/// Longest wait that a receiver may ask for.
const ASKED_MAX: Duration = Duration::from_secs(6 * 3_600);

/// How long to wait after this attempt; the first is 1.
pub(super) fn retry_delay(id: &str, attempt: u16, asked: Option<Duration>) -> Duration {
    let index = usize::from(attempt.saturating_sub(1)).min(WAITS_S.len() - 1);
    let wait = Duration::from_secs(WAITS_S[index]);
    // The same for the same attempt, so that nothing has to be drawn.
    let drawn =
        Fingerprint::of("notification jitter").part(id.as_bytes()).part(&attempt.to_be_bytes()).short();
    let thousandths = u32::try_from(drawn % 1_000).unwrap_or_default();
    let jitter = wait / JITTER_PART * thousandths / 1_000;
    (wait + jitter).max(asked.unwrap_or_default().min(ASKED_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_are_spread() {
        let waits: Vec<Duration> = (1..ATTEMPTS).map(|attempt| retry_delay("a", attempt, None)).collect();
        assert!(waits.is_sorted() && waits[0] >= Duration::from_secs(5), "{waits:?}");
        let all: Duration = waits.iter().sum();
        let hour = Duration::from_secs(3_600);
        assert!(all > 10 * hour && all < 13 * hour, "{all:?}");
        for (wait, seconds) in waits.iter().zip(WAITS_S) {
            assert!(*wait <= Duration::from_secs(seconds).mul_f64(1.1), "{wait:?}");
        }
        assert_eq!(retry_delay("a", 3, None), waits[2]);
        assert_ne!(retry_delay("b", 3, None), waits[2]);
        assert!(retry_delay("a", 1_000, None) >= Duration::from_secs(21_600));
    }

    #[test]
    fn a_receiver_may_ask_for_more_within_bounds() {
        let minute = Duration::from_secs(60);
        assert_eq!(retry_delay("a", 1, Some(minute)), minute);
        assert!(retry_delay("a", 4, Some(minute)) >= 10 * minute);
        assert_eq!(retry_delay("a", 1, Some(Duration::MAX)), ASKED_MAX);
    }
}
