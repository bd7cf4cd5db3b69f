//! The queue: an engine with the real HTTP executor on a fresh store. Each case must have made as
//! many calls as there were operations, and all of them must have succeeded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::to_raw_value;
use tidegate::{Engine, Executors, Options, Submission};
use tidegate_sim::rng::SeededRng;
use tidegate_store::Store;
use tidegate_upstream::http::UpstreamConfig;
use tidegate_upstream::{Body, Envelope, HttpRequest, HttpUpstreams, Method, Upstream};
use tokio::task::JoinSet;

use super::metered::MeteredUpstream;
use super::{Args, Run, Stopwatch};
use crate::call;
use crate::scratch::{self, Scratch};
use crate::server_process::ServerProcess;

const KIND: &str = "http";
/// Operations per batch while the queue is filled, and tasks that fill it.
const BATCH: u64 = 500;
const FILLERS: usize = 8;
/// The most memory an operation takes besides its body.
const OVERHEAD_LEN: usize = 1_024;
/// Interval between two checks whether all is done.
const LOOK: Duration = Duration::from_millis(2);
/// How long nothing may move before the run is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// An engine and its executor.
struct TestEngine {
    engine: Engine,
    metered: Arc<MeteredUpstream>,
}

impl TestEngine {
    /// Holds calls back until they are released.
    async fn holding(
        store: &Arc<dyn Store>,
        args: &Args,
        upstream: &ServerProcess,
        options: Options,
    ) -> Result<Self, String> {
        let metered = |http| MeteredUpstream::holding(http, args.outstanding);
        Self::open(store, upstream, options, metered).await
    }

    async fn open(
        store: &Arc<dyn Store>,
        upstream: &ServerProcess,
        options: Options,
        metered: impl FnOnce(HttpUpstreams) -> MeteredUpstream,
    ) -> Result<Self, String> {
        let http = http(upstream)?;
        let limits = http.limits();
        let metered = Arc::new(metered(http));
        let executors = Executors::from([(KIND.into(), Arc::clone(&metered) as Arc<dyn Upstream>)]);
        let engine = Engine::builder(Arc::clone(store))
            .options(options)
            .executors(executors)
            .limits(limits)
            .open()
            .await;
        Ok(Self { engine: engine.map_err(|error| error.to_string())?, metered })
    }

    /// Waits until the results of this many calls are durable.
    async fn wait_until_settled(&self, calls: u64) -> Result<(), String> {
        let (mut seen, mut idle) = (0, Duration::ZERO);
        while self.metered.ended() < calls {
            tokio::time::sleep(LOOK).await;
            let ended = self.metered.ended();
            idle = if ended == seen { idle + LOOK } else { Duration::ZERO };
            if idle > PATIENCE {
                return Err(format!("{ended} of {calls} calls were made, and no other within {PATIENCE:?}"));
            }
            seen = ended;
        }
        loop {
            let counts = self.engine.counts().await.map_err(|error| error.to_string())?;
            if counts.running + counts.queued + counts.waiting == 0 {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Stops it, and compares the calls with the expected number.
    async fn close(self, calls: u64, seen: u64) -> Result<(), String> {
        self.engine.drain().await;
        if self.metered.failed() > 0 {
            return Err(format!("{} of {calls} calls failed", self.metered.failed()));
        }
        check_call_count(calls, seen)
    }
}

/// Returns the executor that a server uses.
pub(super) fn http(upstream: &ServerProcess) -> Result<HttpUpstreams, String> {
    let config = UpstreamConfig::new(call::UPSTREAM, format!("http://{}", upstream.addr));
    HttpUpstreams::new(vec![config]).map_err(|refusal| refusal.to_string())
}

/// Returns an error when the upstream was called more or less often: that is no figure.
pub(super) fn check_call_count(calls: u64, seen: u64) -> Result<(), String> {
    if calls == seen { Ok(()) } else { Err(format!("the upstream saw {seen} calls where {calls} were made")) }
}

/// Submits operations while they are sent, so that few wait.
pub(super) async fn shallow(
    args: &Args,
    upstream: &ServerProcess,
    server: &mut BTreeMap<String, String>,
) -> Result<Run, String> {
    let scratch = Scratch::on_any_store(&args.store)?;
    let store = scratch::open(scratch.url()).await?;
    server.extend(store.server_settings().await.map_err(|error| error.to_string())?);
    let before = upstream.items().await?;
    let stage = TestEngine::holding(&store, args, upstream, options(args)).await?;
    stage.metered.release();
    let (next, mut producers, watch) = (Arc::new(AtomicU64::new(0)), JoinSet::new(), Stopwatch::start());
    for _ in 0..args.producers {
        let (engine, metered) = (stage.engine.clone(), Arc::clone(&stage.metered));
        let (next, args) = (Arc::clone(&next), args.clone());
        producers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= args.operations {
                    return Ok::<_, String>(());
                }
                metered.wait_for_room().await;
                let submitted = engine.submit(submission(number, &args)?).await;
                submitted.map_err(|error| error.to_string())?;
            }
        });
    }
    join_all(producers).await?;
    stage.wait_until_settled(args.operations).await?;
    let run = watch.stop(args.operations);
    stage.close(args.operations, upstream.items().await? - before).await?;
    Ok(run)
}

