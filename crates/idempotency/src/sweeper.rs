//! Removes expired records every ten minutes, in small steps so that no request waits for it.

use std::sync::Arc;
use std::time::Duration;

use tidegate_store::SharedState;

use crate::counters;

/// The time between two sweeps.
const EVERY: Duration = Duration::from_secs(600);
/// The records that one step removes.
const STEP: usize = 1_000;
/// The maximum number of steps of one sweep.
const STEPS_MAX: usize = 10_000;

/// Removes expired records periodically, for ever.
pub async fn sweep_periodically(store: Arc<dyn SharedState>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let swept = sweep(&*store).await;
        tracing::info!(swept, "removed expired idempotency keys");
    }
}

/// Runs one sweep and returns how many records it removed. An unavailable store is tried again in
/// the next sweep.
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
