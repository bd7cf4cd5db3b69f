//! The counts of a simulator, in the one form that all of them report at `/_sim/stats`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The counts of a simulator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Every call, including refused ones; calls to `/_sim` are not counted.
    pub calls: u64,
    /// Calls that had an effect.
    pub writes: u64,
    /// Calls that were throttled.
    pub throttled: u64,
    /// Calls beyond the limit.
    pub overstepped: u64,
    /// Effects that had happened before. Only for calls that are not idempotent: a PUT sent twice
    /// is no duplicate.
    pub duplicates: u64,
    /// Calls that arrived while another one to the same path was in progress. Only the plain HTTP
    /// API counts them.
    #[serde(default)]
    pub overlapping: u64,
    /// What would be billed, in the simulator's own unit.
    pub billed: u64,
    /// What exists now, by kind.
    pub objects: BTreeMap<String, u64>,
}
