//! A stop at one write, so that a caller can be killed at exactly that point. While it stands nothing goes on.

use serde::{Deserialize, Serialize};

/// On which side of the effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultTiming {
    /// The write does not happen.
    Before,
    /// It happens, and is not answered.
    After,
}

/// What becomes of the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultAction {
    /// It hangs, and so does every later call, until the stop is lifted; then they are cut.
    #[default]
    Hang,
    /// Its connection is cut, and later calls go on.
    Cut,
}

/// Where to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// At which write from now on; the next one is 1.
    pub write: u64,
    /// On which side of it.
    pub when: FaultTiming,
    /// How.
    #[serde(default)]
    pub how: FaultAction,
}

/// The stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaultSwitch {
    /// What was asked for.
    order: Option<FaultRule>,
    /// How many writes came since.
    writes: u64,
    /// Whether it was reached.
    reached: bool,
}

impl FaultSwitch {
    /// A fresh one.
    #[must_use]
    pub const fn new(order: FaultRule) -> Self {
        Self { order: Some(order), writes: 0, reached: false }
    }

    /// Whether the next write is the one before which to stop.
    #[must_use]
    pub fn is_next(&self) -> bool {
        let due = |order: FaultRule| order.when == FaultTiming::Before && order.write == self.writes + 1;
        !self.reached && self.order.is_some_and(due)
    }

    /// Whether nothing goes on.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.reached && self.order.is_some_and(|order| order.how == FaultAction::Hang)
    }

    /// A write; what becomes of it when it is the one.
    pub fn write(&mut self) -> Option<FaultRule> {
        let order = self.order.filter(|_| !self.reached)?;
        self.writes += 1;
        self.reached = self.writes == order.write;
        self.reached.then_some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_once_at_its_write() {
        let order = FaultRule { write: 2, when: FaultTiming::Before, how: FaultAction::Hang };
        let mut stop = FaultSwitch::new(order);
        assert_eq!((stop.is_next(), stop.write(), stop.is_next(), stop.holds()), (false, None, true, false));
        assert_eq!((stop.write(), stop.is_next(), stop.holds()), (Some(order), false, true));
        assert_eq!(stop.write(), None);
        let order = FaultRule { write: 1, when: FaultTiming::After, how: FaultAction::Cut };
        let mut stop = FaultSwitch::new(order);
        assert_eq!(
            (stop.is_next(), stop.write(), stop.holds(), stop.write()),
            (false, Some(order), false, None)
        );
    }
}
