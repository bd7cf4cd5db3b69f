//! The load: producers that submit empty jobs in batches, with a bound on the jobs that have not
//! ended, and the worker processes that execute them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tidegate_server::Server;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::worker::WorkerReport;
use super::{Args, KIND};
use crate::client::{Client, request};
use crate::report::Recorder;

/// Interval between two looks at how many have ended.
const LOOK: Duration = Duration::from_millis(2);
/// How long nothing may end before the run is given up.
const STALL: Duration = Duration::from_secs(30);

/// What was measured.
pub(super) struct Run {
    pub lifecycles: u64,
    pub took: Duration,
    pub start_delay: Recorder,
}

/// A worker process. It does not outlive its handle.
struct WorkerProcess(Child);

impl WorkerProcess {
    fn start(addr: &str) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let child = Command::new(program)
            .args(std::env::args_os().skip(1))
            .args(["--work-for", addr])
            // Held open while it is to work.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        child.map(Self).map_err(|error| format!("a worker process cannot be started: {error}"))
    }

    /// Lets it end, and returns its report.
    fn finish(mut self) -> Result<WorkerReport, String> {
        drop(self.0.stdin.take());
        let stdout = self.0.stdout.take().ok_or("a worker has no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
        serde_json::from_str(&line).map_err(|_| "a worker ended without a report".into())
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // It may have exited on its own; either way nothing is left behind.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Submits jobs for the time that was asked for, and waits until all have ended.
pub(super) async fn drive(server: &Server, args: &Args) -> Result<Run, String> {
    let addr = server.addr.to_string();
    let workers = (0..args.processes).map(|_| WorkerProcess::start(&addr)).collect::<Result<Vec<_>, _>>()?;
    let submitted = Arc::new(AtomicU64::new(0));
    let (tell, ended) = watch::channel(0_u64);
    eprintln!("{} processes, {} at once each", args.processes, args.concurrency);
    let start = Instant::now();
    let mut producers = JoinSet::new();
    for number in 0..args.producers as u64 {
        let (args, submitted, ended) = (args.clone(), Arc::clone(&submitted), ended.clone());
        producers.spawn(produce(server.addr, args, number, start, submitted, ended));
    }
    let mut last_change = Instant::now();
    loop {
        let counts = server.counts().await.map_err(|error| error.to_string())?;
        if counts.failed + counts.unknown > 0 {
            return Err(format!("{} jobs failed, {} are unknown", counts.failed, counts.unknown));
        }
        if tell.send_if_modified(|known| std::mem::replace(known, counts.succeeded) != counts.succeeded) {
            last_change = Instant::now();
        }
        while let Some(one) = producers.try_join_next() {
            one.map_err(|error| error.to_string())??;
        }
        if producers.is_empty() && counts.succeeded >= submitted.load(Ordering::Relaxed) {
            break;
        }
        if last_change.elapsed() > STALL {
            return Err(format!("nothing has ended for {STALL:?}, after {} jobs", counts.succeeded));
        }
        tokio::time::sleep(LOOK).await;
    }
    let (took, lifecycles) = (start.elapsed(), submitted.load(Ordering::Relaxed));
    let mut start_delay = Recorder::new()?;
    let mut started = 0;
    for worker in workers {
        let finished = tokio::task::spawn_blocking(move || worker.finish()).await;
        let report = finished.map_err(|error| error.to_string())??;
        started += report.started;
        start_delay.add_counts(&report.delays);
    }
    if started != lifecycles {
        return Err(format!("{lifecycles} jobs were accepted and {started} were started"));
    }
    Ok(Run { lifecycles, took, start_delay })
}

async fn produce(
    addr: std::net::SocketAddr,
    args: Args,
    number: u64,
    start: Instant,
    submitted: Arc<AtomicU64>,
    mut ended: watch::Receiver<u64>,
) -> Result<(), String> {
    let mut client = Client::connect(addr).await?;
    let mut step = number;
    while start.elapsed() < Duration::from_secs(args.seconds) {
        let jobs: Vec<_> = (0..args.batch)
            .map(|_| {
                // A stride that is coprime with the number of groups visits all of them.
                step = step.wrapping_add(7_919);
                json!({ "kind": KIND, "group": format!("group-{}", step % args.groups), "payload": {} })
            })
            .collect();
        let count = jobs.len() as u64;
        let body = json!({ "operations": jobs }).to_string();
        let known = submitted.fetch_add(count, Ordering::Relaxed) + count;
        client.post(&request(addr, "POST", "/v1/operations/batch", &body)).await?;
        let floor = known.saturating_sub(args.outstanding);
        if ended.wait_for(|ended| *ended >= floor).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
