//! A fault at one write, so that a caller can be killed at exactly that point. While it holds,
//! nothing proceeds.

use serde::{Deserialize, Serialize};

/// On which side of the effect the fault occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultTiming {
    /// The write does not happen.
    Before,
    /// The write happens, but gets no response.
    After,
}

/// What happens to the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultAction {
    /// It hangs, and so does every later call, until the fault is lifted; then they are cut.
    #[default]
    Hang,
    /// Its connection is cut, and later calls proceed.
    Cut,
}

/// Where to inject the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// The number of the write from now on; the next one is 1.
    pub write: u64,
    /// On which side of it.
    pub when: FaultTiming,
    /// What happens to the call.
    #[serde(default)]
    pub how: FaultAction,
}

/// The state of the fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FaultSwitch {
    /// The requested fault.
    order: Option<FaultRule>,
    /// How many writes arrived since.
    writes: u64,
    /// Whether the fault was reached.
    reached: bool,
}

impl FaultSwitch {
    /// Creates a switch for a fault.
    #[must_use]
    pub const fn new(order: FaultRule) -> Self {
        Self { order: Some(order), writes: 0, reached: false }
    }

    /// Returns whether the fault comes before the next write.
    #[must_use]
    pub fn is_next(&self) -> bool {
        let due = |order: FaultRule| order.when == FaultTiming::Before && order.write == self.writes + 1;
        !self.reached && self.order.is_some_and(due)
    }

    /// Returns whether all calls hang.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.reached && self.order.is_some_and(|order| order.how == FaultAction::Hang)
    }

    /// Counts a write; returns the fault when this is the one.
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
