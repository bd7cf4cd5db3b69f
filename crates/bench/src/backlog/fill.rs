//! The child: fills the store, reports on one line, and continues writing until it is killed.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tidegate::{Engine, Options, Submission};
use tokio::time::Instant;

use super::{Args, CALM, FillReport, open_engine, per_operation, resident};
use crate::scratch;
use crate::server_process::parent_gone;

const BATCH: u64 = 1_000;
const TASKS: usize = 8;
/// Longer than any run: nothing is sent.
const DELAY: Duration = Duration::from_secs(3_600);
/// How long it continues to write before it asks to be killed, so that it is killed in the middle
/// of a write.
const UNDER_WAY: Duration = Duration::from_millis(300);
const MIB: u64 = 1_024 * 1_024;

/// Fills, reports and continues. It ends only if no one kills it: then the result says so.
pub(super) async fn fill_until_killed(url: &str, args: &Args) -> Result<String, String> {
    let store = scratch::open(url).await?;
    let engine = open_engine(store).await?;
    let gone = parent_gone();
    let before = resident()?;
    let start = Instant::now();
    let accepted = Arc::new(AtomicU64::new(0));
    fill(&engine, args, args.operations, &accepted).await?;
    let operations_per_s = (args.operations as f64 / start.elapsed().as_secs_f64()).round();
    tokio::time::sleep(CALM).await;
    let after = resident()?;
    let (grown, cache) = (after.saturating_sub(before), Options::default().payload_cache_bytes as u64);
    let mut filled = FillReport {
        operations: args.operations,
        accepted_before_kill: args.operations,
        operations_per_s,
        resident_mib_before: before / MIB,
        resident_mib_after: after / MIB,
        bytes_per_operation: per_operation(grown, args.operations),
        payload_cache_bytes: cache,
        bytes_per_operation_without_cache: per_operation(grown.saturating_sub(cache), args.operations),
    };
    let report = async {
        tokio::time::sleep(UNDER_WAY).await;
        filled.accepted_before_kill = accepted.load(Ordering::Relaxed);
        let line = serde_json::to_string(&filled).map_err(|error| error.to_string())?;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(|error| error.to_string())?;
        // A message and a closed channel mean the same.
        let _ = gone.await;
        Ok::<_, String>(())
    };
    tokio::select! {
        ended = fill(&engine, args, u64::MAX, &accepted) => ended?,
        ended = report => ended?,
    }
    Ok("no one was left to kill this process".into())
}

/// Submits `most` operations, in batches, from several tasks, and counts the accepted ones.
async fn fill(engine: &Engine, args: &Args, most: u64, accepted: &Arc<AtomicU64>) -> Result<(), String> {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..TASKS {
        let (engine, next, args) = (engine.clone(), Arc::clone(&next), args.clone());
        let accepted = Arc::clone(accepted);
        tasks.spawn(async move {
            loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= most {
                    return Ok::<_, String>(());
                }
                let end = (first + BATCH).min(most);
                let batch = (first..end).map(|number| submission(number, &args)).collect();
                for answer in engine.submit_all(batch).await {
                    answer.map_err(|error| error.to_string())?;
                    accepted.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())??;
    }
    Ok(())
}

/// Creates a submission that shares no memory with any other, as if it had been received over the
/// network.
fn submission(number: u64, args: &Args) -> Submission {
    let payload = Bytes::from(vec![b'x'; args.payload]);
    let group = format!("group-{}", number % args.groups);
    Submission::new("bench", group, payload).with_delay(DELAY)
}
