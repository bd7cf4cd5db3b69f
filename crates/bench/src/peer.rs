//! Peers under the same load in the same run: other queues, each a separate program, built before
//! anything is measured and run one after the other when nothing else is. None of them is linked
//! into this one.

mod cargo;
mod lock;
mod npm;
mod program;
mod site;
mod venv;

use serde::{Deserialize, Serialize};

use crate::operations::Args;
pub(crate) use cargo::build as build_with_cargo;
pub(crate) use lock::cargo_version as version_in;
pub(crate) use npm::{InstalledPackage, install_from as install_with_npm};
use program::Program;
use site::StoreSite;
pub(crate) use site::url_for_peers;
pub(crate) use venv::{InstalledScript, install_from as install_with_pip};

/// The queues to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Peer {
    /// An embedded job queue on SQLite, built with cargo: for a store on disk.
    Effectum,
    /// A job queue for Node without groups: for a Redis or a PostgreSQL.
    Bullmq,
    /// A queue for Node with ordered groups: for a Redis.
    Groupmq,
    /// A job queue for Node, with its policy that keeps the order of each key: for a PostgreSQL.
    PgBoss,
}

/// The load on a peer.
#[derive(Clone, Debug)]
pub(crate) struct PeerLoad {
    pub store: String,
    pub seconds: u64,
    pub producers: u64,
    /// Jobs that each of its worker processes handles at once.
    pub workers: u64,
    /// Its worker processes.
    pub processes: u64,
    /// Jobs that a producer adds in one call.
    pub batch: u64,
    pub groups: u64,
    pub payload: u64,
    pub outstanding: u64,
}

impl From<&Args> for PeerLoad {
    fn from(args: &Args) -> Self {
        Self {
            store: args.store.clone(),
            seconds: args.load.seconds,
            producers: args.load.producers as u64,
            workers: args.workers as u64,
            processes: 1,
            batch: 1,
            groups: args.load.groups,
            payload: args.load.payload as u64,
            outstanding: args.load.outstanding,
        }
    }
}

/// The figures of a peer.
#[derive(Debug, Serialize)]
pub(crate) struct PeerReport {
    name: &'static str,
    version: Option<String>,
    /// The runtime that executes it, where that is no part of it.
    runs_on: Option<String>,
    jobs: u64,
    jobs_per_s: f64,
    add_p50_ms: f64,
    add_p99_ms: f64,
    /// From when a job was added until a worker has it, where that is measured.
    start_p50_ms: Option<f64>,
    start_p99_ms: Option<f64>,
    /// Our lifecycles per job of the peer.
    ours_to_theirs: f64,
}

impl PeerReport {
    pub(crate) const fn ours_to_theirs(&self) -> f64 {
        self.ours_to_theirs
    }
}

/// The output of its program.
#[derive(Debug, Deserialize)]
struct PeerOutput {
    jobs: u64,
    jobs_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
    start_p50_ms: Option<f64>,
    start_p99_ms: Option<f64>,
}

/// A peer that is ready to run.
#[derive(Debug)]
pub(crate) struct PreparedPeer {
    name: &'static str,
    version: Option<String>,
    program: Program,
}

/// Builds or installs the requested peers, which takes a while the first time. Refuses one that
/// does not fit the store before that.
pub(crate) fn prepare(peers: &[Peer], store: &str) -> Result<Vec<PreparedPeer>, String> {
    let site = StoreSite::of(store);
    peers.iter().try_for_each(|peer| peer.check(site))?;
    peers.iter().map(|peer| peer.prepare(store)).collect()
}

/// Returns whether a store is a Redis that is not a cluster.
pub(crate) fn is_one_redis(store: &str) -> bool {
    StoreSite::of(store) == StoreSite::Redis
}

impl Peer {
    const fn name(self) -> &'static str {
        match self {
            Self::Effectum => "effectum",
            Self::Bullmq => "bullmq",
            Self::Groupmq => "groupmq",
            Self::PgBoss => "pg-boss",
        }
    }

    const fn sites(self) -> &'static [StoreSite] {
        match self {
            Self::Effectum => &[StoreSite::Disk],
            Self::Bullmq => &[StoreSite::Redis, StoreSite::Postgres],
            Self::Groupmq => &[StoreSite::Redis],
            Self::PgBoss => &[StoreSite::Postgres],
        }
    }

    fn check(self, site: StoreSite) -> Result<(), String> {
        if self.sites().contains(&site) {
            return Ok(());
        }
        let wanted: Vec<_> = self.sites().iter().map(|site| format!("{site} ({})", site.url())).collect();
        let (name, wanted) = (self.name(), wanted.join(" or "));
        Err(format!("the peer {name} does not run on {site}: give it {wanted} with --store, or leave it out"))
    }

    fn prepare(self, store: &str) -> Result<PreparedPeer, String> {
        let name = self.name();
        let (version, program) = match self {
            Self::Effectum => {
                let (program, lock) = cargo::build(name)?;
                (lock::cargo_version(&lock, name), Program::Binary(program))
            }
            Self::Bullmq | Self::Groupmq | Self::PgBoss => npm::install(name, store)?,
        };
        Ok(PreparedPeer { name, version, program })
    }
}

impl PreparedPeer {
    /// Runs it under a load.
    pub(crate) fn run(&self, load: &PeerLoad, ours_per_s: f64) -> Result<PeerReport, String> {
        let name = self.name;
        eprintln!("running {name} for {} s", load.seconds);
        let printed = self.program.run(name, load)?;
        let printed: PeerOutput = serde_json::from_slice(&printed)
            .map_err(|error| format!("the peer {name} printed something other than its figures: {error}"))?;
        if printed.jobs == 0 {
            return Err(format!("the peer {name} did no job in {} s", load.seconds));
        }
        Ok(PeerReport {
            name,
            version: self.version.clone(),
            runs_on: self.program.runs_on(),
            jobs: printed.jobs,
            jobs_per_s: printed.jobs_per_s,
            add_p50_ms: printed.p50_ms,
            add_p99_ms: printed.p99_ms,
            start_p50_ms: printed.start_p50_ms,
            start_p99_ms: printed.start_p99_ms,
            ours_to_theirs: (ours_per_s / printed.jobs_per_s * 100.0).round() / 100.0,
        })
    }
}

#[cfg(test)]
mod tests;
