//! Runs the runbook as written: every command on its page, in order, in a shell, against a real
//! server whose upstream has cut its limit.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, tidegate, upstream};

const OPERATIONS: usize = 24;
/// What the page sets the limit to.
const AGREED: (u64, f64) = (10, 5.0);

/// A block of commands, and the number of the step it stands in.
#[derive(Debug)]
struct CommandBlock {
    step: u32,
    commands: String,
}

/// Commands that stand in the prose, where nobody would run them.
fn in_prose(page: &str) -> Vec<&str> {
    let mut is_inside = false;
    let lines = page.lines().filter(|line| {
        is_inside ^= line.starts_with("```");
        !is_inside
    });
    let spans = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    spans.filter(|span| span.starts_with("tidegate ") && span.contains(" --")).collect()
}

/// Every block that is marked as shell.
fn blocks(page: &str) -> Vec<CommandBlock> {
    let mut blocks: Vec<CommandBlock> = Vec::new();
    let (mut step, mut is_inside) = (0, false);
    for line in page.lines() {
        match line {
            "```sh" => {
                is_inside = true;
                blocks.push(CommandBlock { step, commands: String::new() });
            }
            "```" => is_inside = false,
            line if is_inside => {
                let block = blocks.last_mut().unwrap();
                block.commands.push_str(line);
                block.commands.push('\n');
            }
            line => {
                let title = line.strip_prefix("## ").and_then(|title| title.split_once('.'));
                step = title.map_or(step, |(number, _)| number.parse().unwrap());
            }
        }
    }
    blocks
}

/// The emergency.
struct EmergencySetup {
    dir: PathBuf,
    server: Option<RunningServer>,
}

impl EmergencySetup {
    fn server(&self) -> &RunningServer {
        self.server.as_ref().unwrap()
    }

    fn caller(&self) -> Caller {
        Caller::of(&self.server().address)
    }

    async fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.caller().get(path).await).unwrap()
    }

    async fn limit(&self, name: &str) -> Value {
        let limits = self.get("/v1/limits").await;
        let found = limits["limits"].as_array().unwrap().iter().find(|limit| limit["name"] == name).cloned();
        found.unwrap()
    }

    async fn count(&self, state: &str) -> usize {
        let listed = self.get(&format!("/v1/operations?limit=200&state={state}")).await;
        listed["operations"].as_array().unwrap().len()
    }

    /// Runs a block as it is written, and gives back what it said.
    async fn run(&self, block: &CommandBlock) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-eu", "-c", &block.commands]).current_dir(&self.dir);
        let program = Path::new(tidegate().get_program()).parent().unwrap().to_owned();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path =
            std::env::join_paths(std::iter::once(program).chain(std::env::split_paths(&path))).unwrap();
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TIDEGATE_"))
        {
            shell.env_remove(name);
        }
        shell.env("PATH", path).env("TIDEGATE_SERVER", &self.server().address).env("USER", "tester");
        shell.env("PID", self.server().pid().to_string());
        let output: Output = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{block:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// That what the page says of a block has come true.
    async fn check(&mut self, block: &CommandBlock, said: &str) {
        let does = |command: &str| block.commands.contains(command);
        let has =
            |words: [&str; 2]| assert!(words.iter().all(|word| said.contains(word)), "{block:?}: {said}");
        match block.step {
            1 if does("limit list") => has(["acme\tgate\t", "acme/requests\t"]),
            1 if does("group list") => has(["shop:acme\t", "rate_limited"]),
            1 => has(["op_", "http"]),
            2 => has(["paused", "acme throttles us"]),
            3 => {
                let (limit, stops) = (self.limit("acme/requests").await, does("0.01"));
                let expected = if stops { (40.0, 0.01) } else { (10.0, 5.0) };
                let figure = |name: &str| limit[name].as_f64().unwrap();
                assert_eq!((figure("capacity"), figure("refill_per_s")), expected, "{block:?}");
            }
            4 if does("kill") => self.restart().await,
            4 if does("cancel") => assert_eq!(self.count("canceled").await, 1),
            5 => assert!(self.limit("acme").await["closed_until"].is_null()),
            6 => {
                let stopped = self.get("/v1/groups?state=stopped").await;
                assert!(stopped["groups"].as_array().unwrap().is_empty(), "{stopped}");
            }
            7 if does("rerun") => has(["shop:acme", "op_"]),
            8 if does("--reset") => assert_eq!(self.limit("acme/requests").await["source"], "config"),
            _ => {}
        }
    }

    /// After a block that ended the server: it ends in order, and is started again.
    async fn restart(&mut self) {
        let mut server = self.server.take().unwrap();
        let ended = loop {
            match server.exit_status() {
                Some(ended) => break ended,
                None => pause().await,
            }
        };
        assert!(ended.success(), "{ended:?}");
        let dir = self.dir.clone();
        let started = tokio::task::spawn_blocking(move || RunningServer::start(&dir, "warn", None));
        self.server = Some(started.await.unwrap());
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// The upstream has almost nothing left to give, and then what was agreed on, at the same address.
fn cut() -> HttpSimOptions {
    HttpSimOptions { capacity: 3, refill_per_s: Some(0.001), ..HttpSimOptions::default() }
}

/// LIM-22: each command of the runbook works as it is written, and what the page says of it comes
/// true.
#[tokio::test(flavor = "multi_thread")]
async fn lim_22_the_runbook_works_as_written() {
    let _alone = ALONE.lock().await;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbooks/rate-limit-emergency.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(in_prose(&page), Vec::<&str>::new(), "each command is in a block, and is run");
    let blocks = blocks(&page);
    let steps: std::collections::BTreeSet<_> = blocks.iter().map(|block| block.step).collect();
    assert_eq!(steps, (1..=8).collect(), "each step has its command");
    let mut sim = HttpSim::start(cut()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), 8, &upstream("acme", &sim, Some((40, 40.0))));
    let server = RunningServer::start(dir.path(), "warn", None);
    let mut emergency = EmergencySetup { dir: dir.path().to_owned(), server: Some(server) };
    for n in 0..OPERATIONS {
        let group = ["shop:acme", "shop:b", "shop:c"][n % 3];
        let operation =
            json!({ "upstream": "acme", "group": group, "request": { "method": "POST", "path": "/x" } });
        emergency.caller().submit(&operation).await;
    }
    while emergency.limit("acme").await["closed_until"].is_null() || emergency.count("running").await > 0 {
        pause().await;
    }
    for block in &blocks {
        if block.step == 5 {
            // They have said so: there is a new limit, at the same address.
            let listen = sim.addr();
            sim.shutdown().await;
            let agreed = HttpSimOptions { listen, capacity: AGREED.0, refill_per_s: Some(AGREED.1), ..cut() };
            sim = HttpSim::start(agreed).await.unwrap();
        }
        if block.step == 8 {
            // Afterwards is when all is done: then the limit is the old one again.
            while emergency.count("succeeded").await < OPERATIONS {
                pause().await;
            }
        }
        let said = emergency.run(block).await;
        emergency.check(block, &said).await;
        if block.step == 4 {
            let (gate, requests) = (emergency.limit("acme").await, emergency.limit("acme/requests").await);
            assert!(!gate["closed_until"].is_null(), "it is still closed: {gate}");
            assert_eq!((&requests["capacity"], &requests["source"]), (&json!(10), &json!("operator")));
        }
    }
    let stats = sim.stats();
    assert_eq!((stats.throttled, stats.overstepped), (0, 0), "no storm: {stats:?}");
}
