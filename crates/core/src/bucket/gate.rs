//! No budget at all: a gate is open until the upstream says to wait. After that one call goes first, and with each
//! success twice as many may be under way, so that a reopened gate is not stormed.

use crate::bucket::Readiness;

/// Above this many at once the gate is simply open.
const OPEN_ABOVE: u32 = 1_024;

/// The state of a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// How many may be under way; 0 is any number.
    pub at_once: u32,
}

impl Gate {
    /// Whether one more may go.
    #[must_use]
    pub const fn ready(&self, in_flight: u32) -> Readiness {
        if self.at_once == 0 || in_flight < self.at_once { Readiness::Now } else { Readiness::AfterAnswer }
    }

    /// The upstream said to wait.
    pub const fn close(&mut self) {
        self.at_once = 1;
    }

    /// A call went through.
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

    /// LIM-13: after a 429 the load comes back in steps, not as a storm.
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
