//! Seeded randomness: the same seed gives the same numbers on every machine. A failing test reports
//! its seed. Not for secrets.

use std::ops::Range;

use tidegate_core::rng::SeededRng;

/// A seeded random generator. Prints its seed when its test panics.
#[derive(Debug)]
pub struct TestRng {
    seed: u64,
    numbers: SeededRng,
    quiet: bool,
}

/// Set this variable to a number to run every random test with another seed. `./test --long` does.
pub const SEED_VARIABLE: &str = "TIDEGATE_SEED";

/// The seed of a random test: `usual`, so that every run is the same, shifted by `TIDEGATE_SEED` if
/// that is set.
#[must_use]
pub fn seed_or(usual: u64) -> u64 {
    usual.wrapping_add(seed_override().unwrap_or(0))
}

/// Returns `count` consecutive seeds, shifted in the same way.
pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(seed_or)
}

/// Explains how to repeat a run with the same seeds.
#[must_use]
pub fn how_to_repeat() -> String {
    match seed_override() {
        Some(seed) => format!("with {SEED_VARIABLE}={seed}"),
        None => format!("without {SEED_VARIABLE}"),
    }
}

fn seed_override() -> Option<u64> {
    std::env::var(SEED_VARIABLE).ok()?.parse().ok()
}

impl TestRng {
    /// Creates a generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, numbers: SeededRng::new(seed), quiet: false }
    }

    /// Creates a generator with the default seed, shifted by `TIDEGATE_SEED`.
    #[must_use]
    pub fn seeded_or(usual: u64) -> Self {
        Self::new(seed_or(usual))
    }

    /// Creates an independent generator whose numbers derive from this one.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        let mut fork = Self::new(self.roll());
        fork.quiet = true;
        fork
    }

    /// The seed it was created with.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns any number.
    pub const fn roll(&mut self) -> u64 {
        self.numbers.next()
    }

    /// Returns a number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.roll()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number in the range.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// Returns an index into a list of `len`.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns true in `percent` of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the elements.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }

    /// Returns this many bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.roll().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}

impl Drop for TestRng {
    fn drop(&mut self) {
        if !self.quiet && std::thread::panicking() {
            eprintln!("failed with seed {}; to see it again, run it {}", self.seed, how_to_repeat());
        }
    }
}
