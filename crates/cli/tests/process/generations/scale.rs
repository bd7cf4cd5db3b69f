//! How much load the kills come under: little with `./test`, ten thousand generations and an outage
//! of one provider with `./test --long`.

use std::ops::Range;
use std::time::Duration;

use tidegate_sim::rng::SeededRng;

/// The size of a test that kills processes.
#[derive(Clone)]
pub(super) struct Scale {
    pub users: usize,
    /// What one user has unfinished at the most.
    pub ahead: usize,
    /// What one user creates at the least.
    pub least: usize,
    /// Slots of each provider: fewer than there are generations at once, so that each one is used.
    pub slots: u64,
    pub kills: usize,
    /// How long the load continues before a kill, in milliseconds.
    pub load_ms: Range<u64>,
    /// From one look at a generation to the next.
    pub pause: Duration,
    /// How long the whole test may take.
    pub time: Duration,
    /// When the first provider of the chain begins to fail every submit, and when it stops.
    pub outage: Option<Range<Duration>>,
}

impl Scale {
    /// With as many kills as are worth their time in `./test`.
    pub(super) fn new(kills: usize) -> Self {
        if std::env::var_os("TIDEGATE_SEED").is_some() { Self::long() } else { Self::short(kills) }
    }

    const fn short(kills: usize) -> Self {
        Self {
            users: 6,
            ahead: 4,
            least: 10,
            slots: 3,
            kills,
            load_ms: 150..500,
            pause: Duration::from_millis(20),
            time: Duration::from_secs(120),
            outage: None,
        }
    }

    const fn long() -> Self {
        Self {
            users: 64,
            ahead: 4,
            least: 157,
            slots: 16,
            kills: 50,
            load_ms: 300..2_500,
            pause: Duration::from_millis(250),
            time: Duration::from_mins(25),
            outage: Some(Duration::from_secs(5)..Duration::from_secs(15)),
        }
    }

    /// Draws how long the load continues before the next kill.
    pub(super) fn load_time(&self, chance: &mut SeededRng) -> Duration {
        let Range { start, end } = self.load_ms;
        Duration::from_millis(start + chance.next() % (end - start))
    }
}
