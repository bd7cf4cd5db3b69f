//! Seeded numbers: the same seed gives the same ones on every machine. Good enough for jitter,
//! injected faults and tests, not for secrets. Where the seed comes from is up to the caller.

/// A random stream (SplitMix64).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeededRng(u64);

impl SeededRng {
    /// Creates the stream of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns whether an event with this rate, from 0 to 1, happens now. Always draws exactly one
    /// number.
    pub fn happens(&mut self, rate: f64) -> bool {
        // A float keeps the upper 53 bits.
        let drawn = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_stream() {
        let mut chance = SeededRng::new(1_234_567);
        assert_eq!([chance.next(), chance.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn rates_are_met() {
        let mut chance = SeededRng::new(7);
        assert!((0..1_000).all(|_| !chance.happens(0.0)));
        assert!((0..1_000).all(|_| chance.happens(1.0)));
        let often = (0..10_000).filter(|_| chance.happens(0.3)).count();
        assert!((2_800..3_200).contains(&often), "{often}");
    }
}
