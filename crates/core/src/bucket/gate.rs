//! A limit without a budget: a gate is open until the upstream says to wait. After that one call
//! goes first, and each success doubles the number allowed in flight, so that a reopened gate sees
//! no burst.

use crate::bucket::Readiness;

/// Above this many concurrent calls the gate is fully open.
const OPEN_ABOVE: u32 = 1_024;

/// The state of a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// The number of calls allowed in flight; 0 means unlimited.
    pub at_once: u32,
}

impl Gate {
    /// Whether another call may start.
    #[must_use]
    pub const fn ready(&self, in_flight: u32) -> Readiness {
        if self.at_once == 0 || in_flight < self.at_once { Readiness::Now } else { Readiness::AfterAnswer }
    }

    /// Closes the gate because the upstream said to wait.
    pub const fn close(&mut self) {
        self.at_once = 1;
    }

    /// Widens the gate after a successful call.
    pub const fn widen(&mut self) {
        if self.at_once > 0 {
            self.at_once *= 2;
            if self.at_once > OPEN_ABOVE {
                self.at_once = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-13: after a 429 the load returns in steps, not as a burst.
    #[test]
    fn lim_13_a_gate_widens_step_by_step() {
        let mut gate = Gate::default();
        assert_eq!(gate.ready(1_000_000), Readiness::Now);
        gate.close();
        assert_eq!(gate.ready(0), Readiness::Now);
        assert_eq!(gate.ready(1), Readiness::AfterAnswer);
        gate.widen();
        assert_eq!(gate.ready(1), Readiness::Now);
        assert_eq!(gate.ready(2), Readiness::AfterAnswer);
        for _ in 0..10 {
            gate.widen();
        }
        assert_eq!(gate, Gate::default());
    }
}
