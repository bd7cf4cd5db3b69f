//! Programs in other languages, found on this machine and run as children of the test. They end with their handle.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Where the scripts are: named by their folder and file.
fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process")
}

/// Python with a script of ours.
pub(crate) fn python(script: &str) -> Command {
    let has_requests = |python: &&str| {
        let asked = Command::new(python).args(["-c", "import requests"]).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    let python = ["python3", "/usr/bin/python3"].into_iter().find(has_requests);
    let mut command = Command::new(python.expect("no python3 here can import requests: ./test installs it"));
    command.arg(scripts().join(script));
    command
}

/// Python with a script of ours, and the packages that it imports.
pub(crate) fn python_with_packages(script: &str) -> Command {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python/bin/python");
    assert!(python.exists(), "there are no packages at {}: ./test installs them", python.display());
    let mut command = Command::new(python);
    command.arg(scripts().join(script));
    command
}

/// Node with a script of ours, which is put beside the packages that it imports.
pub(crate) fn node(script: &str) -> Command {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("node");
    assert!(
        dir.join("node_modules").is_dir(),
        "there are no packages in {}: ./test installs them",
        dir.display()
    );
    let beside = dir.join(script.replace('/', "-"));
    std::fs::copy(scripts().join(script), &beside).unwrap();
    let mut command = Command::new("node");
    command.arg(beside);
    command
}

/// A service that runs. Dropping it kills it.
pub(crate) struct Service {
    child: Child,
    /// Where it is: `http://127.0.0.1:PORT`.
    pub address: String,
}

impl Service {
    /// It says its port on a line of its own.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port: u16 = line.trim().parse().expect("its port");
        Self { child, address: format!("http://127.0.0.1:{port}") }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a client to its end; what it says is JSON.
pub(crate) fn run(command: &mut Command) -> Value {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
