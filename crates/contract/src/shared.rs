//! The suites of `SharedState`: each method returns what the pure function of the same name does,
//! whatever came before and whatever the clock does; the state survives a restart; and each of any
//! number of concurrent callers gets a result of its own.

mod bucket;
mod lease;
mod listing;
mod race;
mod record;
mod window;

pub use bucket::{buckets_answer_as_the_pure_functions, buckets_bear_the_largest_figures};
pub use lease::leases_answer_as_the_pure_functions;
pub use listing::{buckets_are_listed_page_by_page, leases_are_listed_page_by_page};
pub use race::{
    a_bucket_never_grants_too_much, one_caller_claims_a_record, one_caller_opens_a_window,
    one_holder_of_a_lease, two_buckets_are_taken_together,
};
pub use record::{records_answer_as_the_pure_functions, sweeping_records_is_bounded};
pub use window::windows_answer_as_the_pure_functions;

use std::sync::Arc;
use std::time::Duration;

use tidegate_store::{Clock, Store};

use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;

/// The number of steps in a random sequence.
const STEPS: usize = 700;

/// Names that share a prefix, and an awkward one.
const KEYS: [&str; 4] = ["key", "key:2", "key:2:x", "schlüssel '%_{*}"];

/// A store that is reopened now and then, and a clock that moves between steps, sometimes back.
struct Trial<'a> {
    backend: &'a dyn Backend,
    store: Arc<dyn Store>,
    rng: TestRng,
}

impl<'a> Trial<'a> {
    async fn begin(backend: &'a dyn Backend, seed: u64) -> Self {
        let store = backend.open().await.expect_value("open the store");
        Self { backend, store, rng: TestRng::seeded_or(seed) }
    }

    /// Lets some time pass, none for a third of the steps, and restarts the store once in 70.
    async fn pass_time(self, most: Duration) -> Self {
        let Self { backend, mut store, mut rng } = self;
        let clock = backend.clock();
        match rng.below(30) {
            0..10 => {}
            10 => clock.set(clock.now().before(most / 20)),
            11 => {
                clock.advance(most * 3);
            }
            _ => {
                clock.advance(Duration::from_micros(rng.below(most.as_micros() as u64)));
            }
        }
        if rng.below(70) == 0 {
            drop(store);
            store = backend.open().await.expect_value("open the store again");
        }
        Self { backend, store, rng }
    }

    fn now(&self) -> tidegate_core::Time {
        self.backend.clock().now()
    }
}
