//! Takers: each takes one token, and takes again when the response arrives. The buckets refill
//! faster than they are drained, so that every take is granted, which is the most work for a store.

use std::sync::Arc;
use std::time::Duration;

use tidegate_limits::{SharedBucket, TokenTakeOutcome, try_take_all};
use tidegate_store::Store;
use tokio::time::Instant;

use super::LoadShape;
use crate::report::{Latency, Recorder};
use crate::scratch;

/// The capacity of a bucket, and its refill per second.
const CAPACITY: u64 = 100_000;
const REFILL: u64 = 2_000_000;
/// Of one family, so that a Redis Cluster takes them together.
const NAMES: [&str; 2] = ["bench/one", "bench/two"];

/// Stores on the same data, each with connections of its own.
pub(super) type Stores = Vec<Arc<dyn Store>>;

/// Opens `count` of them.
pub(super) async fn stores(url: &str, count: usize) -> Result<Stores, String> {
    let mut stores = Vec::with_capacity(count);
    for _ in 0..count {
        stores.push(scratch::open(url).await?);
    }
    if let Some(first) = stores.first() {
        first.migrate().await.map_err(|error| error.to_string())?;
    }
    Ok(stores)
}

/// Takes from `count` buckets at once; returns the takes per second and their latency.
pub(super) async fn measure(
    stores: &Stores,
    shape: LoadShape,
    count: usize,
) -> Result<(f64, Latency), String> {
    let start = Instant::now();
    let mut takers = Vec::new();
    for store in stores {
        let mut buckets = Vec::new();
        for name in NAMES.iter().take(count) {
            let bucket = SharedBucket::new(Arc::clone(store) as _, *name, CAPACITY, REFILL);
            buckets.push(bucket.map_err(|error| error.to_string())?);
        }
        for _ in 0..shape.deep {
            takers.push(tokio::spawn(take(buckets.clone(), start, shape.time)));
        }
    }
    let (mut all, mut done) = (Recorder::new()?, 0);
    for taker in takers {
        let (taken, latency) = taker.await.map_err(|error| error.to_string())??;
        done += taken;
        all.merge(&latency);
    }
    Ok((done as f64 / start.elapsed().as_secs_f64(), all.latency()))
}

async fn take(buckets: Vec<SharedBucket>, start: Instant, time: Duration) -> Result<(u64, Recorder), String> {
    let (mut latency, mut done) = (Recorder::new()?, 0);
    let both: Vec<_> = buckets.iter().map(|bucket| (bucket, 1.into())).collect();
    let mut asked = Instant::now();
    while asked - start < time {
        let is_granted = match both.as_slice() {
            [(bucket, cost)] => matches!(bucket.try_take(*cost).await, Ok(TokenTakeOutcome::Granted(_))),
            both => matches!(try_take_all(both).await, Ok(TokenTakeOutcome::Granted(_))),
        };
        if !is_granted {
            return Err("a reservation was not granted; use a store that nothing else uses".into());
        }
        let answered = Instant::now();
        latency.record(answered - asked);
        (asked, done) = (answered, done + 1);
    }
    Ok((done, latency))
}
