//! What a simulator counted, in the one form that all of them answer at `/_sim/stats`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The counts of a simulator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Every call, refused ones included; calls to `/_sim` are not counted.
    pub calls: u64,
    /// Calls that had an effect.
    pub writes: u64,
    /// Calls that were told to wait.
    pub throttled: u64,
    /// Calls beyond what the limit allowed.
    pub overstepped: u64,
    /// Effects that had happened before. Only of calls whose repeating does more than the first did: a PUT twice is
    /// none.
    pub duplicates: u64,
    /// What would be on the bill, in the simulator's own unit.
    pub billed: u64,
    /// What exists now, by kind.
    pub objects: BTreeMap<String, u64>,
}
