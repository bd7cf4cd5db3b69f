//! Well-formed random data to store. It makes no sense to a model: a log must not care.

mod batch_writer;
mod fact;

use std::sync::Arc;

use tidegate_core::{EndState, Fault, FaultClass, Time};

pub use batch_writer::BatchWriter;
pub use fact::fact;

use crate::rng::TestRng;

/// Names that cause problems easily: short, long, spaced, quoted, not Latin.
const NAMES: [&str; 6] = ["a", "shop:acme", "guild 7", "it's \"quoted\"", "Größe-尺寸", "%_{}"];

/// A name of a group, kind or limit.
pub fn name(rng: &mut TestRng) -> Arc<str> {
    Arc::from(*rng.pick(&NAMES))
}

/// A number of any size: small ones, large ones, and both ends.
pub fn number(rng: &mut TestRng) -> u64 {
    match rng.below(8) {
        0 => 0,
        1 => u64::MAX,
        2..=5 => rng.below(1_000),
        _ => {
            let shift = rng.below(64);
            rng.roll() >> shift
        }
    }
}

/// A time, rarely the first or the last one.
pub fn time(rng: &mut TestRng) -> Time {
    Time::from_micros(number(rng))
}

/// An end state.
pub fn end_state(rng: &mut TestRng) -> EndState {
    *rng.pick(&[EndState::Succeeded, EndState::Failed, EndState::Canceled])
}

/// A fault, or none.
pub fn fault(rng: &mut TestRng) -> Option<Fault> {
    if rng.percent(40) {
        return None;
    }
    let class = *rng.pick(&FaultClass::ALL);
    let message = ["", "the upstream answered 503", "naïve — ‘quoted’"];
    let may_have_happened = rng.percent(50);
    Some(Fault { may_have_happened, ..Fault::new(class, *rng.pick(&message)) })
}

/// A value or `None`, with equal chance.
pub fn maybe<T>(rng: &mut TestRng, make: impl FnOnce(&mut TestRng) -> T) -> Option<T> {
    if rng.percent(50) { Some(make(rng)) } else { None }
}

/// Up to `most` values.
pub fn some<T>(rng: &mut TestRng, most: u64, mut make: impl FnMut(&mut TestRng) -> T) -> Vec<T> {
    let count = rng.below(most + 1);
    (0..count).map(|_| make(rng)).collect()
}
