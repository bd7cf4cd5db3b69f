//! The engine's only source of randomness: a small generator seeded once from the system.

/// A generator of numbers that need not be secret.
#[derive(Clone, Debug)]
pub(crate) struct JitterRng(u64);

impl JitterRng {
    /// Seeds the generator from the system, or from a fixed number where the system has no
    /// randomness.
    pub(crate) fn from_system() -> Self {
        Self(getrandom::u64().unwrap_or(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 32) as u32
    }
}
