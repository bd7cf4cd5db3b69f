//! Nodes that are incompatible with the others: with another secret, with a wrong advertised
//! address, with another node's address, and with another placement rule. Each takes no partition,
//! reports why, and joins when it is fixed.

use std::time::Duration;

use hyper::Method;
use serde_json::Value;
use tempfile::TempDir;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::load;
use super::nodes::PARTITIONS;
use super::store::Store;
use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, StartingServer, tidegate, upstream};

const SECRET: &str = "the-secret-of-the-nodes";
/// In which time a node that may join does, or one that may not says so.
const SETTLED: Duration = Duration::from_secs(20);
/// Longer than it takes to look again, more than once.
const STILL: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);
const ROOM: &str = "the node takes no partitions";

/// What is out of the ordinary about a node.
#[derive(Clone, Copy)]
struct NodeOverrides<'a> {
    secret: &'a str,
    advertise: Option<&'a str>,
    is_spread: bool,
    refill_per_s: f64,
}

const DEFAULT_NODE: NodeOverrides<'static> =
    NodeOverrides { secret: SECRET, advertise: None, is_spread: true, refill_per_s: 50.0 };

/// A store and two upstreams for nodes to be started on.
struct ClusterSetup {
    dir: TempDir,
    sim: HttpSim,
    store: Store,
}

struct Node {
    running: RunningServer,
    caller: Caller,
    address: String,
}

impl ClusterSetup {
    async fn new(store: Store) -> Self {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        Self { dir: tempfile::tempdir().unwrap(), sim, store }
    }

    fn start(&self, name: &str, odd: NodeOverrides<'_>) -> Node {
        let limited = upstream("limited", &self.sim, Some((20, odd.refill_per_s)));
        let wide = upstream("wide", &self.sim, None);
        let spread = if odd.is_spread { "spread = \"group\"\n" } else { "" };
        let advertise = odd.advertise.map_or_else(String::new, |at| format!("advertise = \"{at}\"\n"));
        let token = if odd.secret.is_empty() { "" } else { "token_env = \"NODES\"\n" };
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[store]\nurl = \"{}\"\n[cluster]\n{token}{advertise}\
             {limited}{wide}{spread}",
            self.store.url()
        );
        let file = self.dir.path().join(format!("{name}.toml"));
        std::fs::write(&file, text).unwrap();
        let mut command = tidegate();
        command.arg("serve").arg("--config").arg(file).args(["--log-level", "warn"]).env("NODES", odd.secret);
        let running = tokio::task::block_in_place(|| RunningServer::of(StartingServer::of(command)));
        let address = running.address.trim_start_matches("http://").to_owned();
        Node { caller: Caller::of(&running.address), address, running }
    }
}

impl Node {
    async fn ask(&self, path: &str) -> (u16, String) {
        self.caller.call(Method::GET, path, &[], None).await.expect("a whole answer")
    }

    /// Waits until it is ready, or until it says these words about why not.
    async fn wait_for_status(&self, status: u16, words: &[&str]) {
        let mut last = None;
        let said = async {
            loop {
                let (found, text) = self.ask("/readyz").await;
                if found == status && words.iter().all(|word| text.contains(word)) {
                    return;
                }
                last = Some((found, text));
                sleep(LOOK).await;
            }
        };
        let settled = timeout(SETTLED, said).await;
        assert!(settled.is_ok(), "{status} {words:?} is not said, but {last:?}");
    }

    /// How many partitions each of the nodes has, as this one sees it.
    async fn shares(&self) -> Vec<usize> {
        let view: Value = serde_json::from_str(&self.ask("/v1/cluster").await.1).unwrap();
        let nodes = view["nodes"].as_array().unwrap();
        nodes.iter().map(|node| node["partitions"].as_array().unwrap().len()).collect()
    }

    /// Waits until the partitions are shared like this, as this one sees it.
    async fn wait_for_shares(&self, shares: &[usize]) {
        let mut last = Vec::new();
        let seen = async {
            while last != shares {
                sleep(LOOK).await;
                last = self.shares().await;
            }
        };
        let settled = timeout(SETTLED, seen).await;
        assert!(settled.is_ok(), "it sees {last:?} instead of {shares:?}");
    }

    /// That it takes nothing, while the first node has everything and is ready; and that it says so
    /// once.
    async fn stays_apart(self, first: &Self) {
        sleep(STILL).await;
        first.wait_for_shares(&[PARTITIONS]).await;
        first.wait_for_status(200, &[]).await;
        let operation = load::operation("wide", "stranger", 0);
        let refused = self.caller.call(Method::POST, "/v1/operations", &[], Some(&operation)).await;
        let (status, text) = refused.expect("a whole answer");
        assert!(status == 503 && text.contains("Nothing was accepted"), "{status} {text}");
        let said = tokio::task::block_in_place(|| self.running.kill());
        assert_eq!(said.matches(ROOM).count(), 1, "{said}");
        assert!(!said.contains(SECRET), "{said}");
    }

