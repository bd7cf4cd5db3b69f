//! A schedule within the limits, simulated and not executed: whatever can be sent is sent, the call
//! with the longest remaining chain first. It proves that a time can be reached, not that none is
//! shorter.

use std::collections::HashMap;
use std::time::Duration;

use tidegate_sim::discord::limits::{DiscordLimits, GLOBAL};
use tidegate_sim::discord::window::WindowLimit;

use super::calls::Call;

/// A window that starts with its first call.
#[derive(Clone, Copy, Default)]
struct Window {
    began: Duration,
    used: u64,
}

impl Window {
    /// Returns when a call that is ready now may be sent.
    fn free(&self, figure: WindowLimit, now: Duration) -> Duration {
        let end = self.began + figure.window;
        if self.used < figure.calls { now } else { now.max(end) }
    }

    fn take(&mut self, figure: WindowLimit, now: Duration) {
        if self.used == 0 || self.began + figure.window <= now {
            *self = Self { began: now, used: 0 };
        }
        self.used += 1;
    }
}

/// Returns when the last response has arrived. `behind` is the remaining time after each call.
pub(super) fn greedy_duration(
    calls: &[Call],
    behind: &[Duration],
    limits: &DiscordLimits,
    latency: Duration,
) -> Duration {
    let mut order: Vec<usize> = (0..calls.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(behind[*at]));
    let mut answered: Vec<Option<Duration>> = vec![None; calls.len()];
    let mut windows: HashMap<(&str, &str), Window> = HashMap::new();
    let mut now = Duration::ZERO;
    while !order.is_empty() {
        let mut next = Duration::MAX;
        order.retain(|at| {
            let call = &calls[*at];
            // A call that is not sent yet is checked again after another one was sent.
            let needed = call.after.iter().map(|need| answered[*need]).collect::<Option<Vec<_>>>();
            let Some(needed) = needed else { return true };
            let ready = needed.into_iter().max().unwrap_or_default();
            let own = call.limit.as_ref().map(|(limit, whose)| (*limit, whose.as_str()));
            let keys: Vec<_> = [Some((GLOBAL, "")), own].into_iter().flatten().collect();
            let free = |key: &(&str, &str)| windows.get(key).map_or(now, |w| w.free(limits.of(key.0), now));
            let at_once = keys.iter().map(free).max().unwrap_or(now).max(ready);
            if at_once > now {
                next = next.min(at_once);
                return true;
            }
            keys.into_iter().for_each(|key| windows.entry(key).or_default().take(limits.of(key.0), now));
            answered[*at] = Some(now + latency);
            next = next.min(now + latency);
            false
        });
        now = next;
    }
    answered.into_iter().flatten().max().unwrap_or_default()
}
