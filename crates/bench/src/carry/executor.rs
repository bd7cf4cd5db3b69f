//! The HTTP executor alone: takes the payload of an operation and returns a verdict, with as many
//! calls in flight. No queue, nothing is stored: the rest of the distance to the bare client is the
//! queue's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::Verdict;
use tidegate_store::{Clock, WallClock};
use tidegate_upstream::{Call, Upstream};
use tokio::task::JoinSet;

use super::queue::{check_call_count, http, join_all, payload};
use super::{Args, Run, Stopwatch};
use crate::server_process::ServerProcess;

pub(super) async fn measure(args: &Args, upstream: &ServerProcess) -> Result<Run, String> {
    let (http, payload) = (Arc::new(http(upstream)?), payload(args)?);
    let (before, next) = (upstream.items().await?, Arc::new(AtomicU64::new(0)));
    let (mut tasks, watch) = (JoinSet::new(), Stopwatch::start());
    for _ in 0..args.workers {
        let (http, payload, next) = (Arc::clone(&http), payload.clone(), Arc::clone(&next));
        let most = args.operations;
        tasks.spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < most {
                let call = Call::new("op_000000000000000000000000000", &payload, WallClock.now());
                let outcome = http.carry(call).await;
                if outcome.verdict != Verdict::Done {
                    return Err(format!("a call failed: {:?}", outcome.verdict));
                }
            }
            Ok(())
        });
    }
    join_all(tasks).await?;
    let run = watch.stop(args.operations);
    check_call_count(args.operations, upstream.items().await? - before)?;
    Ok(run)
}
