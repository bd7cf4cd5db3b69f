//! Several workers, in any number of processes, within one limit: start it twice and watch both
//! share it.
//!
//! `cargo run -p tidegate-limits --example paced -- redis://127.0.0.1:6379` (or `postgres://…`;
//! nothing for memory).

use std::sync::Arc;
use std::time::Duration;

use tidegate_limits::{LeaseAcquisition, NamedLease, SharedBucket, store};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".to_owned());
    let store = store::open(&url).await?;
    store.migrate().await?;

    // The process that holds the lease prints.
    let talker = NamedLease::new(Arc::clone(&store) as _, "example/talker", Duration::from_secs(3))?;
    let talks = match talker.try_acquire().await? {
        LeaseAcquisition::Held(guard) => Some(guard),
        LeaseAcquisition::Busy { .. } => None,
    };

    // Five at once, refilled with two each second, for all processes together.
    let requests = SharedBucket::new(store, "example/requests", 5, 2)?;
    let workers = (0..3).map(|worker| {
        let requests = requests.clone();
        tokio::spawn(async move {
            for call in 0..5 {
                let grant = requests.take(1).await?;
                println!("worker {worker}, call {call}: {:.1} left", grant.remaining());
            }
            Ok::<(), tidegate_limits::Error>(())
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await??;
    }
    if let Some(guard) = talks {
        println!("held the lease with fence {} all the time: {}", guard.fence(), guard.is_held());
        guard.release().await?;
    }
    Ok(())
}
