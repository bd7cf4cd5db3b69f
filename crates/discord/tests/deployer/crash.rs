//! The crash matrix: a separate process deploys the small guild and dies at one point of one step;
//! the next one finds the guild as it was left, and brings it to the state the template describes.
//! On every store.

use std::collections::BTreeMap;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tidegate_discord::deploy::{Error, ProgressEvent, ProgressListener};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_fixture::redis::RedisServer;
use tidegate_sim::DiscordSim;
use tidegate_upstream::{Call, CallFuture, CallRequirements, Envelope, FieldRefusal, Method, Upstream};
use tokio::sync::Semaphore;

use crate::world::{Node, SMALL, ask, ms, store, wanted, wide};

/// Steps of the small template that make a call.
const WRITES: usize = 14;
/// Scenarios at once; most of the time they wait for a lease to expire.
const AT_ONCE: usize = 6;

/// The point at which the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CrashPoint {
    /// The step is claimed, and nothing was sent.
    BeforeTheCall,
    /// The request was sent, and nothing was created.
    AfterItLeft,
    /// The object was created, and nothing was recorded.
    AfterItWasMade,
    /// The step is in the journal.
    AfterTheRecord,
}

const POINTS: [CrashPoint; 4] = [
    CrashPoint::BeforeTheCall,
    CrashPoint::AfterItLeft,
    CrashPoint::AfterItWasMade,
    CrashPoint::AfterTheRecord,
];

impl CrashPoint {
    fn named(word: &str) -> Option<Self> {
        POINTS.into_iter().find(|point| format!("{point:?}") == word)
    }
}

/// Kills the process at a point of the nth write.
struct CrashInjector {
    http: Option<Arc<dyn Upstream>>,
    point: CrashPoint,
    nth: usize,
    seen: AtomicUsize,
}

impl CrashInjector {
    fn new(http: Option<Arc<dyn Upstream>>, point: CrashPoint, nth: usize) -> Self {
        Self { http, point, nth, seen: AtomicUsize::new(0) }
    }

    fn crash_at(&self, point: CrashPoint) {
        if point == self.point && self.seen.load(Ordering::SeqCst) == self.nth {
            std::process::abort();
        }
    }
}

impl Upstream for CrashInjector {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        self.http.as_ref().unwrap().check(payload, cost)
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        let http = self.http.as_ref().unwrap();
        if Envelope::decode(call.payload).unwrap().request.method == Method::Get {
            return http.carry(call);
        }
        self.seen.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            self.crash_at(CrashPoint::BeforeTheCall);
            let outcome = http.carry(call).await;
            self.crash_at(CrashPoint::AfterItWasMade);
            outcome
        })
    }
}

impl ProgressListener for CrashInjector {
    fn on_event(&self, told: &ProgressEvent<'_>) {
        if let ProgressEvent::Applied { .. } = told {
            self.seen.fetch_add(1, Ordering::SeqCst);
            self.crash_at(CrashPoint::AfterTheRecord);
        }
    }
}

/// The child process: its environment says what to do; run on its own it does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process() {
    let Ok(told) = std::env::var("TIDEGATE_CRASH") else { return };
    let told: Vec<_> = told.split(' ').collect();
    let [sim, url, point, nth] = told[..] else { panic!("{told:?}") };
    let (point, nth) = (CrashPoint::named(point).unwrap(), nth.parse().unwrap());
    let node =
        Node::with(sim, store(url).await, |http| Arc::new(CrashInjector::new(Some(http), point, nth))).await;
    node.deployer.apply(&wanted(SMALL), &CrashInjector::new(None, point, nth)).await.unwrap();
    node.engine.drain().await;
}

