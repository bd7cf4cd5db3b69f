//! Whether the store takes writes, as the header of open pages says. It is tried while a page is
//! open, once for all pages of a node. What a page cannot read says so in its own place.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_store::{Clock, Store};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// How long it counts that the store was well, and that it was not.
const WELL_FOR: Duration = Duration::from_secs(5);
const AWAY_FOR: Duration = Duration::from_secs(1);
/// What takes longer is no answer.
const TRIED_FOR: Duration = Duration::from_secs(2);

/// The last trial, and since when the store is away.
#[derive(Default)]
pub(crate) struct StoreWatch(Mutex<Option<(Instant, Option<Time>)>>);

impl StoreWatch {
    /// Since when the store takes no writes, as far as pages were open to see it; `None` while it
    /// does.
    pub(super) async fn away_since(&self, store: &dyn Store, clock: &dyn Clock) -> Option<Time> {
        let mut last = self.0.lock().await;
        if let Some((tried, away_since)) = *last {
            let counts_for = if away_since.is_some() { AWAY_FOR } else { WELL_FOR };
            if tried.elapsed() < counts_for {
                return away_since;
            }
        }
        let is_well = matches!(timeout(TRIED_FOR, store.health()).await, Ok(Ok(())));
        let earlier = last.and_then(|(_, away_since)| away_since);
        let away_since = (!is_well).then(|| earlier.unwrap_or_else(|| clock.now()));
        *last = Some((Instant::now(), away_since));
        away_since
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_contract::{FaultPlan, FaultyStore, InjectedFault, StoreMethod};
    use tidegate_store::WallClock;
    use tidegate_store_embedded::MemoryStore;
    use tokio::time::advance;

    use super::*;

    /// OPS-24: a store that fails, or that does not answer, is away since the first failure, until
    /// it takes a write again.
    #[tokio::test(start_paused = true)]
    async fn ops_24_a_store_that_takes_no_writes_is_away() {
        let store = FaultyStore::new(Arc::new(MemoryStore::new(Arc::new(WallClock))), FaultPlan::none());
        let watch = StoreWatch::default();
        assert_eq!(watch.away_since(&store, &WallClock).await, None);
        store.set_down(true);
        assert_eq!(watch.away_since(&store, &WallClock).await, None, "it was well just now");
        advance(WELL_FOR).await;
        let since = watch.away_since(&store, &WallClock).await;
        assert!(since.is_some());
        store.set_down(false);
        let silent = InjectedFault::Delay(TRIED_FOR * 100);
        store.set_plan(FaultPlan::none().at(StoreMethod::Health, 1, silent));
        advance(AWAY_FOR).await;
        assert_eq!(watch.away_since(&store, &WallClock).await, since, "no answer is none");
        advance(AWAY_FOR).await;
        assert_eq!(watch.away_since(&store, &WallClock).await, None);
    }
}
