//! `tidegate serve`, `proxy` or `demo` as a child process of the test, in its own folder. It ends
//! with its handle.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tidegate_sim::HttpSim;

/// How long a start may take.
const START: Duration = Duration::from_secs(30);
/// What it prints before its address.
const SERVES: [&str; 3] = ["tidegate serves ", "tidegate proxies ", "tidegate demo: open "];

/// A server that was started and may not be ready yet. Dropping it kills it.
pub(crate) struct StartingServer(Child);

/// A running server. Dropping it kills it.
pub(crate) struct RunningServer {
    started: StartingServer,
    /// Where it serves: `http://127.0.0.1:PORT`.
    pub address: String,
    talk: Option<JoinHandle<String>>,
}

/// The command without environment variables that could change what it does.
pub(crate) fn tidegate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TIDEGATE_")) {
        command.env_remove(name);
    }
    command.env("USER", "tester").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Writes the configuration into `dir`: any free port, operations in `dir/data`, these upstreams.
pub(crate) fn configure(dir: &Path, workers: usize, upstreams: &str) {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nworkers = {workers}\n[store]\nurl = \"file:{}\"\n{upstreams}",
        dir.join("data").display()
    );
    std::fs::write(dir.join("tidegate.toml"), text).unwrap();
}

/// An upstream at a simulator, with its limit.
pub(crate) fn upstream(name: &str, sim: &HttpSim, limit: Option<(u64, f64)>) -> String {
    let limit = limit.map_or_else(String::new, |(capacity, refill)| {
        format!("[[upstream.limit]]\nname = \"requests\"\ncapacity = {capacity}\nrefill_per_s = {refill:?}\n")
    });
    format!("[[upstream]]\nname = \"{name}\"\nbase_url = \"http://{}\"\n{limit}", sim.addr())
}

/// A proxy in front of a service, on any free ports, with its keys in this store; its callers are
/// one.
pub(crate) fn proxy(dir: &Path, upstream: &str, store: &str) -> Command {
    let mut command = tidegate();
    command.args(["proxy", "--unscoped", "--log-level", "warn", "--listen", "127.0.0.1:0"]);
    command.args(["--admin", "127.0.0.1:0", "--upstream", upstream, "--store", store]).current_dir(dir);
    command
}

impl StartingServer {
    /// In a folder that `configure` has written to, with a secret in its environment.
    pub(crate) fn new(dir: &Path, level: &str, secret: Option<(&str, &str)>) -> Self {
        let mut command = tidegate();
        command.arg("serve").arg("--config").arg(dir.join("tidegate.toml")).current_dir(dir);
        command.args(["--log-level", level]).envs(secret);
        Self::of(command)
    }

    /// By a command that serves.
    pub(crate) fn of(mut command: Command) -> Self {
        Self(command.stdout(Stdio::null()).spawn().unwrap())
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for StartingServer {
    fn drop(&mut self) {
        self.kill();
    }
}

impl RunningServer {
    /// Starts one and waits until it serves.
    pub(crate) fn start(dir: &Path, level: &str, secret: Option<(&str, &str)>) -> Self {
        Self::of(StartingServer::new(dir, level, secret))
    }

    /// Waits until one that was started serves.
    pub(crate) fn of(mut started: StartingServer) -> Self {
        let (tell, told) = mpsc::channel();
        let lines = BufReader::new(started.0.stderr.take().unwrap()).lines();
        // Read to the end, or a full pipe would block the server.
        let talk = std::thread::spawn(move || {
            let mut all = String::new();
            for line in lines.map_while(Result::ok) {
                if let Some((_, address)) = SERVES.iter().find_map(|serves| line.split_once(serves)) {
                    // With a JSON log the banner is a line of JSON.
                    let address = address.split('"').next().unwrap_or_default().trim_end_matches('/');
                    let _ = tell.send(address.to_owned());
                }
                all.push_str(&line);
                all.push('\n');
            }
            all
        });
        let mut running = Self { started, address: String::new(), talk: Some(talk) };
        match told.recv_timeout(START) {
            Ok(address) => running.address = address,
            Err(_) => panic!("it does not serve: {}", running.kill()),
        }
        running
    }

    /// Sends it a signal, named as `kill` names it.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.started.0.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.started.0.id()
    }

    /// How it ended, if it has.
    pub(crate) fn exit_status(&mut self) -> Option<ExitStatus> {
        self.started.0.try_wait().unwrap()
    }

    /// Kills it with SIGKILL and returns its stderr until then.
    pub(crate) fn kill(mut self) -> String {
        self.started.kill();
        self.talk.take().map(|talk| talk.join().unwrap()).unwrap_or_default()
    }
}