fn process(sim: &str, url: &str, point: CrashPoint, nth: usize) -> std::process::Child {
    let told = format!("{sim} {url} {point:?} {nth}");
    let itself = std::env::current_exe().unwrap();
    let mut command = Command::new(itself);
    command.args(["--exact", "crash::one_process", "--nocapture"]).env("TIDEGATE_CRASH", told);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits for its exit, or kills it when the simulator has been reached.
async fn wait_for_exit(sim: &str, url: &str, point: CrashPoint, nth: usize) -> ExitStatus {
    let mut child = process(sim, url, point, nth);
    if point == CrashPoint::AfterItLeft {
        for _ in 0..6_000 {
            let stop = ask(sim, reqwest::Method::GET, "/stop", None).await;
            if stop["reached"] == true || child.try_wait().unwrap().is_some() {
                break;
            }
            tokio::time::sleep(ms(10)).await;
        }
        // It may have exited on its own.
        let _ = child.kill();
    }
    tokio::task::spawn_blocking(move || child.wait().unwrap()).await.unwrap()
}

async fn scenario(url: String, point: CrashPoint, nth: usize) {
    let sim: DiscordSim = wide().await;
    let address = sim.addr().to_string();
    let what = format!("{point:?} of write {nth} on {url}");
    if point == CrashPoint::AfterItLeft {
        let stop = json!({"write": nth, "when": "before"});
        ask(&address, reqwest::Method::POST, "/stop", Some(stop)).await;
    }
    let ended = wait_for_exit(&address, &url, point, nth).await;
    assert!(!ended.success(), "it did not die: {what}");
    if point == CrashPoint::AfterItLeft {
        ask(&address, reqwest::Method::DELETE, "/stop", None).await;
    }
    let node = Node::open(&address, store(&url).await).await;
    let mut report = node.apply(SMALL).await;
    // A machine that stalls for longer than a lease is not the deployer's fault: the error tells
    // the caller to run it again.
    while report.as_ref().is_err_and(|error| matches!(error, Error::LeaseLost)) {
        report = node.apply(SMALL).await;
    }
    let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
    let stats = sim.stats();
    assert_eq!(stats.all.duplicates, 0, "{what}: {:?}", stats.duplicates_by_key);
    let made = (stats.all.objects["messages"], stats.all.objects["channels"]);
    assert_eq!(made, (2, 8), "{what}: {report:?}");
    assert!(node.plan(SMALL).await.is_empty(), "{what}");
    let steps = node.store.deployment_steps(&report.deployment).await.unwrap();
    assert!(steps.iter().all(|step| step.state.as_str() == "applied"), "{what}: {steps:?}");
    check_events(&node, &report.deployment, &what).await;
    node.engine.drain().await;
}

/// OPS-17: the process that died planned every step, and its events are there; the last event of
/// each step is its state.
async fn check_events(node: &Node, deployment: &str, what: &str) {
    let events = node.store.deployment_events(deployment).await.unwrap().events;
    for step in node.store.deployment_steps(deployment).await.unwrap() {
        let of_step = events.iter().filter(|event| (&event.kind, &event.key) == (&step.kind, &step.key));
        let of_step: Vec<_> = of_step.collect();
        assert_eq!(of_step[0].state.as_str(), "planned", "{what}: {of_step:?}");
        assert_eq!(of_step.last(), Some(&&step), "{what}: {of_step:?}");
    }
}

async fn matrix(url: impl Fn(usize) -> String) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut all = tokio::task::JoinSet::new();
    for (count, (nth, point)) in (1..=WRITES).flat_map(|nth| POINTS.map(|point| (nth, point))).enumerate() {
        let (url, places) = (url(count), Arc::clone(&places));
        all.spawn(async move {
            let _place = places.acquire().await.unwrap();
            scenario(url, point, nth).await;
        });
    }
    while let Some(ended) = all.join_next().await {
        ended.unwrap();
    }
}

/// OPS-15, OPS-8: on the embedded store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_15_no_crash_makes_a_duplicate_on_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    matrix(|count| format!("file:{}/{count}", folder.path().display())).await;
}

/// OPS-15, OPS-8: on Redis.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_15_no_crash_makes_a_duplicate_on_redis() {
    let server = RedisServer::start();
    let base = server.url();
    matrix(|count| format!("{base}?prefix=crash-{count}")).await;
}

/// OPS-15, OPS-8: on PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_15_no_crash_makes_a_duplicate_on_postgres() {
    let server = PostgresServer::start();
    let base = server.url();
    let mark = if base.contains('?') { '&' } else { '?' };
    matrix(|count| format!("{base}{mark}schema=crash_{count}")).await;
}
