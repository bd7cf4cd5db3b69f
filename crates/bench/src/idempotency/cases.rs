//! The cases: the implementation, and its load. Each is measured in processes of its own on a fresh
//! store, and compared with the items that were created.

use std::fmt;

use serde::Serialize;

use super::Args;
use super::load::{KEYS, Load};
use super::peers::Peers;
use super::serve::{KeyOptions, ServeMode};
use super::wrk::{Wrk, WrkReport};
use crate::goal::to_thousandths;
use crate::report::median;
use crate::scratch::Scratch;
use crate::server_process::ServerProcess;

/// Seconds of load before the measurement.
const WARM_UP_S: u64 = 1;

/// The implementation that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Implementation {
    Bare,
    Layer,
    Proxy,
    AxumIdempotent,
    SetNx,
}

/// One case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Case {
    who: Implementation,
    load: Load,
}

impl fmt::Display for Implementation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Bare => "bare",
            Self::Layer => "the layer",
            Self::Proxy => "the proxy",
            Self::AxumIdempotent => "axum-idempotent in memory",
            Self::SetNx => "SET NX on Redis",
        })
    }
}

/// One turn of a case.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Turn {
    requests: u64,
    requests_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    /// CPU time of the measured process, without the service behind a proxy.
    cpu_us_per_request: Option<f64>,
    resident_mib: u64,
    /// Items created meanwhile.
    items: u64,
}

/// A case, with the medians of its turns.
#[derive(Debug, Serialize)]
pub(super) struct CaseReport {
    #[serde(flatten)]
    case: Case,
    requests_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    turns: Vec<Turn>,
}

impl CaseReport {
    pub(super) fn of(case: Case, turns: Vec<Turn>) -> Self {
        let of = |figure: fn(&Turn) -> f64| to_thousandths(median(turns.iter().map(figure)));
        Self {
            case,
            requests_per_s: of(|turn| turn.requests_per_s),
            p50_ms: of(|turn| turn.p50_ms),
            p99_ms: of(|turn| turn.p99_ms),
            turns,
        }
    }

    /// Returns the requests per second of a case, if it was measured.
    pub(super) fn per_s(measured: &[Self], who: Implementation, load: Load) -> Option<f64> {
        measured.iter().find(|one| one.case == Case { who, load }).map(|one| one.requests_per_s)
    }
}

/// The processes of a case.
pub(super) struct CaseServers {
    pub(super) front: ServerProcess,
    /// The service behind a proxy.
    back: Option<ServerProcess>,
    /// The store of the keys, removed with this.
    _scratch: Option<Scratch>,
}

impl CaseServers {
    pub(super) async fn of(who: Implementation, args: &Args, peers: &Peers) -> Result<Self, String> {
        // Longer than a case takes, or a replay would be a new key; no longer than that, or keys
        // would pile up.
        let keep_s = 2 * args.seconds + 60;
        let scratch = match who {
            Implementation::Layer | Implementation::Proxy => Some(Scratch::on_any_store(&args.store)?),
            Implementation::Bare | Implementation::AxumIdempotent | Implementation::SetNx => None,
        };
        let store = scratch.as_ref().map_or_else(String::new, |scratch| scratch.url().to_owned());
        let keys = KeyOptions { store, keep_s };
        let (front, back) = match who {
            Implementation::Bare => (ServeMode::Bare.start().await?, None),
            Implementation::Layer => (ServeMode::Layer(keys).start().await?, None),
            Implementation::Proxy => {
                let back = ServeMode::Bare.start().await?;
                let front = ServeMode::Proxy { upstream: back.addr, keys }.start().await?;
                (front, Some(back))
            }
            Implementation::AxumIdempotent => (peers.start("axum-idempotent", keep_s).await?, None),
            Implementation::SetNx => (peers.start("set-nx", keep_s).await?, None),
        };
        Ok(Self { front, back, _scratch: scratch })
    }

