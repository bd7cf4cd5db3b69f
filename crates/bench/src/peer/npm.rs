//! Peers for Node: their scripts are copied to a separate folder and their packages installed there
//! with npm, by the lock file and once for all of them. No script of a package is run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::lock;
use super::program::{Program, build_folder, sources};
use super::site::url_for_peers;

/// Oldest Node that runs the scripts.
const NODE_MAJOR_MIN: u32 = 20;
const LOCK: &str = "package-lock.json";
/// A copy of the lock file from which the present packages were installed.
const INSTALLED: &str = "installed.json";

/// An installed package.
#[derive(Debug)]
pub(crate) struct InstalledPackage {
    /// The script that is run.
    pub main: PathBuf,
    /// The version of the package.
    pub version: Option<String>,
    /// The version of Node that runs it.
    pub node_version: String,
}

/// Installs a queue; also returns its version.
pub(super) fn install(name: &str, store: &str) -> Result<(Option<String>, Program), String> {
    let InstalledPackage { main, version, node_version } = install_from("node", name)?;
    Ok((version, Program::Script { main, node_version, store: url_for_peers(store) }))
}

/// Installs the package `name` with the scripts of a folder of peers.
pub(crate) fn install_from(folder: &str, name: &str) -> Result<InstalledPackage, String> {
    let (sources, folder) = (sources(folder)?, build_folder(folder));
    let node_version = node_version(name)?;
    let told =
        |error: io::Error| format!("the peer {name} cannot be copied to {}: {error}", folder.display());
    copy(&sources, &folder).map_err(told)?;
    let versions = fs::read_to_string(folder.join(LOCK)).map_err(told)?;
    if fs::read_to_string(folder.join(INSTALLED)).is_ok_and(|installed| installed == versions) {
        eprintln!("the peer {name} is installed");
    } else {
        eprintln!("installing the peer {name}");
        packages(name, &folder)?;
        fs::write(folder.join(INSTALLED), &versions).map_err(told)?;
    }
    Ok(InstalledPackage {
        main: folder.join("main.js"),
        version: lock::npm_version(&versions, name),
        node_version,
    })
}

/// Checks whether a suitable Node is installed.
fn node_version(peer: &str) -> Result<String, String> {
    let needs = format!("the peer {peer} needs node {NODE_MAJOR_MIN} or newer, and npm");
    let output = Command::new("node").arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{needs}; node cannot be started: {error}"))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().trim_start_matches('v').to_owned();
    match major(&version) {
        Some(major) if major >= NODE_MAJOR_MIN => Ok(version),
        _ => Err(format!("{needs}; this node says its version is {version:?}")),
    }
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

fn packages(peer: &str, folder: &Path) -> Result<(), String> {
    let status = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(folder)
        .stdin(Stdio::null())
        // Its output is no part of the report.
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("npm, which installs the peer {peer}, cannot be started: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("the peer {peer} could not be installed in {}: npm ended with {status}", folder.display()))
}

/// Copies scripts and folders of scripts. Existing files that are not in the sources stay: the
/// packages.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        // The packages may have been installed by hand among the sources.
        if entry.file_name() == "node_modules" {
            continue;
        }
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_major_version_is_the_first_number() {
        assert_eq!(major("20.20.2"), Some(20));
        assert_eq!(major(""), None);
        assert_eq!(major("nightly"), None);
    }

    #[test]
    fn scripts_are_copied_and_packages_left_alone() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(from.path().join("peers")).unwrap();
        fs::create_dir_all(from.path().join("node_modules/by-hand")).unwrap();
        fs::create_dir_all(to.path().join("node_modules/installed")).unwrap();
        fs::write(from.path().join("peers/a.js"), "new").unwrap();
        for _ in 0..2 {
            copy(from.path(), to.path()).unwrap();
        }
        assert_eq!(fs::read_to_string(to.path().join("peers/a.js")).unwrap(), "new");
        assert!(to.path().join("node_modules/installed").is_dir());
        assert!(!to.path().join("node_modules/by-hand").exists());
    }
}
