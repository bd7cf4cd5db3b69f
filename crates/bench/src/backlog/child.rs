//! The child process: this program again, with the same arguments and the flag to fill. It ends by
//! being killed.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::FillReport;

/// A process that does not outlive its parent.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // It may have exited on its own; either way nothing is left behind.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets a child fill the store, and kills it as soon as it has reported.
pub(super) fn fill_and_kill(url: &str) -> Result<FillReport, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let child = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .args(["--fill", url])
        // Held open for as long as this process lives; its end tells the child that no one is left
        // to kill it.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let mut child = ChildGuard(child);
    let stdout = child.0.stdout.take().ok_or("the child has no output")?;
    let mut line = String::new();
    BufReader::new(stdout)
        .read_line(&mut line)
        .map_err(|error| format!("the child's output cannot be read: {error}"))?;
    child.0.kill().map_err(|error| format!("the child could not be killed: {error}"))?;
    child.0.wait().map_err(|error| format!("the child did not exit: {error}"))?;
    serde_json::from_str(&line).map_err(|_| "the child exited before it had filled the store".into())
}
