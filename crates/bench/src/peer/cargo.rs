//! A peer in Rust, built with cargo as a workspace of its own, because two versions of SQLite cannot be linked into one
//! program.

use std::process::{Command, Stdio};

use super::lock;
use super::program::{Program, build_folder, sources};

/// Builds it; gives its version too.
pub(super) fn build(name: &str) -> Result<(Option<String>, Program), String> {
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
    let program = target.join("release").join(format!("tidegate-peer-{name}"));
    Ok((lock::of_cargo(&versions, name), Program::Binary(program)))
}
