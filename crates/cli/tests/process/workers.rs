//! Remote workers as processes of their own: killed again and again under load, together with their
//! server, on each store.

mod job_service;
mod stub_server;

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_fixture::redis::RedisServer;
use tidegate_server::Server;
use tidegate_server::config::{Config, Overrides};
use tidegate_sim::rng::SeededRng;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::{sleep, timeout};

use crate::ALONE;
use crate::arrivals::arrivals;
use crate::caller::Caller;
use crate::child::{RunningServer, tidegate};
use job_service::JobService;

const PROCESSES: usize = 2;
const CONCURRENCY: usize = 4;
const GROUPS: usize = 8;
/// What one group has waiting at the most.
const AHEAD: usize = 4;
/// The fewest operations of a group.
const EACH_MIN: usize = 8;
const SLOTS: u64 = 3;
const LATENCY: Duration = Duration::from_millis(25);
/// How long the load goes on before a kill, in milliseconds.
const LOAD_MS: std::ops::Range<u64> = 150..500;
/// How long a test may take, and how much longer for each kill of a worker.
const WHOLE_TEST: Duration = Duration::from_secs(60);
const TIME_PER_KILL: Duration = Duration::from_secs(5);
/// How many workers and servers `./test --long` kills.
const KILLS_LONG: (usize, usize) = (20, 10);

/// A worker process. Dropping it kills it.
pub(crate) struct WorkerProcess(Child);

impl WorkerProcess {
    fn start(dir: &Path, server: &str) -> Self {
        Self::of(dir, "tidegate.toml", server, &[])
    }

    /// Starts one with this configuration, and with these variables in its environment.
    pub(crate) fn of(dir: &Path, config: &str, server: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = tidegate();
        command.args(["worker", "--server", server, "--log-level", "error", "--lease-s", "1"]);
        command.args(["--concurrency", &CONCURRENCY.to_string(), "--config"]).arg(dir.join(config));
        command.current_dir(dir).envs(variables.iter().copied());
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A configuration that leaves every call to remote workers, at a port that stays the same. One
/// upstream has a cap, another is spread over all partitions, and the third accepts jobs.
fn configure(dir: &Path, sim: &HttpSim, jobs: &JobService, store: &str) -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let upstream =
        |name: &str, addr| format!("[[upstream]]\nname = \"{name}\"\nbase_url = \"http://{addr}\"\n");
    let (capped, spread) = (upstream("capped", sim.addr()), upstream("spread", sim.addr()));
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:{port}\"\npublic_url = \"http://127.0.0.1:{port}\"\n\
         [store]\nurl = \"{store}\"\n[[kind]]\nname = \"http\"\nworker = \"remote\"\n\
         {capped}[[upstream.limit]]\nname = \"slots\"\nat_once = {SLOTS}\n{spread}spread = \"group\"\n{}",
        upstream("jobs", jobs.addr)
    );
    std::fs::write(dir.join("tidegate.toml"), text).unwrap();
    format!("http://127.0.0.1:{port}")
}

fn operation(group: &str, n: usize) -> Value {
    let upstream = if group < "g4" { "capped" } else { "spread" };
    json!({
        "upstream": upstream, "group": group, "dedupe_key": format!("{group}:{n}"), "on_unknown": "repeat",
        "max_attempts": 100, "request": { "method": "POST", "path": format!("/{group}"), "body": { "id": n } },
    })
}

