//! A peer for Python: its packages are installed with pip into an environment of its own, in the
//! exact versions of its list and no others.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::program::{build_folder, sources};

const REQUIREMENTS: &str = "requirements.txt";

/// A script with its packages.
#[derive(Debug)]
pub(crate) struct InstalledScript {
    /// The interpreter of its environment.
    pub python: PathBuf,
    /// The script that is run.
    pub main: PathBuf,
    /// The version of the package.
    pub version: Option<String>,
    /// The version of Python that runs it.
    pub python_version: String,
}

/// Installs the package `name` for the script of a folder of peers.
pub(crate) fn install_from(folder: &str, name: &str) -> Result<InstalledScript, String> {
    let (sources, folder) = (sources(folder)?, build_folder(folder));
    let list = fs::read_to_string(sources.join(REQUIREMENTS)).map_err(|error| error.to_string())?;
    let (python, installed) = (folder.join("bin/python"), folder.join(REQUIREMENTS));
    if fs::read_to_string(&installed).is_ok_and(|installed| installed == list) {
        eprintln!("the peer {name} is installed");
    } else {
        eprintln!("installing the peer {name}");
        run(name, Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        run(name, pip.arg("--requirement").arg(sources.join(REQUIREMENTS)))?;
        fs::write(&installed, &list).map_err(|error| format!("{}: {error}", installed.display()))?;
    }
    let said = Command::new(&python).arg("--version").stdin(Stdio::null()).output();
    let said = said.map_err(|error| format!("{}: {error}", python.display()))?;
    let python_version = String::from_utf8_lossy(&said.stdout).trim().replace("Python ", "");
    let version = version_of(&list, name);
    Ok(InstalledScript { python, main: sources.join("main.py"), version, python_version })
}

fn run(name: &str, command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    // Its output is no part of the report.
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.map_err(|error| format!("the peer {name} needs {program}: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("the peer {name} could not be installed: {program} ended with {status}"))
}

/// Returns the version of a package in a list of exact versions.
fn version_of(list: &str, package: &str) -> Option<String> {
    let (_, version) =
        list.lines().filter_map(|line| line.split_once("==")).find(|(name, _)| *name == package)?;
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only exact versions, and no place to load them from: that choice is the reader's.
    #[test]
    fn the_list_of_litellm_names_exact_versions_and_no_place() {
        let list = include_str!("../../peers/litellm/requirements.txt");
        assert!(version_of(list, "litellm").is_some());
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.contains("==") && !line.contains("://") && !line.starts_with('-'), "{line}");
        }
        assert_eq!(version_of("a==1\nab==2\n", "ab").as_deref(), Some("2"));
        assert_eq!(version_of("a==1\n", "b"), None);
    }
}
