//! `worker`: executes operations of built-in kinds in a process of its own. It takes them from a
//! server that leaves these kinds to remote workers, with the executors of its own configuration,
//! so the credentials of the upstreams need not be where the server is.

mod active;
mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tidegate::{Executors, OnUnknown, Time, Verdict};
use tidegate_core::Fence;
use tidegate_core::bounds::WORK_BATCH_MAX;
use tidegate_server::Config;
use tidegate_server::config::Overrides;
use tidegate_store::{Clock, WallClock};
use tidegate_upstream::{AcceptedJob, Call, Outcome};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::args::WorkerArgs;
use crate::client::Client;
use crate::error::CliError;
use crate::output::Output;
use crate::serve::{DEFAULT_FILE, config_error};
use crate::signals::Signals;
use active::ActiveClaims;
use report::Report;

/// How long a take waits for work.
const WAIT: Duration = Duration::from_secs(20);
/// The first and the longest pause when the server cannot be reached.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The most reports in one request.
const REPORTS_MAX: usize = 100;

/// A claim as the server writes it. It holds secrets, so it is never printed.
#[derive(Deserialize)]
struct ClaimedWork {
    id: String,
    fence: u64,
    kind: String,
    attempt: u16,
    payload: Box<RawValue>,
    on_unknown: String,
    #[serde(default)]
    reconcile_first: bool,
    #[serde(default)]
    in_doubt: bool,
    #[serde(default)]
    deadline_at: Option<String>,
    #[serde(default)]
    alternative: Option<ClaimedAlternative>,
    #[serde(default)]
    job: Option<ClaimedJob>,
    #[serde(default)]
    completion_token: Option<String>,
}

/// The alternative that was granted.
#[derive(Debug, Deserialize)]
struct ClaimedAlternative {
    name: String,
}

/// A job that an earlier attempt left with an upstream.
#[derive(Debug, Deserialize)]
struct ClaimedJob {
    since: String,
    external_id: Option<String>,
    memo: Option<Box<RawValue>>,
    cancel_requested: bool,
}

#[derive(Deserialize)]
struct TakenWork {
    claims: Vec<ClaimedWork>,
}

/// What every claim is executed with.
struct Worker {
    client: Client,
    executors: Executors,
    kinds: Vec<String>,
    lease: Duration,
    slots: Arc<Semaphore>,
    active: ActiveClaims,
    reports: mpsc::UnboundedSender<Report>,
}

pub(crate) async fn run(args: WorkerArgs, output: &Output) -> Result<(), CliError> {
    let mut signals = Signals::new()?;
    let file = args.config.or_else(|| Path::new(DEFAULT_FILE).exists().then(|| PathBuf::from(DEFAULT_FILE)));
    let over = Overrides::default();
    let config = Config::load(file.as_deref(), &over).map_err(|problems| config_error(&problems))?;
    let (executors, models) = tidegate_server::built_in_executors(&config)?;
    let kinds = kinds(args.kinds, &config, &executors)?;
    tidegate_server::check_worker_keys(&config, &kinds)?;
    let (reports, finished) = mpsc::unbounded_channel();
    let concurrency = usize::try_from(args.concurrency).unwrap_or(1);
    let worker = Arc::new(Worker {
        client: Client::new(&args.remote)?,
        executors,
        kinds,
        lease: Duration::from_secs(args.lease_s),
        slots: Arc::new(Semaphore::new(concurrency)),
        active: ActiveClaims::default(),
        reports,
    });
    output.print_status(&format!(
        "tidegate works for {}: {} at once, kinds {}",
        args.remote.server,
        concurrency,
        worker.kinds.join(", ")
    ));
    let reporting = tokio::spawn(report_all(worker.client.clone(), finished, worker.lease));
    let extending = tokio::spawn(extend_all(worker.client.clone(), worker.active.clone(), worker.lease));
    let stopping = CancellationToken::new();
    let mut taking = tokio::spawn(take_all(Arc::clone(&worker), stopping.clone()));
    tokio::spawn(models.run(stopping.clone()));
    let refused = tokio::select! {
        () = signals.next() => None,
        ended = &mut taking => Some(ended.unwrap_or_else(|_| Err(CliError::new("The worker stopped.")))),
    };
    tracing::info!("stopping: operations in progress may finish");
    stopping.cancel();
    let drained = async {
        if !taking.is_finished() {
            let _ = taking.await;
        }
        // All slots are free when nothing is executed any more.
        drop(worker.slots.acquire_many(args.concurrency).await);
        drop(worker);
        let _ = reporting.await;
        extending.abort();
    };
    signals.run_until_signal(drained).await?;
    refused.unwrap_or(Ok(()))
}

