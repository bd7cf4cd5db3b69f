//! Other implementations that make a POST happen once, around the same handler, in a separate
//! program: axum-idempotent in memory, and on Redis the minimum that does it.

use std::path::PathBuf;
use std::process::Command;

use crate::peer::{build_with_cargo, is_one_redis, url_for_peers, version_in};
use crate::server_process::ServerProcess;

/// The variable with the Redis URL. A variable, because arguments show in the list of processes,
/// and passwords with them.
const STORE_VAR: &str = "TIDEGATE_PEER_STORE";
const FOLDER: &str = "idempotency";

/// The peers of this run.
#[derive(Debug)]
pub(super) struct Peers {
    program: Option<PathBuf>,
    /// The Redis that they run on, if the store is one.
    redis: Option<String>,
    versions: Vec<String>,
}

impl Peers {
    pub(super) const fn none() -> Self {
        Self { program: None, redis: None, versions: Vec::new() }
    }

    /// Builds the peers, which takes a while the first time.
    pub(super) fn build(store: &str) -> Result<Self, String> {
        let (program, lock) = build_with_cargo(FOLDER)?;
        let redis = is_one_redis(store).then(|| url_for_peers(store));
        let versions = ["axum-idempotent", "ruts", "redis"].iter();
        let versions = versions.filter_map(|name| Some(format!("{name} {}", version_in(&lock, name)?)));
        Ok(Self { program: Some(program), redis, versions: versions.collect() })
    }

    pub(super) fn versions(&self) -> &[String] {
        &self.versions
    }

    pub(super) const fn are_there(&self) -> bool {
        self.program.is_some()
    }

    /// Returns whether there is a Redis for the lower bound.
    pub(super) const fn have_redis(&self) -> bool {
        self.program.is_some() && self.redis.is_some()
    }

    pub(super) async fn start(&self, who: &str, keep_s: u64) -> Result<ServerProcess, String> {
        let program = self.program.as_ref().ok_or("the peers were left out")?;
        let mut command = Command::new(program);
        command.args([who, &keep_s.to_string()]);
        if let Some(redis) = &self.redis {
            command.env(STORE_VAR, redis);
        }
        ServerProcess::start(command).await
    }
}
