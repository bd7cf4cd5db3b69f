//! Operations that await their completion: the memory that each takes, and the CPU time of an
//! engine that has nothing but them. In a process of its own, with nothing else in its memory.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate::upstream::{JobNote, Outcome, RemoteKind, RemoteKindConfig};
use tidegate::{Engine, Options, Submission, Verdict, WorkReport, WorkRequest};
use tokio::time::Instant;

use super::{Args, KIND};
use crate::goal::to_thousandths;
use crate::machine::{cpu_seconds, used_kib};
use crate::scratch::{self, Scratch};

const BATCH: u64 = 1_000;
const LEASE: Duration = Duration::from_secs(30);
/// Longer than any run.
const TIMEOUT: Duration = Duration::from_secs(3_600);
/// Pause for what is still being written after the last response.
const CALM: Duration = Duration::from_secs(1);

/// The figures.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AwaitingReport {
    operations: u64,
    filled_per_s: f64,
    /// Growth of the process per operation, with its cache of payloads.
    bytes_per_operation: f64,
    idle_seconds: f64,
    /// Percent of one core.
    idle_cpu_percent: f64,
}

impl AwaitingReport {
    pub(super) const fn bytes_each(&self) -> f64 {
        self.bytes_per_operation
    }

    pub(super) const fn idle_cpu_percent(&self) -> f64 {
        self.idle_cpu_percent
    }
}

/// Lets a child process measure, on a fresh store.
pub(super) async fn measure(args: &Args) -> Result<AwaitingReport, String> {
    let scratch = Scratch::on_any_store(&args.store)?;
    eprintln!("a child process fills {} operations that await their completion", args.awaiting);
    let url = scratch.url().to_owned();
    let measured = tokio::task::spawn_blocking(move || run_child(&url)).await;
    measured.map_err(|error| error.to_string())?
}

fn run_child(url: &str) -> Result<AwaitingReport, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args(std::env::args_os().skip(1))
        .args(["--await-in", url])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("a child process cannot be started: {error}"))?;
    let stdout = child.stdout.take().ok_or("the child has no output")?;
    let mut line = String::new();
    let read = BufReader::new(stdout).read_line(&mut line);
    let ended = child.wait().map_err(|error| error.to_string())?;
    read.map_err(|error| format!("the child's output cannot be read: {error}"))?;
    serde_json::from_str(&line).map_err(|_| format!("the child ended with {ended} before its report"))
}

/// In the child: fills, watches, reports.
pub(super) async fn fill_and_report(url: &str, args: &Args) -> Result<(), String> {
    let told = |error: tidegate::Error| error.to_string();
    let kind = RemoteKind::new(&RemoteKindConfig::new(KIND));
    // What is kept of payloads is bounded whatever the number of operations.
    let options = Options::default().with_payload_cache_bytes(0);
    let store = scratch::open(url).await?;
    let engine = Engine::builder(store).options(options).remote(KIND, Arc::new(kind));
    let engine = engine.open().await.map_err(told)?;
    // What the process needs for any operation at all is not theirs.
    fill(&engine, 0, BATCH).await?;
    tokio::time::sleep(CALM).await;
    let (before, start) = (resident()?, Instant::now());
    let mut first = BATCH;
    while first < BATCH + args.awaiting {
        let count = BATCH.min(BATCH + args.awaiting - first);
        fill(&engine, first, count).await?;
        first += count;
    }
    let filled_per_s = (args.awaiting as f64 / start.elapsed().as_secs_f64()).round();
    tokio::time::sleep(CALM).await;
    let grown = resident()?.saturating_sub(before);
    let running = engine.counts().await.map_err(told)?.running;
    if running != args.awaiting + BATCH {
        return Err(format!("{running} operations await their completion"));
    }
    let (start, cpu) = (Instant::now(), cpu()?);
    tokio::time::sleep(Duration::from_secs(args.idle_seconds)).await;
    let (idle, used) = (start.elapsed().as_secs_f64(), self::cpu()? - cpu);
    let report = AwaitingReport {
        operations: args.awaiting,
        filled_per_s,
        bytes_per_operation: (grown as f64 / args.awaiting as f64).round(),
        idle_seconds: to_thousandths(idle),
        idle_cpu_percent: to_thousandths(used / idle * 100.0),
    };
    let line = serde_json::to_string(&report).map_err(|error| error.to_string())?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(|error| error.to_string())
}

/// Submits operations, each in a group of its own, takes them, and reports that their jobs were
/// accepted.
async fn fill(engine: &Engine, first: u64, count: u64) -> Result<(), String> {
    let told = |error: tidegate::Error| error.to_string();
    let submission = |number: u64| Submission::new(KIND, format!("group-{number}"), "{}");
    for answer in engine.submit_all((first..first + count).map(submission).collect()).await {
        answer.map_err(told)?;
    }
    let mut left = count;
    while left > 0 {
        let max = usize::try_from(left).unwrap_or(usize::MAX);
        let request = WorkRequest { kinds: vec![KIND.into()], max, lease: LEASE };
        let claims = engine.take_work(vec![request]).await.map_err(told)?;
        let claims: Vec<_> = claims.into_iter().flatten().collect();
        left -= claims.len() as u64;
        let report = |claim: tidegate::RemoteClaim| {
            let note = JobNote { external_id: Some("job".into()), ..JobNote::default() };
            let verdict = Verdict::Accepted { poll_after: None, timeout: TIMEOUT };
            WorkReport { claim: claim.claim, outcome: Outcome::unanswered(verdict).with_job(note) }
        };
        for receipt in engine.settle_work(claims.into_iter().map(report).collect()).await.map_err(told)? {
            receipt.map_err(told)?;
        }
    }
    Ok(())
}

fn resident() -> Result<u64, String> {
    let kib = used_kib().ok_or("this system does not report the memory of a process in /proc/self/status")?;
    Ok(kib * 1_024)
}

fn cpu() -> Result<f64, String> {
    cpu_seconds().ok_or_else(|| "this system does not report CPU time in /proc/self/stat".into())
}
