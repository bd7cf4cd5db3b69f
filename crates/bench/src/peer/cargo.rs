//! A peer in Rust, built with cargo as a workspace of its own: two versions of SQLite cannot be
//! linked into one program, and a peer's dependencies do not belong in ours.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::program::{build_folder, sources};

/// Builds it; returns its path and the text of its lock file.
pub(crate) fn build(name: &str) -> Result<(PathBuf, String), String> {
    let sources = sources(name)?;
    eprintln!("building the peer {name}");
    let target = build_folder(name);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--release", "--locked", "--manifest-path"])
        .arg(sources.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("cargo, which builds the peer {name}, cannot be started: {error}"))?;
    if !status.success() {
        return Err(format!("the peer {name} could not be built: cargo ended with {status}"));
    }
    let versions = std::fs::read_to_string(sources.join("Cargo.lock")).unwrap_or_default();
    Ok((target.join("release").join(format!("tidegate-peer-{name}")), versions))
}