    async fn stop(mut self) -> String {
        self.running.signal("TERM");
        let ended = async {
            while self.running.exit_status().is_none() {
                sleep(LOOK).await;
            }
        };
        timeout(SETTLED, ended).await.expect("it stops in time");
        tokio::task::block_in_place(|| self.running.kill())
    }
}

/// Passes on whatever comes, as a port that is opened does.
async fn pass_on(listener: TcpListener, to: String) {
    while let Ok((mut line, _)) = listener.accept().await {
        let to = to.clone();
        tokio::spawn(async move {
            if let Ok(mut there) = TcpStream::connect(to).await {
                let _ = tokio::io::copy_bidirectional(&mut line, &mut there).await;
            }
        });
    }
}

/// Another secret, another's address and an address where nobody answers; the last is mended while
/// it runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_the_others_cannot_talk_to_takes_nothing() {
    let _alone = ALONE.lock().await;
    let place = ClusterSetup::new(Store::redis()).await;
    let first = place.start("first", DEFAULT_NODE);
    first.wait_for_status(200, &[]).await;
    first.wait_for_shares(&[PARTITIONS]).await;

    let stranger =
        place.start("stranger", NodeOverrides { secret: "a-secret-of-nobody-here", ..DEFAULT_NODE });
    stranger.wait_for_status(503, &["takes no part", &first.address, "refuses the secret"]).await;
    stranger.stays_apart(&first).await;

    let keyless = place.start("keyless", NodeOverrides { secret: "", ..DEFAULT_NODE });
    keyless.wait_for_status(503, &["takes no part", &first.address, "refuses the secret", "token_env"]).await;
    keyless.stays_apart(&first).await;

    let twin = place.start("twin", NodeOverrides { advertise: Some(&first.address), ..DEFAULT_NODE });
    twin.wait_for_status(503, &["takes no part", &first.address, "another process of the same name"]).await;
    twin.stays_apart(&first).await;

    // It is bound, and nobody takes what comes.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let hidden = place.start("hidden", NodeOverrides { advertise: Some(&at), ..DEFAULT_NODE });
    hidden.wait_for_status(503, &["takes no part", &at, "no answer came"]).await;
    sleep(STILL).await;
    first.wait_for_shares(&[PARTITIONS]).await;
    tokio::spawn(pass_on(listener, hidden.address.clone()));
    hidden.wait_for_status(200, &[]).await;
    first.wait_for_shares(&[PARTITIONS / 2, PARTITIONS / 2]).await;
    let said = hidden.stop().await;
    assert_eq!(said.matches(ROOM).count(), 1, "{said}");
    first.wait_for_shares(&[PARTITIONS]).await;
    // A node that is dead and not forgotten yet keeps nobody out.
    let dead = place.start("dead", DEFAULT_NODE);
    first.wait_for_shares(&[PARTITIONS / 2, PARTITIONS / 2]).await;
    drop(dead);
    let next = place.start("next", DEFAULT_NODE);
    next.wait_for_status(200, &[]).await;
    let said = next.stop().await;
    assert!(!said.contains(ROOM), "{said}");
}

/// OPS-7: a node that places operations differently takes nothing and accepts nothing until the
/// others have gone; one with other limits is only warned of.
async fn another_rule(store: Store) {
    let place = ClusterSetup::new(store).await;
    let first = place.start("first", DEFAULT_NODE);
    first.wait_for_status(200, &[]).await;
    let warned = place.start("warned", NodeOverrides { refill_per_s: 40.0, ..DEFAULT_NODE });
    warned.wait_for_status(200, &[]).await;
    first.wait_for_shares(&[PARTITIONS / 2, PARTITIONS / 2]).await;
    let said = warned.stop().await;
    assert_eq!(said.matches("its limits differ there").count(), 1, "{said}");
    assert!(said.contains("limited") && !said.contains(ROOM), "{said}");
    first.wait_for_shares(&[PARTITIONS]).await;

    let operation = load::operation("wide", "one", 0);
    let (id, _) = first.caller.submit(&operation).await;
    assert_eq!(first.caller.wait_until_ended(&id).await, "succeeded");
    let words = ["place operations differently", &first.address, "the upstream wide is spread by group at"];
    let other = NodeOverrides { is_spread: false, ..DEFAULT_NODE };
    let stranger = place.start("stranger", other);
    stranger.wait_for_status(503, &words).await;
    stranger.stays_apart(&first).await;

    let next = place.start("next", other);
    next.wait_for_status(503, &words).await;
    first.stop().await;
    next.wait_for_status(200, &[]).await;
    next.wait_for_shares(&[PARTITIONS]).await;
}

/// OPS-7, on both stores side by side.
#[tokio::test(flavor = "multi_thread")]
async fn ops_7_a_node_that_places_operations_differently_takes_nothing() {
    let _alone = ALONE.lock().await;
    for day in [Store::redis(), Store::postgres()].map(|store| tokio::spawn(another_rule(store))) {
        day.await.unwrap();
    }
}
