//! A hydration window: while one is open for a key, nobody asks again, unless for more than it will bring.

use std::time::Duration;

use crate::time::Time;

/// A window that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HydrationWindow {
    /// How much was asked for; more is a higher number.
    pub level: u8,
    /// Closes then.
    pub until: Time,
}

/// Whether the caller is the one who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenWindowOutcome {
    /// Ask: no window was open, or it would have brought less.
    Ask(HydrationWindow),
    /// Wait: somebody asked already.
    Wait(HydrationWindow),
}

/// Opens a window, raises the one that is open, or leaves it.
#[must_use]
pub fn open(
    state: Option<HydrationWindow>,
    level: u8,
    now: Time,
    ttl: Duration,
) -> (HydrationWindow, OpenWindowOutcome) {
    match state.filter(|window| window.until > now) {
        Some(window) if window.level >= level => (window, OpenWindowOutcome::Wait(window)),
        _ => {
            let window = HydrationWindow { level, until: now.after(ttl) };
            (window, OpenWindowOutcome::Ask(window))
        }
    }
}

/// The window that is open now.
#[must_use]
pub fn peek(state: Option<HydrationWindow>, now: Time) -> Option<HydrationWindow> {
    state.filter(|window| window.until > now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_asks_and_a_higher_level_asks_once_more() {
        let (now, ttl) = (Time::from_millis(10), Duration::from_millis(5));
        let (first, answer) = open(None, 1, now, ttl);
        assert_eq!(answer, OpenWindowOutcome::Ask(first));
        assert_eq!(open(Some(first), 1, now, ttl).1, OpenWindowOutcome::Wait(first));
        let (raised, answer) = open(Some(first), 2, now, ttl);
        assert_eq!(answer, OpenWindowOutcome::Ask(raised));
        assert_eq!(open(Some(raised), 1, now, ttl).1, OpenWindowOutcome::Wait(raised));
        let later = now.after(ttl);
        assert_eq!(peek(Some(raised), later), None);
        assert!(matches!(open(Some(raised), 1, later, ttl).1, OpenWindowOutcome::Ask(_)));
    }
}
