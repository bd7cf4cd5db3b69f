//! A peer's program: how it is started, its input, and its output. What the figures mean is not
//! known here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::PeerLoad;
use crate::scratch;

/// The variable with the URL of a peer's store. A variable, because arguments show in the list of
/// processes, and passwords with them.
const STORE_VAR: &str = "TIDEGATE_PEER_STORE";

/// A program that can be run.
#[derive(Debug)]
pub(super) enum Program {
    /// Keeps its jobs in a given directory.
    Binary(PathBuf),
    /// Runs with node on the server that a URL names.
    Script { main: PathBuf, node_version: String, store: String },
}

impl Program {
    /// Returns the runtime that executes it, where that is no part of it.
    pub(super) fn runs_on(&self) -> Option<String> {
        match self {
            Self::Binary(_) => None,
            Self::Script { node_version, .. } => Some(format!("node {node_version}")),
        }
    }

    /// Runs it to its end; returns its output.
    pub(super) fn run(&self, name: &str, load: &PeerLoad) -> Result<Vec<u8>, String> {
        match self {
            Self::Binary(program) => {
                let beside = load.store.strip_prefix("file:").map_or_else(std::env::temp_dir, PathBuf::from);
                let dir = scratch::dir_in(&beside)?;
                let mut command = Command::new(program);
                command.arg("--dir").arg(dir.path());
                finish(command, name, load)
            }
            Self::Script { main, store, .. } => {
                let mut command = Command::new("node");
                command.arg(main).arg(name).env(STORE_VAR, store).env("NODE_ENV", "production");
                for (flag, number) in [("--processes", load.processes), ("--batch", load.batch)] {
                    command.arg(flag).arg(number.to_string());
                }
                finish(command, name, load)
            }
        }
    }
}

fn finish(mut command: Command, name: &str, load: &PeerLoad) -> Result<Vec<u8>, String> {
    let numbers = [
        ("--seconds", load.seconds),
        ("--producers", load.producers),
        ("--workers", load.workers),
        ("--groups", load.groups),
        ("--payload", load.payload),
        ("--outstanding", load.outstanding),
    ];
    let output = command
        .args(numbers.iter().flat_map(|(flag, number)| [(*flag).to_owned(), number.to_string()]))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("the peer {name} cannot be started: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("the peer {name} ended with {}", output.status))
    }
}

/// Returns the folder of a peer's sources. A program that was moved elsewhere has none.
pub(super) fn sources(folder: &str) -> Result<PathBuf, String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(folder);
    if sources.is_dir() {
        return Ok(sources);
    }
    let place = sources.display();
    Err(format!("the sources of the peers are not at {place}: run this from a checkout of the repository"))
}

/// Returns the folder a peer is built in: below cargo's target folder, so that a checkout stays
/// clean.
pub(super) fn build_folder(folder: &str) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    target.join("peers").join(folder)
}
