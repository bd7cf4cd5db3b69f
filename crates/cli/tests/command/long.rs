//! Commands that run until a signal stops them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};
use std::time::Duration;

use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{run, tidegate};

/// A running command, which ends with the test.
struct RunningCommand(Child);

impl RunningCommand {
    fn start(args: &[&str], dir: &std::path::Path) -> Self {
        Self(tidegate().args(args).current_dir(dir).spawn().unwrap())
    }

    /// Sends it a signal and returns its exit code.
    fn stop(&mut self, signal: &str) -> Option<i32> {
        self.signal(signal);
        self.0.wait().unwrap().code()
    }

    fn signal(&self, signal: &str) {
        let kill = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(kill.success());
    }

    /// The address after `mark` on the first line of stderr that has it.
    fn address(&mut self, mark: &str) -> String {
        let mut lines = BufReader::new(self.0.stderr.as_mut().unwrap()).lines();
        let line = lines.find(|line| line.as_ref().unwrap().contains(mark)).unwrap().unwrap();
        // With a JSON log the banner is a line of JSON.
        let address = line.split(mark).nth(1).unwrap().split('"').next().unwrap();
        address.trim_end_matches('/').to_owned()
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// OPS-8: `serve` prints its address, keeps accepted operations over a restart, and exits with 0 on
/// a signal.
#[test]
fn ops_8_serve_stops_in_order_and_keeps_what_it_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let config = "[[upstream]]\nname = \"echo\"\nbase_url = \"http://127.0.0.1:9\"\n";
    std::fs::write(dir.path().join("tidegate.toml"), config).unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--store", "file:data", "--log-level", "warn"];
    let ask = |address: &str, args: &[&str]| {
        let mut command = tidegate();
        command.env("TIDEGATE_SERVER", address).args(args);
        run(command)
    };
    let mut server = RunningCommand::start(&args, dir.path());
    let address = server.address("tidegate serves ");
    ask(&address, &["group", "pause", "g", "--create"]).expect_success();
    let submitted = ask(&address, &["op", "submit", "GET", "/", "--upstream", "echo", "--group", "g"]);
    let id = submitted.expect_success();
    assert_eq!(server.stop("-TERM"), Some(0));
    let mut server = RunningCommand::start(&args, dir.path());
    let address = server.address("tidegate serves ");
    assert!(ask(&address, &["op", "show", id]).expect_success().contains("state\twaiting"));
    assert_eq!(server.stop("-INT"), Some(0));
}

/// The first signal lets calls in flight finish; the second stops the server at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_it_at_once() {
    let hour = Duration::from_secs(3_600);
    let sim = HttpSim::start(HttpSimOptions { latency: hour, ..HttpSimOptions::default() }).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let config = format!("[[upstream]]\nname = \"echo\"\nbase_url = \"http://{}\"\n", sim.addr());
    std::fs::write(dir.path().join("tidegate.toml"), format!("[server]\ndrain_s = 3600\n{config}")).unwrap();
    tokio::task::spawn_blocking(move || {
        let mut server =
            RunningCommand::start(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:"], dir.path());
        let address = server.address("tidegate serves ");
        let mut command = tidegate();
        command.env("TIDEGATE_SERVER", address).args(["op", "submit", "GET", "/", "--upstream", "echo"]);
        run(command).expect_success();
        server.signal("-TERM");
        server.address("calls in flight may finish");
        assert!(server.0.try_wait().unwrap().is_none(), "it did not wait for the call");
        assert_eq!(server.stop("-TERM"), Some(1));
    })
    .await
    .unwrap();
}

/// OPS-22: the log of `serve` is one JSON object per line if stderr is not a terminal.
#[test]
fn ops_22_the_log_is_json_when_nobody_watches() {
    let dir = tempfile::tempdir().unwrap();
    let mut server =
        RunningCommand::start(&["serve", "--listen", "127.0.0.1:0", "--store", "memory:"], dir.path());
    server.address("tidegate serves ");
    server.signal("-TERM");
    let mut log = String::new();
    server.0.stderr.as_mut().unwrap().read_to_string(&mut log).unwrap();
    let entries: Vec<serde_json::Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(entries.iter().any(|entry| entry["message"] == "stopped" && entry["level"] == "INFO"), "{log}");
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_simulator_says_where_it_is_and_ends_in_order() {
    let dir = tempfile::tempdir().unwrap();
    for which in [["http", "--refill-per-s", "5"], ["shopify", "--plan", "plus"]] {
        let args = ["sim", "--listen", "127.0.0.1:0"];
        let mut sim = RunningCommand::start(&[&args[..1], &which[..], &args[1..]].concat(), dir.path());
        let mut line = String::new();
        BufReader::new(sim.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("http://127.0.0.1:"), "{line}");
        assert_eq!(sim.stop("-TERM"), Some(0));
    }
    for which in ["http", "shopify"] {
        let mut command = tidegate();
        command.args(["sim", which, "--listen", "127.0.0.1:0", "--fail-rate", "7"]);
        let ran = run(command);
        assert_eq!(ran.exit, Some(2), "{ran:?}");
        assert_eq!(ran.err, "error: A fail rate and a cut rate are 0 to 1.\n");
    }
}

/// The Discord simulator accepts overrides of its limits, and refuses unknown limits.
#[test]
fn the_discord_simulator_takes_limits_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let args =
        ["sim", "discord", "--listen", "127.0.0.1:0", "--limit", "routes=9/1000", "--limit", "me=1/60000"];
    let mut sim = RunningCommand::start(&args, dir.path());
    let mut line = String::new();
    BufReader::new(sim.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("http://127.0.0.1:"), "{line}");
    assert_eq!(sim.stop("-TERM"), Some(0));
    for (flag, value, exit) in [("--limit", "mee=1/1", 2), ("--limit", "me=1", 2), ("--fail-rate", "7", 1)] {
        let mut command = tidegate();
        command.args(["sim", "discord", "--listen", "127.0.0.1:0", flag, value]);
        assert_eq!(run(command).exit, Some(exit), "{flag} {value}");
    }
}

/// The demo needs nothing, ends by itself, and prints a summary.
#[test]
fn the_demo_ends_by_itself_and_says_what_it_did() {
    let mut command = tidegate();
    command.args(["demo", "--for", "4", "--listen", "127.0.0.1:0"]);
    let ran = run(command);
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    let last = ran.err.lines().last().unwrap();
    assert!(
        last.starts_with("done: ") && last.ends_with(" repeated because a response was lost."),
        "{ran:?}"
    );
    let succeeded: u64 = last.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(succeeded > 50, "{last}");
    let billed = ran.err.lines().find_map(|line| line.split_once(" calls, billed ")).unwrap().1;
    let billed: u64 = billed.split(' ').next().unwrap().parse().unwrap();
    assert!(billed > 1, "{ran:?}");
}
