//! The same calls through other Discord clients, each a separate program that receives the calls
//! and sends every one as soon as its dependencies exist. How they handle limits is up to them.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidegate_sim::DiscordSim;
use tokio::time::{Instant, sleep};

use super::Scenario;
use super::figures::Figures;
use crate::nodes::TOKEN;
use crate::peer::{build_with_cargo, install_with_npm, version_in};

const DISCORD_JS: &str = "@discordjs/rest";
const TWILIGHT: &str = "twilight-http";
/// How often to check whether one has exited.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A peer that is ready to run.
#[derive(Debug)]
pub(super) struct Peer {
    pub name: &'static str,
    version: Option<String>,
    runs_on: Option<String>,
    program: PathBuf,
    script: Option<OsString>,
}

/// The figures of a peer.
#[derive(Debug, Serialize)]
pub(super) struct PeerReport {
    name: &'static str,
    version: Option<String>,
    runs_on: Option<String>,
    #[serde(flatten)]
    figures: Figures,
}

/// The output of its program.
#[derive(Debug, Deserialize)]
struct PeerOutput {
    seconds: f64,
}

/// Installs and builds the peers, which takes a while the first time.
pub(super) fn prepare() -> Result<[Peer; 2], String> {
    let installed = install_with_npm("discord-js", DISCORD_JS)?;
    let (program, lock) = build_with_cargo("twilight")?;
    let discord_js = Peer {
        name: DISCORD_JS,
        version: installed.version,
        runs_on: Some(format!("node {}", installed.node_version)),
        program: "node".into(),
        script: Some(installed.main.into()),
    };
    let version = version_in(&lock, TWILIGHT);
    Ok([discord_js, Peer { name: TWILIGHT, version, runs_on: None, program, script: None }])
}

impl Peer {
    /// Runs it to its end, or for ten times as long as it should take.
    pub(super) async fn run(&self, stage: &Scenario, sim: &DiscordSim) -> Result<PeerReport, String> {
        let told = json!({ "at": sim.addr().to_string(), "token": TOKEN, "calls": stage.calls });
        let mut running = self.start(told.to_string()).await?;
        let patience = Duration::from_secs_f64(60.0 + 10.0 * stage.shortest.seconds);
        let printed =
            running.wait_for_output(patience).await.map_err(|error| format!("{}: {error}", self.name))?;
        let report = PeerReport {
            name: self.name,
            version: self.version.clone(),
            runs_on: self.runs_on.clone(),
            figures: Figures::of(stage, printed.seconds, sim.stats()),
        };
        eprintln!("{report:?}");
        Ok(report)
    }

    async fn start(&self, told: String) -> Result<PeerProcess, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.script).env("NODE_ENV", "production");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let name = self.name;
        let started = tokio::task::spawn_blocking(move || {
            let child = command.spawn().map_err(|error| format!("{name} cannot be started: {error}"))?;
            let mut running = PeerProcess(child);
            // Dropped at once: its end marks the end of the input.
            let input = running.0.stdin.take();
            let told = input.map(|mut input| input.write_all(told.as_bytes()));
            told.transpose().map_err(|error| format!("{name} does not accept its input: {error}"))?;
            Ok(running)
        });
        started.await.map_err(|error| error.to_string())?
    }
}

/// A process that is killed when this is dropped.
struct PeerProcess(Child);

impl PeerProcess {
    async fn wait_for_output(&mut self, patience: Duration) -> Result<PeerOutput, String> {
        let deadline = Instant::now() + patience;
        let status = loop {
            match self.0.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    return Err(format!("it is still running after {} s", patience.as_secs()));
                }
                None => sleep(LOOK_EVERY).await,
            }
        };
        if !status.success() {
            return Err(format!("it ended with {status}"));
        }
        let (mut output, mut text) = (self.0.stdout.take().ok_or("it has no output")?, String::new());
        output.read_to_string(&mut text).map_err(|error| error.to_string())?;
        serde_json::from_str(&text)
            .map_err(|error| format!("it printed something other than figures: {error}"))
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        // It may have exited on its own; either way nothing is left behind.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
