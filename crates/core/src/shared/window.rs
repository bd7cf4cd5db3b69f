//! A hydration window: while one is open for a key, no one requests the data again, unless they
//! want more than the window will bring.

use std::time::Duration;

use crate::time::Time;

/// An open window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HydrationWindow {
    /// How much was requested; a higher number means more.
    pub level: u8,
    /// When the window closes.
    pub until: Time,
}

/// Whether the caller should send the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenWindowOutcome {
    /// Send the request: no window was open, or the open one would have brought less.
    Ask(HydrationWindow),
    /// Wait: another caller already sent the request.
    Wait(HydrationWindow),
}

/// Opens a window, raises the level of the open one, or leaves it unchanged.
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
        assert!(matches!(open(Some(raised), 1, later, ttl).1, OpenWindowOutcome::Ask(_)));
    }
}
