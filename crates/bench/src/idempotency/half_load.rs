//! The latency that the proxy adds at half of its throughput: requests at a steady rate whatever
//! becomes of those before them, to the service directly and through the proxy, in turns. A
//! request's time counts from when it was due.

use std::net::SocketAddr;
use std::sync::mpsc as blocking;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Args;
use super::cases::{CaseReport, CaseServers, Implementation};
use super::load::{Load, send_checked};
use super::peers::Peers;
use crate::client::Client;
use crate::goal::to_thousandths;
use crate::report::{Latency, Recorder, median};

/// Share of the proxy's throughput at saturation.
const SHARE: f64 = 0.5;
const WARM_UP: Duration = Duration::from_secs(1);

/// The figures of one load.
#[derive(Debug, Serialize)]
pub(super) struct HalfLoadReport {
    load: Load,
    requests_per_s: f64,
    bare_p99_ms: f64,
    proxy_p99_ms: f64,
    /// The median of what each turn added, not the difference of two medians: a turn's two figures
    /// belong together.
    added_p99_ms: f64,
    turns: Vec<Turn>,
}

/// One turn. Requests to the service itself have no key.
#[derive(Debug, Serialize)]
struct Turn {
    bare: Latency,
    proxy: Latency,
}

impl HalfLoadReport {
    fn of(load: Load, rate: f64, turns: Vec<Turn>) -> Self {
        let of = |figure: fn(&Turn) -> f64| to_thousandths(median(turns.iter().map(figure)));
        Self {
            load,
            requests_per_s: rate.round(),
            bare_p99_ms: of(|turn| turn.bare.p99_ms()),
            proxy_p99_ms: of(|turn| turn.proxy.p99_ms()),
            added_p99_ms: of(|turn| turn.proxy.p99_ms() - turn.bare.p99_ms()),
            turns,
        }
    }

    pub(super) const fn load(&self) -> Load {
        self.load
    }

    pub(super) const fn added_p99_ms(&self) -> f64 {
        self.added_p99_ms
    }
}

pub(super) async fn measure(
    args: &Args,
    peers: &Peers,
    cases: &[CaseReport],
) -> Result<Vec<HalfLoadReport>, String> {
    let mut loads = Vec::new();
    for load in [Load::NoKey, Load::NewKeys, Load::Replays] {
        if let Some(most) = CaseReport::per_s(cases, Implementation::Proxy, load) {
            loads.push((load, (most * SHARE).max(1.0), Vec::new()));
        }
    }
    for turn in 1..=args.turns {
        for (load, rate, turns) in &mut loads {
            eprintln!("turn {turn} of {}: {rate:.0} requests each second, {}", args.turns, load.name());
            turns.push(one_turn(args, peers, *load, *rate).await?);
        }
    }
    Ok(loads.into_iter().map(|(load, rate, turns)| HalfLoadReport::of(load, rate, turns)).collect())
}

async fn one_turn(args: &Args, peers: &Peers, load: Load, rate: f64) -> Result<Turn, String> {
    let stage = CaseServers::of(Implementation::Proxy, args, peers).await?;
    let (service, proxy) = (stage.service().addr, stage.front.addr);
    load.fill(proxy).await?;
    let time = Duration::from_secs(args.seconds);
    steady(service, Load::NoKey, rate, WARM_UP, args.connections).await?;
    let bare = steady(service, Load::NoKey, rate, time, args.connections).await?;
    steady(proxy, load, rate, WARM_UP, args.connections).await?;
    let before = stage.service().items().await?;
    let through = steady(proxy, load, rate, time, args.connections).await?;
    let grown = stage.service().items().await? - before;
    let wanted = if load == Load::Replays { 0 } else { through.latency().samples() };
    if grown != wanted {
        return Err(format!(
            "the proxy at half load, {}: {grown} items where {wanted} are right",
            load.name()
        ));
    }
    Ok(Turn { bare: bare.latency(), proxy: through.latency() })
}

/// Sends requests at a rate, each on the next connection.
async fn steady(
    to: SocketAddr,
    load: Load,
    rate: f64,
    time: Duration,
    connections: usize,
) -> Result<Recorder, String> {
    let run = load.next_run();
    let (mut lines, mut tasks) = (Vec::new(), tokio::task::JoinSet::new());
    for _ in 0..connections {
        let (line, due) = mpsc::unbounded_channel();
        lines.push(line);
        tasks.spawn(send_when_due(Client::connect(to).await?, load, (to, run.clone()), due));
    }
    let pacer = tokio::task::spawn_blocking(move || pace(&lines, rate, time));
    let mut all = Recorder::new()?;
    while let Some(ended) = tasks.join_next().await {
        all.merge(&ended.map_err(|error| error.to_string())??);
    }
    pacer.await.map_err(|error| error.to_string())?;
    Ok(all)
}

/// Announces when each request is due. On a thread of its own: the runtime's timer ticks in
/// milliseconds, which is all that the proxy may add.
fn pace(lines: &[mpsc::UnboundedSender<(u64, Instant)>], rate: f64, time: Duration) {
    // No one ever sends: the channel is only there to wait on.
    let (_hold, never) = blocking::channel::<()>();
    let start = Instant::now();
    for number in 0_u64.. {
        let after = Duration::from_secs_f64(number as f64 / rate);
        if after >= time {
            return;
        }
        let due = start + after;
        if let Some(early) = due.checked_duration_since(Instant::now()).filter(|early| !early.is_zero()) {
            let _ = never.recv_timeout(early);
        }
        if lines[number as usize % lines.len()].send((number, due)).is_err() {
            // That connection broke, which its task reports.
            return;
        }
    }
}

async fn send_when_due(
    mut client: Client,
    load: Load,
    (to, run): (SocketAddr, String),
    mut due: mpsc::UnboundedReceiver<(u64, Instant)>,
) -> Result<Recorder, String> {
    let mut recorder = Recorder::new()?;
    while let Some((number, due)) = due.recv().await {
        send_checked(&mut client, &load.request(to, &run, number)).await?;
        recorder.record(due.elapsed());
    }
    Ok(recorder)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every request is announced once, in turn, and none before it is due.
    #[tokio::test]
    async fn requests_are_due_one_after_the_other() {
        let (lines, mut ends): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::unbounded_channel()).unzip();
        pace(&lines, 10_000.0, Duration::from_millis(20));
        drop(lines);
        let mut numbers = Vec::new();
        for (line, end) in ends.iter_mut().enumerate() {
            while let Some((number, due)) = end.recv().await {
                assert_eq!(number as usize % 3, line);
                assert!(due <= Instant::now());
                numbers.push(number);
            }
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..200).collect::<Vec<_>>());
    }
}
