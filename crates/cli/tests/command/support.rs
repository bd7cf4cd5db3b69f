//! Runs the command, and a server for it to call.

use std::process::{Command, Stdio};

use serde_json::Value;
use tidegate_server::config::Overrides;
use tidegate_server::{Config, Server};
use tidegate_sim::{HttpSim, HttpSimOptions};

/// The output and exit code of a run.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub exit: Option<i32>,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    /// Its data; fails the test unless it succeeded.
    #[track_caller]
    pub(crate) fn expect_success(&self) -> &str {
        assert_eq!(self.exit, Some(0), "{self:?}");
        self.out.trim_end()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.expect_success()).unwrap()
    }
}

/// The command without environment variables that could change what it does.
pub(crate) fn tidegate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TIDEGATE_")) {
        command.env_remove(name);
    }
    command.env_remove("NO_COLOR");
    command.env("USER", "tester").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn run(mut command: Command) -> CommandOutput {
    let output = command.output().unwrap();
    CommandOutput {
        exit: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A server with an upstream `echo` and a limit on it.
pub(crate) struct World {
    pub server: Server,
    pub sim: HttpSim,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::on("memory:").await
    }

    /// Starts a server on this store.
    pub(crate) async fn on(store: &str) -> Self {
        Self::start(store, HttpSimOptions::default()).await
    }

    /// Starts a server whose upstream cuts every call after it was sent.
    pub(crate) async fn cutting() -> Self {
        Self::start("memory:", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await
    }

    async fn start(store: &str, sim: HttpSimOptions) -> Self {
        let sim = HttpSim::start(sim).await.unwrap();
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[store]\nurl = \"{store}\"\n[[upstream]]\nname = \"echo\"\n\
             base_url = \"http://{}\"\n[[upstream.limit]]\nname = \"points\"\ncapacity = 10\nrefill_per_s = 0.5\n",
            sim.addr()
        );
        let config = Config::parse("test.toml", &text, &|_| None, &Overrides::default(), &[]).unwrap();
        Self { server: Server::start(config).await.unwrap(), sim }
    }

    /// Runs the command against this server.
    pub(crate) async fn run(&self, args: &[&str]) -> CommandOutput {
        let mut command = tidegate();
        command.env("TIDEGATE_SERVER", format!("http://{}", self.server.addr)).args(args);
        tokio::task::spawn_blocking(move || run(command)).await.unwrap()
    }
}