/// Queues all operations before the first is sent; the engine keeps all payloads in memory.
pub(super) async fn in_memory(args: &Args, upstream: &ServerProcess) -> Result<Run, String> {
    let scratch = Scratch::on_any_store(&args.store)?;
    let store = scratch::open(scratch.url()).await?;
    let before = upstream.items().await?;
    let room = (args.payload + OVERHEAD_LEN) * usize::try_from(args.operations).unwrap_or(usize::MAX);
    let options = options(args).with_payload_cache_bytes(room);
    let stage = TestEngine::holding(&store, args, upstream, options).await?;
    fill(&stage.engine, args).await?;
    release_and_measure(args, upstream, stage, before).await
}

/// Queues all operations before the first is sent; the engine that sends them has accepted none of
/// them.
pub(super) async fn deep(args: &Args, upstream: &ServerProcess) -> Result<Run, String> {
    let scratch = Scratch::on_any_store(&args.store)?;
    let store = scratch::open(scratch.url()).await?;
    let before = upstream.items().await?;
    let idle = options(args).with_workers(1);
    let idle = TestEngine::open(&store, upstream, idle, MeteredUpstream::idle).await?;
    fill(&idle.engine, args).await?;
    idle.engine.drain().await;
    drop(idle);
    let stage = TestEngine::holding(&store, args, upstream, options(args)).await?;
    release_and_measure(args, upstream, stage, before).await
}

/// Releases the calls and measures until the last one is settled.
async fn release_and_measure(
    args: &Args,
    upstream: &ServerProcess,
    stage: TestEngine,
    before: u64,
) -> Result<Run, String> {
    let watch = Stopwatch::start();
    stage.metered.release();
    stage.wait_until_settled(args.operations).await?;
    let run = watch.stop(args.operations);
    stage.close(args.operations, upstream.items().await? - before).await?;
    Ok(run)
}

fn options(args: &Args) -> Options {
    Options::default().with_workers(args.workers)
}

async fn fill(engine: &Engine, args: &Args) -> Result<(), String> {
    let (next, mut fillers) = (Arc::new(AtomicU64::new(0)), JoinSet::new());
    for _ in 0..FILLERS {
        let (engine, next, args) = (engine.clone(), Arc::clone(&next), args.clone());
        fillers.spawn(async move {
            loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= args.operations {
                    return Ok::<_, String>(());
                }
                let end = (first + BATCH).min(args.operations);
                let batch = (first..end).map(|number| submission(number, &args)).collect::<Result<_, _>>()?;
                for answer in engine.submit_all(batch).await {
                    answer.map_err(|error| error.to_string())?;
                }
            }
        });
    }
    join_all(fillers).await
}

pub(super) async fn join_all(mut tasks: JoinSet<Result<(), String>>) -> Result<(), String> {
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())??;
    }
    Ok(())
}

/// Creates a submission that shares no memory with any other, as if it had been received over the
/// network; its number determines its group.
fn submission(number: u64, args: &Args) -> Result<Submission, String> {
    let group = SeededRng::new(number).next() % args.groups;
    Ok(Submission::new(KIND, format!("group-{group}"), payload(args)?))
}

/// Returns the stored payload of one call.
pub(super) fn payload(args: &Args) -> Result<Bytes, String> {
    let body = to_raw_value(&call::body(args.payload)).map_err(|error| error.to_string())?;
    let request = HttpRequest::new(Method::Post, "/x").with_body(Body::Json(body));
    let envelope = Envelope { upstream: call::UPSTREAM.into(), request, proxied: None, completion: None };
    envelope.encode().map(Bytes::from).map_err(|refusal| refusal.to_string())
}
