//! The engine's only source of randomness: a small generator seeded once from the system.

use tidegate_core::rng::SeededRng;

/// The seed where the system has no randomness.
const FIXED_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator of numbers that need not be secret.
#[derive(Clone, Debug)]
pub(crate) struct JitterRng(SeededRng);

impl JitterRng {
    /// Seeds the generator from the system.
    pub(crate) fn from_system() -> Self {
        Self(SeededRng::new(getrandom::u64().unwrap_or(FIXED_SEED)))
    }

    pub(crate) const fn next(&mut self) -> u32 {
        (self.0.next() >> 32) as u32
    }
}
