//! Processes of the peer: each reads its task from one line, prints when it is ready, starts with
//! the next line, and exits when its input ends.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// What one prints when it has learned from every shop.
const READY: &str = "ready";

/// Several processes. Dropping it kills them.
pub(super) struct Processes(Vec<Child>);

impl Processes {
    /// Starts one for each of these lines, and waits until all are ready.
    pub(super) async fn start(main: &Path, told: Vec<Value>) -> Result<Self, String> {
        let main: PathBuf = main.to_owned();
        let started = tokio::task::spawn_blocking(move || {
            let mut processes = Self(Vec::new());
            for told in told {
                processes.0.push(spawn(&main, &told)?);
            }
            processes.0.iter_mut().try_for_each(wait_until_ready)?;
            Ok(processes)
        });
        started.await.map_err(|error| error.to_string())?
    }

    /// Starts the load.
    pub(super) fn go(&mut self) -> Result<(), String> {
        self.0.iter_mut().try_for_each(|child| write_line(child, "go"))
    }

    /// Checks that all are running: otherwise it is no measurement.
    pub(super) fn check_running(&mut self) -> Result<(), String> {
        for child in &mut self.0 {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                return Err(format!("a process of the peer ended with {status} while it was measured"));
            }
        }
        Ok(())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have exited on its own; either way nothing is left behind.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(main: &Path, told: &Value) -> Result<Child, String> {
    let mut child = Command::new("node")
        .arg(main)
        .env("NODE_ENV", "production")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("node cannot be started: {error}"))?;
    write_line(&mut child, &told.to_string())?;
    Ok(child)
}

fn write_line(child: &mut Child, line: &str) -> Result<(), String> {
    let input = child.stdin.as_mut().ok_or("a process of the peer has no input")?;
    writeln!(input, "{line}")
        .map_err(|error| format!("a process of the peer does not accept its input: {error}"))
}

fn wait_until_ready(child: &mut Child) -> Result<(), String> {
    let output = child.stdout.take().ok_or("a process of the peer has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
    if line.trim() == READY { Ok(()) } else { Err(format!("a process of the peer printed {line:?}")) }
}