/// Submits operations with growing ids until it is told to stop, and waits for the end of all. A
/// slow machine has a load, too.
async fn load(caller: Caller, name: String, stop: Arc<AtomicBool>) -> (String, Vec<String>) {
    let (mut ids, mut ended): (Vec<String>, usize) = (Vec::new(), 0);
    loop {
        let is_over = stop.load(Ordering::Relaxed) && ids.len() >= EACH_MIN;
        if !is_over && ids.len() < ended + AHEAD {
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

/// Submits a job that calls back, and waits until it is awaited.
async fn submit_job(caller: &Caller) -> String {
    let job = json!({
        "upstream": "jobs", "group": "jobs", "on_unknown": "repeat", "max_attempts": 100,
        "request": { "method": "POST", "path": "/jobs", "body": {} }, "completion": { "callback": true },
    });
    let (id, _) = caller.submit(&job).await;
    while !caller.get(&format!("/v1/operations/{id}/why")).await.contains("\"waiting_for\":\"completion\"") {
        sleep(Duration::from_millis(5)).await;
    }
    id
}

/// How many operations have succeeded, by the counters in the log. The server has stopped.
async fn count_succeeded(dir: &Path, at_least: u64) -> u64 {
    let listen = Some("127.0.0.1:0".parse().unwrap());
    let over = Overrides { listen, ..Overrides::default() };
    let config = Config::load(Some(dir.join("tidegate.toml").as_path()), &over).unwrap();
    let server = Server::start(config).await.unwrap();
    // A node takes partitions one after the other.
    let mut counts = server.counts().await.unwrap();
    while counts.succeeded < at_least {
        sleep(Duration::from_millis(20)).await;
        counts = server.counts().await.unwrap();
    }
    sleep(Duration::from_millis(300)).await;
    let counts = server.counts().await.unwrap();
    assert_eq!(counts.queued + counts.waiting + counts.running + counts.unknown, 0, "{counts:?}");
    assert_eq!(counts.failed + counts.canceled, 0, "{counts:?}");
    server.shutdown().await;
    counts.succeeded
}

/// Kills workers, and so many times the server, under load; then everything ends as it should. With
/// `./test --long`, more often.
async fn killed_under_load(store: &str, kills: usize, server_kills: usize) {
    let is_long = std::env::var_os("TIDEGATE_SEED").is_some();
    let (kills, server_kills) = if is_long { KILLS_LONG } else { (kills, server_kills) };
    let mut chance = crate::cluster::chance("the workers");
    let options = HttpSimOptions { latency: LATENCY, ..HttpSimOptions::default() };
    let sim = HttpSim::start(options).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let store = if store.is_empty() {
        format!("file:{}", dir.path().join("data").display())
    } else {
        store.to_owned()
    };
    let jobs = JobService::start().await;
    let address = configure(dir.path(), &sim, &jobs, &store);
    let start = || RunningServer::start(dir.path(), "error", None);
    let mut server = tokio::task::block_in_place(start);
    let mut workers: Vec<_> = (0..PROCESSES).map(|_| WorkerProcess::start(dir.path(), &address)).collect();
    let (caller, stop) = (Caller::of(&address), Arc::new(AtomicBool::new(false)));
    let job = submit_job(&caller).await;
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
    let time = WHOLE_TEST + TIME_PER_KILL * u32::try_from(kills).unwrap();
    let (mut server, groups) = timeout(time, all).await.expect("it ends in time");
    complete(&caller, &jobs, &job).await;
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
    assert!(repeated <= (kills + server_kills) * PROCESSES * CONCURRENCY, "{repeated} repeated");
    let limit: Value = serde_json::from_str(&caller.get("/v1/limits/capped/slots").await).unwrap();
    assert_eq!(limit["in_flight"], 0, "{limit}");
    assert_eq!(limit["level"].as_f64(), Some(SLOTS as f64), "{limit}");
    workers.clear();
    server.signal("TERM");
    while server.exit_status().is_none() {
        sleep(Duration::from_millis(10)).await;
    }
    let ended = accepted as u64 + 1;
    let succeeded = timeout(WHOLE_TEST, count_succeeded(dir.path(), ended)).await.expect("all are counted");
    assert_eq!(succeeded, ended, "each is settled once");
}

/// The job was awaited all the time, and its service calls back now: once it counts, and not twice.
async fn complete(caller: &Caller, jobs: &JobService, id: &str) {
    let before: Value = serde_json::from_str(&caller.get(&format!("/v1/operations/{id}")).await).unwrap();
    assert_eq!((&before["state"], &before["attempt"]), (&json!("running"), &json!(1)), "{before}");
    let callback = jobs.last_callback();
    for is_first in [true, false] {
        let token = [("tidegate-completion-token", &*callback.token)];
        let body = json!({ "outcome": "succeeded", "result": { "file": "b.mp4" } });
        let answer = caller.post(&format!("/{}", callback.path), &token, &body).await;
        assert_eq!(
            (&answer["applied"], &answer["state"]),
            (&json!(is_first), &json!("succeeded")),
            "{answer}"
        );
    }
}

/// OPS-8, OPS-4, DSP-17: worker processes and their server are killed again and again. Nothing that
/// was accepted is lost or settled twice, a group keeps its order, at most what was in progress is
/// repeated, and no slot of a cap is leaked. A job that was awaited all the time is completed by
/// its callback.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_dsp_17_workers_are_killed_under_load() {
    let _alone = ALONE.lock().await;
    killed_under_load("", 4, 2).await;
}

/// OPS-8, OPS-4: the same on Redis.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_workers_are_killed_under_load_on_redis() {
    let _alone = ALONE.lock().await;
    let redis = RedisServer::start();
    killed_under_load(&redis.url(), 2, 1).await;
}

/// OPS-8, OPS-4: the same on PostgreSQL.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_workers_are_killed_under_load_on_postgres() {
    let _alone = ALONE.lock().await;
    let postgres = PostgresServer::start();
    killed_under_load(&postgres.url(), 2, 1).await;
}

