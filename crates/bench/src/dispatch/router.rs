//! The same load through LiteLLM's router, with the same endpoints as its models and the first one
//! failing for the same time. It is a program of its own; the endpoints do the counting.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::endpoints::EndpointSet;
use super::figures::SubmitFigures;
use super::outage::OutageWindow;
use crate::goal::to_thousandths;
use crate::peer::{InstalledScript, install_with_pip};

const NAME: &str = "litellm";
/// Calls before anything is measured.
const WARM_UP: usize = 20;
/// How long an endpoint that failed cools, in seconds: the first step of our own ladder.
const COOLDOWN_S: u64 = 10;

/// The figures of the peer.
#[derive(Debug, Serialize)]
pub(super) struct RouterReport {
    name: &'static str,
    version: Option<String>,
    runs_on: String,
    /// Calls that ended without a picture, among all.
    lost: usize,
    calls: usize,
    calls_per_s: f64,
    whole_p50_ms: f64,
    whole_p99_ms: f64,
    #[serde(flatten)]
    submits: SubmitFigures,
}

/// The output of its program.
#[derive(Debug, Deserialize)]
struct RouterOutput {
    completed: usize,
    lost: usize,
    seconds: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Installs it, which takes a while the first time.
pub(super) fn install() -> Result<InstalledScript, String> {
    install_with_pip(NAME, NAME)
}

pub(super) async fn run(
    installed: InstalledScript,
    endpoints: &EndpointSet,
    (count, per_s): (usize, f64),
    outage: OutageWindow,
    latency: Duration,
) -> Result<RouterReport, String> {
    let task = json!({
        "bases": endpoints.bases(), "calls": count, "rate": per_s, "prefix": "call-",
        "warm_up": WARM_UP, "cooldown_s": COOLDOWN_S,
    });
    let InstalledScript { python, main, version, python_version } = installed;
    let mut command = Command::new(python);
    // The list of prices in its package: it would load a newer one from the network when it starts.
    command.arg(main).env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    let started = tokio::task::spawn_blocking(move || RouterProcess::start(command, &task)).await;
    let process = started.map_err(|error| error.to_string())??;
    endpoints.take_log();
    let _outage = outage.schedule(Instant::now(), endpoints.first());
    let output = tokio::task::spawn_blocking(move || process.finish()).await;
    let output = output.map_err(|error| error.to_string())??;
    if output.completed + output.lost != count {
        return Err(format!("{NAME} reports {} of {count} calls", output.completed + output.lost));
    }
    Ok(RouterReport {
        name: NAME,
        version,
        runs_on: format!("python {python_version}"),
        lost: output.lost,
        calls: count,
        calls_per_s: (count as f64 / output.seconds).round(),
        whole_p50_ms: to_thousandths(output.p50_ms),
        whole_p99_ms: to_thousandths(output.p99_ms),
        submits: SubmitFigures::of(&endpoints.take_log(), latency)?,
    })
}

/// Its process, killed when this is dropped.
struct RouterProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl RouterProcess {
    /// Starts it with its task, and waits until it is ready.
    fn start(mut command: Command, task: &Value) -> Result<Self, String> {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| format!("{NAME} cannot be started: {error}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { return Err(format!("{NAME} has no pipes")) };
        let mut process = Self { child, input, output: BufReader::new(output) };
        process.tell(&task.to_string())?;
        match process.read_line()?.trim() {
            "ready" => Ok(process),
            line => Err(format!("{NAME} ended before it was ready: {line:?}")),
        }
    }

    /// Lets it begin, and waits for its figures.
    fn finish(mut self) -> Result<RouterOutput, String> {
        self.tell("go")?;
        let line = self.read_line()?;
        serde_json::from_str(&line).map_err(|error| format!("{NAME} printed no figures: {error}"))
    }

    fn tell(&mut self, line: &str) -> Result<(), String> {
        let told = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        told.map_err(|error| format!("{NAME} does not accept its input: {error}"))
    }

    fn read_line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        read.map(|_| line).map_err(|error| format!("the output of {NAME} cannot be read: {error}"))
    }
}

impl Drop for RouterProcess {
    fn drop(&mut self) {
        // It may have exited on its own; either way nothing is left behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
