//! Programs in other languages, found on this machine and run as children of the test. They end
//! with their handle.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// Where the scripts are: named by their folder and file.
fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process")
}

/// Python with a script of ours, and the packages that it imports.
pub(crate) fn python(script: &str) -> Command {
    let mut command = python_tool("python");
    command.arg(scripts().join(script));
    command
}

/// A program of the Python packages.
pub(crate) fn python_tool(name: &str) -> Command {
    let tool = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python/bin").join(name);
    assert!(tool.exists(), "there is no {}: ./test installs it", tool.display());
    Command::new(tool)
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

/// Node with a script of ours that imports nothing but what Node has.
pub(crate) fn bare_node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(scripts().join(script));
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
