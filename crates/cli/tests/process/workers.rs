//! Remote workers as processes of their own: killed again and again under load, together with their
//! server, on an embedded store and on Redis.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_fixture::redis::RedisServer;
use tidegate_sim::rng::SeededRng;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::{sleep, timeout};

use crate::ALONE;
use crate::arrivals::arrivals;
use crate::caller::Caller;
use crate::child::{RunningServer, tidegate};

const PROCESSES: usize = 2;
const CONCURRENCY: usize = 4;
const GROUPS: usize = 8;
/// What one group has waiting at the most.
const AHEAD: usize = 4;
const SLOTS: u64 = 6;
const LATENCY: Duration = Duration::from_millis(25);
/// How long the load goes on before a kill, in milliseconds.
const LOAD_MS: std::ops::Range<u64> = 150..500;
const WHOLE_TEST: Duration = Duration::from_secs(60);

/// A worker process. Dropping it kills it.
struct WorkerProcess(Child);

impl WorkerProcess {
    fn start(dir: &Path, server: &str) -> Self {
        let mut command = tidegate();
        command.args(["worker", "--server", server, "--log-level", "error", "--lease-s", "1"]);
        command.args(["--concurrency", &CONCURRENCY.to_string(), "--config"]).arg(dir.join("tidegate.toml"));
        Self(command.current_dir(dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A configuration that leaves every call to remote workers, at a port that stays the same.
fn configure(dir: &Path, sim: &HttpSim, store: &str, with_slots: bool) -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let more = match with_slots {
        true => format!("[[upstream.limit]]\nname = \"slots\"\nat_once = {SLOTS}\n"),
        false => "spread = \"group\"\n".to_owned(),
    };
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:{port}\"\n[store]\nurl = \"{store}\"\n[[kind]]\nname = \"http\"\nworker = \"remote\"\n[[upstream]]\nname = \"echo\"\nbase_url = \"http://{}\"\n{more}",
        sim.addr()
    );
    std::fs::write(dir.join("tidegate.toml"), text).unwrap();
    format!("http://127.0.0.1:{port}")
}

fn operation(group: &str, n: usize) -> Value {
    json!({
        "upstream": "echo", "group": group, "dedupe_key": format!("{group}:{n}"), "on_unknown": "repeat",
        "max_attempts": 100, "request": { "method": "POST", "path": format!("/{group}"), "body": { "id": n } },
    })
}

/// Submits operations with growing ids until it is told to stop, and waits for the end of all.
async fn load(caller: Caller, name: String, stop: Arc<AtomicBool>) -> (String, Vec<String>) {
    let (mut ids, mut ended): (Vec<String>, usize) = (Vec::new(), 0);
    loop {
        if !stop.load(Ordering::Relaxed) && ids.len() < ended + AHEAD {
            ids.push(caller.submit(&operation(&name, ids.len())).await.0);
        } else if ended < ids.len() {
            assert_eq!(caller.wait_until_ended(&ids[ended]).await, "succeeded", "{name}, {ended}");
            ended += 1;
        } else {
            return (name, ids);
        }
    }
}

fn draw(chance: &mut SeededRng) -> Duration {
    Duration::from_millis(LOAD_MS.start + chance.next() % (LOAD_MS.end - LOAD_MS.start))
}

/// Kills workers, and so many times the server, under load; then everything ends as it should.
async fn killed_under_load(store: &str, with_slots: bool, kills: usize, server_kills: usize) {
    let mut chance = crate::cluster::chance("the workers");
    let options = HttpSimOptions { latency: LATENCY, ..HttpSimOptions::default() };
    let sim = HttpSim::start(options).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let store = if store.is_empty() {
        format!("file:{}", dir.path().join("data").display())
    } else {
        store.to_owned()
    };
    let address = configure(dir.path(), &sim, &store, with_slots);
    let start = || RunningServer::start(dir.path(), "error", None);
    let mut server = tokio::task::block_in_place(start);
    let mut workers: Vec<_> = (0..PROCESSES).map(|_| WorkerProcess::start(dir.path(), &address)).collect();
    let (caller, stop) = (Caller::of(&address), Arc::new(AtomicBool::new(false)));
    let groups: Vec<_> =
        (0..GROUPS).map(|n| tokio::spawn(load(caller.clone(), format!("g{n}"), Arc::clone(&stop)))).collect();
    let all = async {
        for n in 0..kills {
            sleep(draw(&mut chance)).await;
            // SIGKILL; the next one takes its place.
            workers[n % PROCESSES] = WorkerProcess::start(dir.path(), &address);
            if n % (kills / server_kills) == 1 {
                sleep(draw(&mut chance)).await;
                tokio::task::block_in_place(|| server.kill());
                server = tokio::task::block_in_place(start);
            }
        }
        stop.store(true, Ordering::Relaxed);
        let mut ended = Vec::new();
        for group in groups {
            ended.push(group.await.unwrap());
        }
        (server, ended)
    };
    let (_server, groups) = timeout(WHOLE_TEST, all).await.expect("it ends in time");
    let arrived = arrivals(&sim).await;
    let (mut accepted, mut repeated) = (0, 0);
    for (name, ids) in &groups {
        accepted += ids.len();
        let arrived = &arrived[&format!("/{name}")];
        assert!(arrived.is_sorted(), "{name}: {arrived:?}");
        let first: BTreeSet<_> = arrived.iter().copied().collect();
        assert!(first.iter().copied().eq(0..ids.len()), "{name}: {first:?}");
        repeated += arrived.len() - first.len();
    }
    println!("{kills} workers killed, {accepted} accepted and done, {repeated} repeated");
    assert!(accepted > 40, "{accepted} operations are no load");
    assert!(repeated <= (kills + server_kills) * PROCESSES * CONCURRENCY, "{repeated} repeated");
    if with_slots {
        let limit: Value = serde_json::from_str(&caller.get("/v1/limits/echo/slots").await).unwrap();
        assert_eq!(limit["in_flight"], 0, "{limit}");
        assert_eq!(limit["level"].as_f64(), Some(SLOTS as f64), "{limit}");
    }
}

/// OPS-8, OPS-4, DSP-17: worker processes and their server are killed again and again. Nothing that
/// was accepted is lost, a group keeps its order, at most what was in progress is repeated, and no
/// slot of a cap is leaked.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_dsp_17_workers_are_killed_under_load() {
    let _alone = ALONE.lock().await;
    killed_under_load("", true, 6, 2).await;
}

/// OPS-8, OPS-4: the same over all partitions of a shared store.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_workers_are_killed_under_load_on_redis() {
    let _alone = ALONE.lock().await;
    let redis = RedisServer::start();
    killed_under_load(&redis.url(), false, 4, 1).await;
}

/// A worker process that is asked to stop finishes what it has in progress and reports it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_drains() {
    let _alone = ALONE.lock().await;
    let options = HttpSimOptions { latency: Duration::from_millis(400), ..HttpSimOptions::default() };
    let sim = HttpSim::start(options).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let address = configure(dir.path(), &sim, "memory:", true);
    let _server = tokio::task::block_in_place(|| RunningServer::start(dir.path(), "error", None));
    let caller = Caller::of(&address);
    let mut worker = WorkerProcess::start(dir.path(), &address);
    let (id, _) = caller.submit(&operation("g", 0)).await;
    while !caller.get(&format!("/v1/operations/{id}")).await.contains("\"state\":\"running\"") {
        sleep(Duration::from_millis(5)).await;
    }
    let pid = worker.0.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert!(tokio::task::block_in_place(|| worker.0.wait()).unwrap().success());
    let ended: Value = serde_json::from_str(&caller.get(&format!("/v1/operations/{id}")).await).unwrap();
    assert_eq!((&ended["state"], &ended["attempt"]), (&json!("succeeded"), &json!(1)), "{ended}");
}