/// The kinds to work for: those asked for, or all built-in ones that the configuration leaves to
/// remote workers.
fn kinds(asked: Vec<String>, config: &Config, executors: &Executors) -> Result<Vec<String>, CliError> {
    let remote = config.remote_kinds.iter().map(|kind| kind.name.clone());
    let kinds = match asked.is_empty() {
        true => remote.filter(|kind| executors.contains_key(kind.as_str())).collect(),
        false => asked,
    };
    if let Some(unknown_kind) = kinds.iter().find(|kind| !executors.contains_key(kind.as_str())) {
        let known: Vec<&str> = executors.keys().map(AsRef::as_ref).collect();
        let message =
            format!("This command cannot execute kind {unknown_kind:?}; it can: {}.", known.join(", "));
        return Err(CliError::usage(message).hint("write a worker of your own: docs/workers.md"));
    }
    if kinds.is_empty() {
        let message = "No built-in kind is left to remote workers in this configuration.";
        return Err(
            CliError::usage(message).hint("add a [[kind]] with name = \"http\" and worker = \"remote\"")
        );
    }
    Ok(kinds)
}

/// Takes operations while there are free slots.
async fn take_all(worker: Arc<Worker>, stopping: CancellationToken) -> Result<(), CliError> {
    let mut pause = PAUSE;
    loop {
        let first = tokio::select! {
            slot = Arc::clone(&worker.slots).acquire_owned() => slot,
            () = stopping.cancelled() => return Ok(()),
        };
        let Ok(first) = first else { return Ok(()) };
        let more = worker.slots.available_permits();
        let max = more + 1;
        let taken = tokio::select! {
            taken = take(&worker, max) => taken,
            () = stopping.cancelled() => return Ok(()),
        };
        let claims = match taken {
            Ok(claims) => claims,
            // What the server refuses will be refused again.
            Err(error) if error.is_refused => return Err(error),
            Err(error) => {
                tracing::warn!(error = error.message, "cannot take work now; trying again");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
                continue;
            }
        };
        pause = PAUSE;
        let mut slot = Some(first);
        for claim in claims {
            let slot = match slot.take() {
                Some(slot) => slot,
                None => match Arc::clone(&worker.slots).acquire_owned().await {
                    Ok(slot) => slot,
                    Err(_) => return Ok(()),
                },
            };
            let worker = Arc::clone(&worker);
            tokio::spawn(async move {
                let report = worker.execute(claim).await;
                // The end of the process is the only receiver's end.
                let _ = worker.reports.send(report);
                drop(slot);
            });
        }
    }
}

async fn take(worker: &Worker, max: usize) -> Result<Vec<ClaimedWork>, CliError> {
    let lease_ms = u64::try_from(worker.lease.as_millis()).unwrap_or(u64::MAX);
    let wait_ms = u64::try_from(WAIT.as_millis()).unwrap_or(0);
    let body = json!({
        "kinds": worker.kinds, "max": max.min(WORK_BATCH_MAX), "wait_ms": wait_ms, "lease_ms": lease_ms,
    });
    let answer = worker.client.exchange(Method::POST, "/v1/work/take", body.to_string().into(), WAIT).await?;
    let taken = serde_json::from_slice::<TakenWork>(&answer);
    Ok(taken.map_err(|error| CliError::new(format!("The server's claims cannot be read: {error}.")))?.claims)
}

impl Worker {
    /// Executes one claim, unless it is lost or canceled meanwhile.
    async fn execute(&self, claim: ClaimedWork) -> Report {
        // A poll that passes a cancel on is not stopped by it, nor is a submit whose job can be
        // canceled only once it is known.
        let is_canceling = match &claim.job {
            Some(job) => job.cancel_requested,
            None => self.executors.get(claim.kind.as_str()).is_some_and(|one| one.finishes_canceled_calls()),
        };
        let (stop, held) = self.active.hold(&claim.id, claim.fence, is_canceling);
        let now = WallClock.now();
        let outcome = tokio::select! {
            outcome = self.call(&claim, now) => Some(outcome),
            () = stop.cancelled() => None,
        };
        if let Some(Verdict::Unavailable(fault)) = outcome.as_ref().map(|outcome| &outcome.verdict) {
            let (operation_id, reason) = (&claim.id, &fault.message);
            tracing::warn!(
                operation_id,
                reason,
                "given back unsent: this worker's configuration differs from the server's"
            );
        }
        let report = match outcome {
            Some(outcome) => Report::new(&claim.id, claim.fence, outcome, WallClock.now()),
            // A poll that is stopped leaves the job as it is; the next one passes the cancel on.
            None if claim.job.is_some() => Report::returned(&claim.id, claim.fence),
            None => Report::stopped(&claim.id, claim.fence),
        };
        report.holding(held)
    }

