//! The views of a server with a long queue: how large they are, and how long they take.

use std::net::SocketAddr;

use serde::Serialize;
use tidegate_server::Server;
use tokio::time::Instant;

use super::{Args, config};
use crate::call;
use crate::client::{Client, request};
use crate::delayed_backlog::DelayedBacklog;
use crate::report::{Latency, Recorder};
use crate::scratch::Scratch;

/// Operations in a request that fills the store.
const BATCH: u64 = 1_000;

/// The views, and what they show.
#[derive(Debug, Serialize)]
pub(super) struct ViewsReport {
    operations: u64,
    groups: u64,
    filled_per_s: f64,
    pub overview: ViewReport,
    groups_view: ViewReport,
    operations_view: ViewReport,
    summary: ViewReport,
    pub metrics: ViewReport,
}

/// One view.
#[derive(Debug, Serialize)]
pub(super) struct ViewReport {
    path: &'static str,
    pub bytes: usize,
    pub time: Latency,
}

pub(super) async fn measure(args: &Args) -> Result<ViewsReport, String> {
    let scratch = Scratch::new(&args.store)?;
    let server = Server::start(config(scratch.url(), call::NOWHERE)?).await;
    let server = server.map_err(|error| error.to_string())?;
    eprintln!("filling {} operations in {} groups", args.operations, args.groups);
    let report = fill_and_look(&server, args).await;
    server.shutdown().await;
    report
}

async fn fill_and_look(server: &Server, args: &Args) -> Result<ViewsReport, String> {
    let start = Instant::now();
    let Args { operations, groups, payload, .. } = *args;
    DelayedBacklog { operations, groups, payload, batch: BATCH }.submit(&[server.addr]).await?;
    let filled_per_s = (args.operations as f64 / start.elapsed().as_secs_f64()).round();
    let counts = server.counts().await.map_err(|error| error.to_string())?;
    eprintln!("looking at it");
    Ok(ViewsReport {
        operations: counts.queued + counts.waiting,
        groups: args.groups,
        filled_per_s,
        overview: view(server.addr, "/", args.requests).await?,
        groups_view: view(server.addr, "/groups", args.requests).await?,
        operations_view: view(server.addr, "/operations", args.requests).await?,
        summary: view(server.addr, "/v1/summary", args.requests).await?,
        metrics: view(server.addr, "/metrics", args.requests).await?,
    })
}

/// Requests a view again and again, on one connection.
async fn view(addr: SocketAddr, path: &'static str, requests: usize) -> Result<ViewReport, String> {
    let (mut client, request) = (Client::connect(addr).await?, request(addr, "GET", path, ""));
    let (mut recorder, mut bytes) = (Recorder::new()?, 0);
    for _ in 0..requests {
        let started = Instant::now();
        let (status, body) = client.send(&request).await?;
        if status != 200 {
            return Err(format!("{path} responded with {status}"));
        }
        bytes = bytes.max(body.len());
        recorder.record(started.elapsed());
    }
    Ok(ViewReport { path, bytes, time: recorder.latency() })
}
