//! `wrk`, which generates the load: a command that must be installed. Its script prints the figures
//! on a line of their own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;
use tempfile::TempDir;

use super::load::Load;
use crate::scratch;

/// Its threads.
pub(super) const THREADS: usize = 2;
const SCRIPT: &str = include_str!("load.lua");
/// The prefix of the line with the figures.
const FIGURES: &str = "figures ";

/// The figures of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct WrkReport {
    pub(super) requests: u64,
    pub(super) micros: u64,
    pub(super) p50_us: u64,
    pub(super) p99_us: u64,
    pub(super) max_us: u64,
    /// Responses of 400 and above.
    failed: u64,
    /// Connections that broke.
    broken: u64,
    timeouts: u64,
}

impl WrkReport {
    pub(super) fn per_s(&self) -> f64 {
        self.requests as f64 / (self.micros.max(1) as f64 / 1e6)
    }

    /// Parses its output. Any failure makes the figures worthless.
    fn read(said: &str) -> Result<Self, String> {
        let line = said.lines().find_map(|line| line.strip_prefix(FIGURES));
        let line = line.ok_or_else(|| format!("wrk printed no figures: {}", said.trim()))?;
        let counted: Self = serde_json::from_str(line)
            .map_err(|error| format!("wrk printed figures that cannot be read ({error}): {line}"))?;
        let Self { requests, failed, broken, timeouts, .. } = counted;
        if failed + broken + timeouts > 0 {
            return Err(format!(
                "of {requests} requests {failed} got a status of 400 or above, {broken} broke, {timeouts} timed out"
            ));
        }
        if requests == 0 {
            return Err("wrk got no response at all".into());
        }
        Ok(counted)
    }
}

/// The command and its script.
#[derive(Debug)]
pub(super) struct Wrk {
    connections: usize,
    version: String,
    script: PathBuf,
    /// The directory of the script, as long as it is used.
    _dir: TempDir,
}

impl Wrk {
    pub(super) fn new(connections: usize) -> Result<Self, String> {
        let missing = |error: std::io::Error| {
            format!(
                "wrk, which generates the load, cannot be started ({error}): install it with `apt-get install wrk` or `brew install wrk`"
            )
        };
        // It prints its version with a failing exit status, as if it had been called incorrectly.
        let told = Command::new("wrk").arg("-v").stdin(Stdio::null()).output().map_err(missing)?;
        let told = [told.stdout, told.stderr].concat();
        let version = String::from_utf8_lossy(&told).lines().next().unwrap_or_default().to_owned();
        let dir = scratch::dir_in(&std::env::temp_dir())?;
        let script = dir.path().join("load.lua");
        std::fs::write(&script, SCRIPT).map_err(|error| format!("{}: {error}", script.display()))?;
        Ok(Self { connections, version, script, _dir: dir })
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Loads a service for some seconds.
    pub(super) async fn load(&self, to: SocketAddr, load: Load, seconds: u64) -> Result<WrkReport, String> {
        let mut command = Command::new("wrk");
        command
            .args([
                "-t",
                &THREADS.to_string(),
                "-c",
                &self.connections.to_string(),
                "-d",
                &format!("{seconds}s"),
            ])
            .arg("-s")
            .arg(&self.script)
            .arg(format!("http://{to}/api/v1/items"))
            .args(["--", load.header(), &load.next_run(), &load.keys().to_string()])
            .stdin(Stdio::null());
        let ended = tokio::task::spawn_blocking(move || command.output()).await;
        let ended = ended.map_err(|error| error.to_string())?.map_err(|error| format!("wrk: {error}"))?;
        let said = [ended.stdout, ended.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        if !ended.status.success() {
            return Err(format!("wrk ended with {}: {}", ended.status, said.trim()));
        }
        WrkReport::read(&said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(failed: u64, broken: u64, timeouts: u64) -> String {
        format!(
            "Running 2s test @ http://127.0.0.1:1/api/v1/items\n  2 threads and 64 connections\n  \
             Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.70ms    1.02ms  11.30ms   78.30%\n\
             Requests/sec:  17000.25\nTransfer/sec:      3.10MB\n\
             figures {{\"requests\":34000,\"micros\":2000000,\"p50_us\":1500,\"p99_us\":5200,\"max_us\":11300,\
             \"failed\":{failed},\"broken\":{broken},\"timeouts\":{timeouts}}}\n"
        )
    }

    #[test]
    fn the_figures_are_read_from_what_wrk_prints() {
        let counted = WrkReport::read(&said(0, 0, 0)).unwrap();
        assert_eq!(
            (counted.requests, counted.p50_us, counted.p99_us, counted.max_us),
            (34_000, 1_500, 5_200, 11_300)
        );
        assert_eq!(counted.per_s(), 17_000.0);
    }

    #[test]
    fn a_run_in_which_anything_failed_counts_for_nothing() {
        for said in [said(1, 0, 0), said(0, 2, 0), said(0, 0, 3)] {
            assert!(WrkReport::read(&said).unwrap_err().contains("of 34000 requests"), "{said}");
        }
        let error = WrkReport::read("unable to connect to 127.0.0.1:1 Connection refused\n").unwrap_err();
        assert!(error.contains("unable to connect"), "{error}");
        assert!(WrkReport::read("figures {\"requests\":nan}\n").is_err());
        let idle = said(0, 0, 0).replace("34000", "0");
        assert_eq!(WrkReport::read(&idle).unwrap_err(), "wrk got no response at all");
    }
}
