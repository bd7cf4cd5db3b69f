//! Operations that need an operator, below a long backlog.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, tidegate, upstream};

/// The number of operations with an unknown outcome.
const UNKNOWN: usize = 25;
/// The number of operations accepted after them.
const BACKLOG: usize = 20_800;

fn operation(group: &str) -> Value {
    json!({ "upstream": "echo", "group": group, "request": { "method": "POST", "path": "/x" } })
}

/// Runs a command; returns stdout and stderr.
async fn on_command_line(address: &str, args: &[&str]) -> (String, String) {
    let mut command = tidegate();
    command.args(args).args(["--server", address]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{output:?}");
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// The number of operations that the API lists in a state.
async fn counted(caller: &Caller, state: &str) -> usize {
    let page = caller.get(&format!("/v1/operations?state={state}&limit=200")).await;
    let page: Value = serde_json::from_str(&page).unwrap();
    page["operations"].as_array().unwrap().len()
}

/// OPS-23: unknown outcomes are shown by the API, the command and the page, however many operations
/// came after them.
#[tokio::test(flavor = "multi_thread")]
async fn ops_23_unknown_outcomes_are_not_buried() {
    let _alone = ALONE.lock().await;
    let sim = HttpSim::start(HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), 8, &upstream("echo", &sim, None));
    let server = RunningServer::start(dir.path(), "warn", None);
    let caller = Caller::of(&server.address);
    let mut ids = Vec::new();
    for nth in 0..UNKNOWN {
        ids.push(caller.submit(&operation(&format!("lost{nth}"))).await.0);
    }
    while counted(&caller, "unknown").await < UNKNOWN {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    caller.post("/v1/groups/deep/pause", &[], &json!({ "create": true })).await;
    for _ in 0..BACKLOG / 650 {
        let some = vec![operation("deep"); 650];
        caller.post("/v1/operations/batch", &[], &json!({ "operations": some })).await;
    }
    let (listed, _) = on_command_line(&server.address, &["op", "list", "--state", "unknown"]).await;
    let shown: Vec<_> = listed.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(shown, ids.iter().rev().collect::<Vec<_>>(), "newest first");
    let (held, _) = on_command_line(&server.address, &["group", "list", "--state", "held"]).await;
    assert_eq!(held.lines().filter(|line| line.starts_with("lost")).count(), UNKNOWN, "{held}");
    let page = caller.get("/?state=unknown").await;
    assert!(ids.iter().all(|id| page.contains(id)), "{page}");
    let of_one = ["op", "list", "--state", "waiting", "--group", "deep"];
    let (head, said) = on_command_line(&server.address, &of_one).await;
    assert!(head.contains("deep") && !said.contains("no operation matches"), "{head}{said}");
}
