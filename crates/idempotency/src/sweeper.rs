//! Clean-up of what has expired, every ten minutes, in small steps so that nobody waits for it.

use std::sync::Arc;
use std::time::Duration;

use tidegate_store::SharedState;

use crate::counters;

/// Time between two clean-ups.
const EVERY: Duration = Duration::from_secs(600);
/// Records that one step removes.
const STEP: usize = 1_000;
/// Steps of one clean-up at most.
const STEPS_MAX: usize = 10_000;

/// Removes what has expired, now and then, for ever.
pub async fn sweep_periodically(store: Arc<dyn SharedState>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let swept = sweep(&*store).await;
        tracing::info!(swept, "removed expired idempotency keys");
    }
}

/// One clean-up: how many it removed. A store that is away is tried again the next time.
async fn sweep(store: &dyn SharedState) -> u64 {
    let mut swept = 0;
    for _ in 0..STEPS_MAX {
        match store.sweep_records(STEP).await {
            Ok(count) => {
                counters::count_swept(count as u64);
                swept += count as u64;
                if count < STEP {
                    break;
                }
            }
            Err(cause) => {
                tracing::warn!("could not remove expired idempotency keys: {cause}");
                break;
            }
        }
        tokio::task::yield_now().await;
    }
    swept
}