/// A worker process that is asked to stop finishes what it has in progress and reports it.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_drains() {
    let _alone = ALONE.lock().await;
    let options = HttpSimOptions { latency: Duration::from_millis(400), ..HttpSimOptions::default() };
    let sim = HttpSim::start(options).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let address = configure(dir.path(), &sim, &JobService::start().await, "memory:");
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

/// A worker that the server refuses finishes and reports what it has in progress; then it ends with
/// the refusal.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_worker_finishes_first() {
    let _alone = ALONE.lock().await;
    let options = HttpSimOptions { latency: Duration::from_millis(300), ..HttpSimOptions::default() };
    let sim = HttpSim::start(options).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), &sim, &JobService::start().await, "memory:");
    let (is_refused, reports) = (AtomicBool::new(false), Arc::new(Mutex::new(Vec::new())));
    let seen = Arc::clone(&reports);
    let id = "op_01k6zm2c7r0000000000000001";
    let addr = stub_server::serve(move |request| match &*request.path {
        "/v1/work/take" if is_refused.swap(true, Ordering::Relaxed) => {
            let error = json!({ "code": "TG0016", "message": "The token lacks the scope." });
            (403, json!({ "error": error }).to_string())
        }
        "/v1/work/take" => {
            let payload = json!({ "upstream": "capped", "request": { "method": "POST", "path": "/g", "body": { "id": 0 } } });
            let claim = json!({
                "id": id, "fence": 7, "kind": "http", "group": "g", "attempt": 1, "payload": payload,
                "lease_ms": 1_000, "lease_until": "2026-01-02T03:04:05Z", "on_unknown": "ask",
            });
            (200, json!({ "claims": [claim] }).to_string())
        }
        "/v1/work/settle" => {
            seen.lock().unwrap().push(request.body);
            let settled = json!({ "id": id, "fence": 7, "applied": true, "state": "succeeded" });
            (200, json!({ "settlements": [settled] }).to_string())
        }
        _ => (200, json!({ "claims": [] }).to_string()),
    });
    let mut worker = WorkerProcess::start(dir.path(), &format!("http://{}", addr.await));
    let ended = tokio::task::block_in_place(|| worker.0.wait()).unwrap();
    assert!(!ended.success());
    let reports = reports.lock().unwrap().clone();
    assert!(reports.len() == 1 && reports[0].contains("\"outcome\":\"succeeded\""), "{reports:?}");
}
