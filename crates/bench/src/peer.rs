//! A peer under the same load in the same run. It is a program of its own, built from the sources beside this crate,
//! because two versions of SQLite cannot be linked into one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::operations::Args;
use crate::scratch;

/// Who can be run beside us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Peer {
    /// An embedded job queue on SQLite.
    Effectum,
}

/// What the peer did.
#[derive(Debug, Serialize)]
pub(crate) struct PeerReport {
    name: String,
    jobs_per_s: f64,
    add_p50_ms: f64,
    add_p99_ms: f64,
    /// Our lifecycles for each of its jobs.
    ours_to_theirs: f64,
}

/// What its program prints.
#[derive(Debug, Deserialize)]
struct Printed {
    jobs_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// A peer that is ready to run.
#[derive(Debug)]
pub(crate) struct Built {
    name: String,
    program: PathBuf,
}

impl Peer {
    const fn package(self) -> &'static str {
        match self {
            Self::Effectum => "effectum",
        }
    }

    /// Builds it, which takes a while the first time.
    pub(crate) fn build(self) -> Result<Built, String> {
        let package = self.package();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(package);
        let manifest = sources.join("Cargo.toml");
        if !manifest.is_file() {
            let place = sources.display();
            return Err(format!(
                "the sources of the peer {package} are not at {place}: run this from a checkout of the repository"
            ));
        }
        eprintln!("building the peer {package}");
        let target = sources.join("target");
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["build", "--release", "--locked", "--manifest-path"])
            .arg(&manifest)
            .arg("--target-dir")
            .arg(&target)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .map_err(|error| format!("cargo, which builds the peer {package}, cannot be started: {error}"))?;
        if !status.success() {
            return Err(format!("the peer {package} could not be built: cargo ended with {status}"));
        }
        let program = target.join("release").join(format!("tidegate-peer-{package}"));
        let lock = std::fs::read_to_string(sources.join("Cargo.lock")).unwrap_or_default();
        let name = locked(&lock, package).map_or_else(|| package.into(), |at| format!("{package} {at}"));
        Ok(Built { name, program })
    }
}

impl Built {
    /// Runs it under the load of `args`, in a directory beside the store.
    pub(crate) fn run(&self, args: &Args, ours_per_s: f64) -> Result<PeerReport, String> {
        let beside = args.store.strip_prefix("file:").map_or_else(std::env::temp_dir, PathBuf::from);
        let dir = scratch::dir_in(&beside)?;
        eprintln!("running {} for {} s", self.name, args.seconds);
        let numbers = [
            ("--seconds", args.seconds),
            ("--producers", args.producers as u64),
            ("--workers", args.workers as u64),
            ("--payload", args.payload as u64),
            ("--outstanding", args.outstanding),
        ];
        let output = Command::new(&self.program)
            .arg("--dir")
            .arg(dir.path())
            .args(numbers.iter().flat_map(|(flag, number)| [(*flag).to_owned(), number.to_string()]))
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        if !output.status.success() {
            return Err(format!("{} ended with {}", self.name, output.status));
        }
        let printed: Printed = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("{} printed something else than its figures: {error}", self.name))?;
        Ok(PeerReport {
            name: self.name.clone(),
            jobs_per_s: printed.jobs_per_s,
            add_p50_ms: printed.p50_ms,
            add_p99_ms: printed.p99_ms,
            ours_to_theirs: (ours_per_s / printed.jobs_per_s * 100.0).round() / 100.0,
        })
    }
}

/// The version of a package in a lock file.
fn locked<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_from_a_lock_file() {
        let lock = "[[package]]\nname = \"effectum-x\"\nversion = \"9.9.9\"\n\n[[package]]\nname = \"effectum\"\nversion = \"0.7.0\"\n";
        assert_eq!(locked(lock, "effectum"), Some("0.7.0"));
        assert_eq!(locked(lock, "other"), None);
    }
}
