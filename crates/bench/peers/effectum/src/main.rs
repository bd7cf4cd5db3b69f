//! The load of `bench operations` on effectum: producers that wait for each add, a runner that does
//! nothing, a SQLite file. It prints one JSON object. A separate program, because its SQLite cannot
//! be linked next to ours.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use effectum::{Job, JobRunner, Queue, RunningJob, Worker};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Progress of the jobs.
#[derive(Debug, Default)]
struct Runs {
    started: AtomicU64,
    moved: Notify,
}

impl Runs {
    /// Waits until at least this many jobs were handled.
    async fn reached(&self, jobs: u64) {
        loop {
            let moved = self.moved.notified();
            if self.started.load(Ordering::Relaxed) >= jobs {
                return;
            }
            moved.await;
        }
    }
}

struct Load {
    dir: PathBuf,
    time: Duration,
    producers: u64,
    workers: u16,
    payload: usize,
    outstanding: u64,
}

impl Load {
    fn from_args() -> Result<Self, String> {
        let mut given: HashMap<String, String> = HashMap::new();
        let mut args = std::env::args().skip(1);
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            given.insert(flag, value);
        }
        let number = |flag: &str| -> Result<u64, String> {
            let text = given.get(flag).ok_or_else(|| format!("{flag} is missing"))?;
            text.parse().map_err(|_| format!("{flag} must be a whole number, not {text:?}"))
        };
        Ok(Self {
            dir: given.get("--dir").ok_or("--dir is missing")?.into(),
            time: Duration::from_secs(number("--seconds")?),
            producers: number("--producers")?,
            workers: u16::try_from(number("--workers")?).map_err(|_| "--workers is at most 65535")?,
            payload: usize::try_from(number("--payload")?).map_err(|_| "--payload is too large")?,
            outstanding: number("--outstanding")?,
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), String> {
    let load = Arc::new(Load::from_args()?);
    let path = load.dir.join("effectum.db");
    let queue = Queue::new(&path).await.map_err(|error| error.to_string())?;
    let queue = Arc::new(queue);
    let runs = Arc::new(Runs::default());
    let runner = JobRunner::builder("bench", handle).build();
    let worker = Worker::builder(&queue, Arc::clone(&runs))
        .max_concurrency(load.workers)
        .jobs([runner])
        .build()
        .await
        .map_err(|error| error.to_string())?;
    let submitted = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..load.producers {
        let (load, queue, runs, submitted) =
            (Arc::clone(&load), Arc::clone(&queue), Arc::clone(&runs), Arc::clone(&submitted));
        tasks.push(tokio::spawn(produce(load, queue, runs, submitted, start)));
    }
    let mut adds = Vec::new();
    for task in tasks {
        adds.extend(task.await.map_err(|error| error.to_string())??);
    }
    let jobs = submitted.load(Ordering::Relaxed);
    runs.reached(jobs).await;
    while worker.counts().finished < jobs {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let per_s = jobs as f64 / start.elapsed().as_secs_f64();
    adds.sort_unstable();
    let (p50, p99) = (millis_at(&adds, 0.5), millis_at(&adds, 0.99));
    println!("{{\"jobs\":{jobs},\"jobs_per_s\":{per_s:.0},\"p50_ms\":{p50:.3},\"p99_ms\":{p99:.3}}}");
    Ok(())
}

async fn handle(_job: RunningJob, runs: Arc<Runs>) -> Result<(), effectum::Error> {
    runs.started.fetch_add(1, Ordering::Relaxed);
    runs.moved.notify_waiters();
    Ok(())
}

/// Adds jobs until the time is over; returns the duration of each add, in microseconds.
async fn produce(
    load: Arc<Load>,
    queue: Arc<Queue>,
    runs: Arc<Runs>,
    submitted: Arc<AtomicU64>,
    start: Instant,
) -> Result<Vec<u64>, String> {
    let mut adds = Vec::new();
    while start.elapsed() < load.time {
        let number = submitted.fetch_add(1, Ordering::Relaxed) + 1;
        let started = Instant::now();
        let job = Job::builder("bench").payload(vec![b'x'; load.payload]).build();
        queue.add_job(job).await.map_err(|error| error.to_string())?;
        adds.push(u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX));
        runs.reached(number.saturating_sub(load.outstanding)).await;
    }
    Ok(adds)
}

fn millis_at(sorted: &[u64], quantile: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let at = (last as f64 * quantile).round() as usize;
    sorted.get(at).map_or(0.0, |micros| *micros as f64 / 1_000.0)
}
