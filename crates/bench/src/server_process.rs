//! A child process that serves, from both sides: its parent knows its address, its resource usage
//! and its number of items; the child prints its address and learns when its parent is gone. It
//! does not outlive its handle.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::client::{Client, request};
use crate::machine;

/// Interval between two checks of a number that must have settled.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 200;

/// One process.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) addr: SocketAddr,
}

impl ServerProcess {
    /// Starts this program again, with the same arguments plus these, which tell it to serve.
    pub(crate) async fn start_self(order: &[&str]) -> Result<Self, String> {
        let program =
            std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
        let mut command = Command::new(program);
        command.args(std::env::args_os().skip(1)).args(order);
        Self::start(command).await
    }

    pub(crate) async fn start(command: Command) -> Result<Self, String> {
        let started = tokio::task::spawn_blocking(move || spawn(command)).await;
        started.map_err(|error| error.to_string())?
    }

    /// Returns the CPU time so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        machine::cpu_seconds_of(self.child.id())
    }

    /// Returns the memory it uses now, in KiB.
    pub(crate) fn used_kib(&self) -> Result<u64, String> {
        let kib = machine::used_kib_of(self.child.id());
        kib.ok_or_else(|| "this system does not report the memory of a process in /proc".into())
    }

    /// Returns its number of items once it no longer changes: requests that `wrk` left behind may
    /// still be running.
    pub(crate) async fn items(&self) -> Result<u64, String> {
        let mut client = Client::connect(self.addr).await?;
        let mut before = None;
        for _ in 0..LOOKS_MAX {
            let (_, body) = client.send(&request(self.addr, "GET", "/count", "")).await?;
            let count: Option<u64> = std::str::from_utf8(body).ok().and_then(|text| text.parse().ok());
            let count = count.ok_or("a service does not report how many items it has")?;
            if before == Some(count) {
                return Ok(count);
            }
            before = Some(count);
            tokio::time::sleep(LOOK).await;
        }
        Err("a service still accepts items although none are sent".into())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have exited on its own; either way nothing is left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(mut command: Command) -> Result<ServerProcess, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command
        // Held open for as long as this process lives; its end tells the child that no one is left.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{name}: {error}"))?;
    let mut serving = ServerProcess { child, addr: SocketAddr::from(([127, 0, 0, 1], 0)) };
    let stdout = serving.child.stdout.take().ok_or("a child has no output")?;
    let mut line = String::new();
    BufReader::new(stdout)
        .read_line(&mut line)
        .map_err(|error| format!("a child's output cannot be read: {error}"))?;
    serving.addr = line.trim().parse().map_err(|_| format!("{name} exited before it served"))?;
    Ok(serving)
}

/// In the child: prints its address.
pub(crate) fn announce_addr(addr: SocketAddr) -> Result<(), String> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{addr}").and_then(|()| stdout.flush()).map_err(|error| error.to_string())
}

/// In the child: resolves when the parent has exited. On a thread of its own, which does not delay
/// the runtime's shutdown.
pub(crate) fn parent_gone() -> oneshot::Receiver<()> {
    let (tell, gone) = oneshot::channel();
    std::thread::spawn(move || {
        // Nothing is ever sent: the end of input is the signal, and so is an error.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = tell.send(());
    });
    gone
}