    async fn call(&self, claim: &ClaimedWork, now: Time) -> Outcome {
        let Some(executor) = self.executors.get(claim.kind.as_str()) else {
            return Outcome::unanswered(Verdict::Returned);
        };
        let on_unknown = match claim.on_unknown.as_str() {
            "repeat" => OnUnknown::Repeat,
            "reconcile" => OnUnknown::Reconcile,
            _ => OnUnknown::Ask,
        };
        let call = Call::new(&claim.id, claim.payload.get().as_bytes(), now)
            .with_attempt(claim.attempt)
            .with_fence(Fence(claim.fence))
            .with_reconcile_first(claim.reconcile_first)
            .with_doubt(claim.in_doubt)
            .with_on_unknown(on_unknown)
            .with_deadline(claim.deadline_at.as_deref().and_then(Time::parse_rfc_3339))
            .with_completion_token(claim.completion_token.as_deref())
            .with_alternative(claim.alternative.as_ref().map(|granted| granted.name.as_str()));
        match &claim.job {
            None => executor.carry(call).await,
            Some(job) => {
                let memo = job.memo.as_deref().map(report::memo_text).unwrap_or_default();
                let memo = memo.as_bytes();
                let since = Time::parse_rfc_3339(&job.since).unwrap_or(now);
                let (external_id, cancel_requested) = (job.external_id.as_deref(), job.cancel_requested);
                executor.poll(call, AcceptedJob { since, external_id, memo, cancel_requested }).await
            }
        }
    }
}

/// Extends all claims at a third of the lease; stops those that are lost or canceled.
async fn extend_all(client: Client, active: ActiveClaims, lease: Duration) {
    loop {
        tokio::time::sleep(lease / 3).await;
        let claims = active.claims();
        if claims.is_empty() {
            continue;
        }
        let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        let claims =
            claims.iter().map(|(id, fence)| json!({ "id": id, "fence": fence, "lease_ms": lease_ms }));
        let body = json!({ "claims": claims.collect::<Vec<_>>() }).to_string();
        match client.exchange(Method::POST, "/v1/work/extend", body.into(), Duration::ZERO).await {
            Ok(answer) => active.stop_lost(&answer),
            Err(error) => tracing::warn!(error = error.message, "claims could not be extended"),
        }
    }
}

/// Reports what became of claims, several at once.
async fn report_all(client: Client, mut reports: mpsc::UnboundedReceiver<Report>, lease: Duration) {
    let mut batch = Vec::new();
    while reports.recv_many(&mut batch, REPORTS_MAX).await > 0 {
        let until = Instant::now() + lease;
        for part in report::split(batch.drain(..)) {
            send_reports(&client, part, until).await;
        }
    }
}

/// Sends reports, again and again until each is answered or their leases are over.
async fn send_reports(client: &Client, mut reports: Vec<Report>, until: Instant) {
    let mut pause = PAUSE;
    loop {
        let texts: Vec<&str> = reports.iter().map(|report| &*report.json).collect();
        let body = Bytes::from(format!("{{\"settlements\":[{}]}}", texts.join(",")));
        match client.exchange(Method::POST, "/v1/work/settle", body, Duration::ZERO).await {
            Ok(answer) => {
                report::log_refused(&answer);
                reports = report::unanswered(&answer, reports);
                if reports.is_empty() {
                    return;
                }
                tracing::warn!(count = reports.len(), "reports were not answered; trying again");
            }
            Err(error) if error.is_refused => {
                tracing::error!(error = error.message, "reports were not accepted");
                return;
            }
            Err(error) => {
                tracing::warn!(error = error.message, "reports cannot be sent now; trying again");
            }
        }
        if Instant::now() >= until {
            tracing::error!(count = reports.len(), "reports were not accepted before their leases ended");
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
