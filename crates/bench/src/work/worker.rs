//! A worker process: takes jobs with a long poll, does nothing, and reports them in batches while
//! it takes the next ones, as `tidegate worker` does.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidegate_core::OperationId;
use tidegate_store::{Clock, WallClock};
use tokio::sync::{mpsc, oneshot};

use super::{Args, KIND};
use crate::client::{Client, request};
use crate::report::Recorder;
use crate::server_process::parent_gone;

/// The most reports in one request.
const REPORTS_MAX: usize = 100;
/// The most reports that wait.
const WAITING_MAX: usize = 1_000;

/// What a worker process did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct WorkerReport {
    pub started: u64,
    /// The delays from acceptance to start, in microseconds, and how many there were of each.
    pub delays: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct TakenWork {
    claims: Vec<TakenClaim>,
}

#[derive(Deserialize)]
struct TakenClaim {
    id: String,
    fence: u64,
}

/// Works until there is no one left to work for, and prints what it did.
pub(super) async fn work_until_parent_is_gone(addr: SocketAddr, args: &Args) -> Result<(), String> {
    let (report, reports) = mpsc::channel(WAITING_MAX);
    let reporting = tokio::spawn(report_all(addr, reports));
    let taken = take_all(addr, args.concurrency, parent_gone(), report).await?;
    reporting.await.map_err(|error| error.to_string())??;
    let line = serde_json::to_string(&taken).map_err(|error| error.to_string())?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(|error| error.to_string())
}

async fn take_all(
    addr: SocketAddr,
    max: usize,
    mut gone: oneshot::Receiver<()>,
    report: mpsc::Sender<TakenClaim>,
) -> Result<WorkerReport, String> {
    let mut client = Client::connect(addr).await?;
    let body = json!({ "kinds": [KIND], "max": max, "wait_ms": 20_000, "lease_ms": 30_000 }).to_string();
    let ask = request(addr, "POST", "/v1/work/take", &body);
    let (mut delays, mut started) = (Recorder::new()?, 0);
    loop {
        let (status, body) = tokio::select! {
            taken = client.send(&ask) => taken?,
            _ = &mut gone => return Ok(WorkerReport { started, delays: delays.counts() }),
        };
        if status != 200 {
            return Err(format!("a take returned {status}: {}", String::from_utf8_lossy(body)));
        }
        let taken: TakenWork = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let now_ms = WallClock.now().as_micros() / 1_000;
        for claim in taken.claims {
            let id: OperationId = claim.id.parse().map_err(|_| "a claim has no id")?;
            delays.record(Duration::from_millis(now_ms.saturating_sub(id.accepted_at_millis())));
            started += 1;
            report.send(claim).await.map_err(|_| "reports cannot be sent")?;
        }
    }
}

async fn report_all(addr: SocketAddr, mut reports: mpsc::Receiver<TakenClaim>) -> Result<(), String> {
    let mut client = Client::connect(addr).await?;
    let mut batch = Vec::new();
    while reports.recv_many(&mut batch, REPORTS_MAX).await > 0 {
        let one = |claim: TakenClaim| json!({ "id": claim.id, "fence": claim.fence, "outcome": "succeeded" });
        let settlements: Vec<_> = batch.drain(..).map(one).collect();
        let body = json!({ "settlements": settlements }).to_string();
        let (status, body) = client.send(&request(addr, "POST", "/v1/work/settle", &body)).await?;
        let told = String::from_utf8_lossy(body);
        if status != 200 || told.contains("\"applied\":false") || told.contains("\"error\"") {
            return Err(format!("a settlement returned {status}: {told}"));
        }
    }
    Ok(())
}