    /// Returns the process that has the items.
    pub(super) fn service(&self) -> &ServerProcess {
        self.back.as_ref().unwrap_or(&self.front)
    }
}

impl Case {
    /// Returns all cases that can be measured with these peers.
    pub(super) fn all(peers: &Peers) -> Vec<Self> {
        let mut cases = vec![Self { who: Implementation::Bare, load: Load::NoKey }];
        let mut add = |who, loads: &[Load]| cases.extend(loads.iter().map(|load| Self { who, load: *load }));
        add(Implementation::Layer, &[Load::NoKey, Load::NewKeys, Load::Replays]);
        add(Implementation::Proxy, &[Load::NoKey, Load::NewKeys, Load::Replays]);
        if peers.have_redis() {
            add(Implementation::SetNx, &[Load::NewKeys, Load::Replays]);
        }
        if peers.are_there() {
            add(Implementation::AxumIdempotent, &[Load::NewKeys, Load::Replays]);
        }
        cases
    }

    pub(super) fn name(self) -> String {
        format!("{}, {}", self.who, self.load.name())
    }

    pub(super) async fn measure(self, args: &Args, wrk: &Wrk, peers: &Peers) -> Result<Turn, String> {
        let measured = self.try_measure(args, wrk, peers).await;
        measured.map_err(|error| format!("{}: {error}", self.name()))
    }

    async fn try_measure(self, args: &Args, wrk: &Wrk, peers: &Peers) -> Result<Turn, String> {
        let stage = CaseServers::of(self.who, args, peers).await?;
        let to = stage.front.addr;
        self.load.fill(to).await?;
        wrk.load(to, self.load, WARM_UP_S).await?;
        let before = stage.service().items().await?;
        let cpu_before = stage.front.cpu_seconds();
        let counted = wrk.load(to, self.load, args.seconds).await?;
        let cpu = stage.front.cpu_seconds().zip(cpu_before).map(|(now, then)| now - then);
        let resident_mib = stage.front.used_kib()? / 1_024;
        let items = stage.service().items().await?;
        check_items(self.load, counted.requests, items, items - before, args.connections as u64)?;
        Ok(turn(&counted, cpu, resident_mib, items - before))
    }
}

fn turn(counted: &WrkReport, cpu: Option<f64>, resident_mib: u64, items: u64) -> Turn {
    let ms = |us: u64| us as f64 / 1_000.0;
    Turn {
        requests: counted.requests,
        requests_per_s: counted.per_s().round(),
        p50_ms: ms(counted.p50_us),
        p99_ms: ms(counted.p99_us),
        max_ms: ms(counted.max_us),
        cpu_us_per_request: cpu.map(|cpu| to_thousandths(cpu * 1e6 / counted.requests as f64)),
        resident_mib,
        items,
    }
}

/// Checks that the items are those that the requests were to create: for replays one per key, for
/// others one per request and up to one more for each connection that was cut when the time was
/// over.
pub(super) fn check_items(
    load: Load,
    requests: u64,
    items: u64,
    grown: u64,
    connections: u64,
) -> Result<(), String> {
    match load {
        Load::Replays if items != KEYS => {
            Err(format!("{KEYS} keys made {items} items after {requests} repeats"))
        }
        Load::NoKey | Load::NewKeys if !(requests..=requests + connections).contains(&grown) => {
            Err(format!("{requests} requests made {grown} items"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_must_be_what_was_asked_for() {
        assert_eq!(check_items(Load::Replays, 50_000, KEYS, 0, 64), Ok(()));
        assert!(check_items(Load::Replays, 50_000, KEYS + 1, 1, 64).is_err());
        for (grown, fits) in [(99, false), (100, true), (164, true), (165, false)] {
            assert_eq!(check_items(Load::NewKeys, 100, grown, grown, 64).is_ok(), fits, "{grown}");
            assert_eq!(check_items(Load::NoKey, 100, grown, grown, 64).is_ok(), fits, "{grown}");
        }
    }
}
