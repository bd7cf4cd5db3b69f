//! Events in a cluster: any node streams those of all, and a client resumes at any node.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tidegate_core::OperationId;
use tidegate_fixture::redis::RedisServer;
use tidegate_server::Server;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::runtime::Runtime;

use super::{Event, Listener, is_done};
use crate::support::{answer, config_on, operation, wait_until_joined, within};

/// Groups that are enough for each of three nodes to own some.
const GROUPS: usize = 24;
const STATES: [&str; 3] = ["queued", "running", "succeeded"];

/// A node with a runtime of its own: when that ends, so does everything of the node, at once.
struct Node {
    addr: SocketAddr,
    server: Option<Server>,
    runtime: Option<Runtime>,
}

impl Node {
    /// As if it was killed.
    fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Hands over its partitions and ends.
    async fn stop(&mut self) {
        let (server, runtime) = (self.server.take().unwrap(), self.runtime.as_ref().unwrap());
        runtime.spawn(server.shutdown()).await.unwrap();
        self.kill();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Nodes, the store they share, and the upstream they call.
struct Nodes {
    nodes: Vec<Node>,
    client: Client,
    sim: HttpSim,
    store: RedisServer,
}

impl Nodes {
    async fn start(count: usize) -> Self {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        let mut nodes = Self { nodes: Vec::new(), client, sim, store: RedisServer::start() };
        for _ in 0..count {
            nodes.add().await;
        }
        nodes.wait_until_joined().await;
        nodes
    }

    async fn add(&mut self) {
        let config = config_on(&self.store.url(), &self.sim, "spread = \"group\"\n");
        let runtime = Runtime::new().unwrap();
        let server = runtime.spawn(Server::start(config)).await.unwrap().unwrap();
        self.nodes.push(Node { addr: server.addr, server: Some(server), runtime: Some(runtime) });
    }

    /// Waits until the partitions are shared among the nodes that run.
    async fn wait_until_joined(&self) {
        let running = self.nodes.iter().filter(|node| node.runtime.is_some());
        let addrs: Vec<_> = running.map(|node| node.addr).collect();
        wait_until_joined(&self.client, &addrs).await;
    }

    fn request(&self, node: usize, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.nodes[node].addr))
    }

    async fn listen(&self, node: usize, query: &str) -> Listener {
        Listener::of(self.request(node, Method::GET, &format!("/v1/events{query}")).send().await.unwrap())
    }

    /// Listens from the last event that another listener saw.
    async fn resume(&self, node: usize, last: &Event) -> Listener {
        self.resume_from(node, &last.id).await
    }

    async fn resume_from(&self, node: usize, id: &str) -> Listener {
        let request = self.request(node, Method::GET, "/v1/events").header("last-event-id", id);
        Listener::of(request.send().await.unwrap())
    }

    async fn post(&self, node: usize, path: &str, body: Value) -> Value {
        answer(self.request(node, Method::POST, path).body(body.to_string())).await.json
    }

    async fn submit(&self, node: usize, group: &str) -> String {
        let accepted = self.post(node, "/v1/operations", operation(group)).await;
        accepted["id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned()
    }

    /// Submits to every group at this node, and returns the ids.
    async fn submit_to_all(&self, node: usize) -> Vec<String> {
        let mut ids = Vec::new();
        for group in 0..GROUPS {
            ids.push(self.submit(node, &format!("g{group}")).await);
        }
        ids
    }

    /// Which node owns the partition of an operation.
    async fn owner(&self, id: &str) -> usize {
        let id: OperationId = id.parse().unwrap();
        let view = answer(self.request(0, Method::GET, "/v1/cluster")).await.json;
        let name = view["partitions"][usize::from(id.partition())]["node"].as_str().unwrap().to_owned();
        let is_it = |node: &Node| name.ends_with(&format!("@{}", node.addr));
        self.nodes.iter().position(is_it).unwrap_or_else(|| panic!("{name}"))
    }
}

/// Whether the ends of all these operations were seen.
fn have_ended(ids: &[String]) -> impl Fn(&[Event]) -> bool {
    |events| ids.iter().all(|id| events.iter().any(|event| is_done(event) && event.data["id"] == **id))
}

/// The states of each operation in the order in which they were seen.
fn states(events: &[Event]) -> BTreeMap<String, Vec<String>> {
    let mut states: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.name == "operation") {
        let text = |field: &str| event.data[field].as_str().unwrap().to_owned();
        states.entry(text("id")).or_default().push(text("state"));
    }
    states
}

/// Asserts that exactly these operations were seen, each from the queue to its end, once, and that
/// nothing was missed.
#[track_caller]
fn assert_whole(events: &[Event], ids: &[String]) {
    assert!(events.iter().all(|event| event.name == "operation"), "{events:?}");
    let expected: BTreeMap<_, _> =
        ids.iter().map(|id| (id.clone(), STATES.map(str::to_owned).to_vec())).collect();
    assert_eq!(states(events), expected);
}

/// A client of any node sees the operations of all nodes from the queue to their end, and those of
/// one group if it asks for that. Only nodes read the streams among nodes.
#[tokio::test(flavor = "multi_thread")]
async fn any_node_streams_the_events_of_all() {
    within(async {
        let nodes = Nodes::start(3).await;
        let (mut all, mut of_group) =
            (nodes.listen(0, "").await, nodes.listen(2, "?group=g3&results=true").await);
        let ids = nodes.submit_to_all(1).await;
        all.read_until(have_ended(&ids)).await;
        assert_whole(&all.events, &ids);
        let mut owned = [0; 3];
        for id in &ids {
            owned[nodes.owner(id).await] += 1;
        }
        assert!(!owned.contains(&0), "each node owns some: {owned:?}");
        of_group.read_until(have_ended(&ids[3..4])).await;
        nodes.post(0, "/v1/groups/g3/pause", json!({})).await;
        of_group.read_until(|events| events.iter().any(|event| event.name == "group")).await;
        let seen: Vec<_> = of_group.events.into_iter().filter(|event| event.name != "group").collect();
        assert_whole(&seen, &ids[3..4]);
        assert_eq!(seen.last().unwrap().data["result"]["status"], 200, "{seen:?}");
        for secret in [None, Some("Bearer 00000000000000000000000000000000")] {
            let request = nodes.request(1, Method::GET, "/internal/events?from=beginning");
            let request = match secret {
                Some(secret) => request.header("authorization", secret),
                None => request,
            };
            answer(request).await.refused(403, "TG0016", None);
        }
        answer(nodes.request(1, Method::GET, "/v1/events?last_event_id=x")).await.refused(
            400,
            "TG0001",
            Some("last_event_id"),
        );
    })
    .await;
}

/// A client that reconnects at another node gets what it missed from every node, once.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_resumes_at_another_node() {
    within(async {
        let nodes = Nodes::start(3).await;
        let mut first = nodes.listen(0, "").await;
        let mut ids = nodes.submit_to_all(1).await;
        // In the middle of it.
        first.read_until(|events| events.len() >= GROUPS).await;
        let mut seen = std::mem::take(&mut first.events);
        drop(first);
        ids.extend(nodes.submit_to_all(0).await);
        for (node, enough) in [(2, GROUPS), (1, usize::MAX)] {
            let mut resumed = nodes.resume(node, seen.last().unwrap()).await;
            let are_all = have_ended(&ids);
            let so_far = seen.clone();
            resumed.read_until(|events| events.len() >= enough || are_all(&[&so_far, events].concat())).await;
            seen.extend(resumed.events);
        }
        assert_whole(&seen, &ids);
        // An id of a single node, or of an older version.
        let mut stale = nodes.listen(2, "?last_event_id=17").await;
        stale.read_until(|events| !events.is_empty()).await;
        assert_eq!(stale.events[0].name, "reset", "{:?}", stale.events);
        // From there on it is complete.
        let mut resumed = nodes.resume(1, &stale.events[0]).await;
        let id = nodes.submit(0, "g1").await;
        resumed.read_until(have_ended(std::slice::from_ref(&id))).await;
        assert_whole(&resumed.events, &[id]);
    })
    .await;
}

/// A client whose stream breaks before its first event misses none of any node.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_resumes_before_its_first_event() {
    within(async {
        let nodes = Nodes::start(3).await;
        let mut broken = nodes.listen(0, "").await;
        broken.read_position().await;
        let from = std::mem::take(&mut broken.last_id);
        drop(broken);
        let ids = nodes.submit_to_all(1).await;
        for group in 0..GROUPS {
            nodes.submit(2, &format!("late{group}")).await;
        }
        let mut resumed = nodes.resume_from(2, &from).await;
        resumed.read_position().await;
        assert_eq!(resumed.last_id, from, "it opens where it resumes");
        resumed.read_until(have_ended(&ids)).await;
        resumed.events.retain(|event| !event.data["group"].as_str().unwrap_or_default().starts_with("late"));
        assert_whole(&resumed.events, &ids);
    })
    .await;
}

/// When a node is killed its clients elsewhere are told to reload, and get the events of the new
/// owner; so are those who resume from an event of before.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_node_is_a_reset() {
    within(async {
        let mut nodes = Nodes::start(3).await;
        let mut all = nodes.listen(0, "").await;
        let (mut waiting, mut groups) = (Vec::new(), Vec::new());
        for group in 0..GROUPS {
            let group = format!("g{group}");
            nodes.post(0, &format!("/v1/groups/{group}/pause"), json!({ "create": true })).await;
            let id = nodes.submit(0, &group).await;
            if nodes.owner(&id).await == 1 {
                waiting.push(id);
                groups.push(group);
            }
        }
        assert!(!waiting.is_empty(), "the second node owns some");
        all.read_until(|events| waiting.iter().all(|id| events.iter().any(|event| event.data["id"] == **id)))
            .await;
        let before = all.events.last().unwrap().clone();
        nodes.nodes[1].kill();
        all.read_until(|events| events.iter().any(|event| event.name == "reset")).await;
        nodes.nodes.remove(1);
        nodes.wait_until_joined().await;
        let mut late = nodes.resume(1, &before).await;
        for group in &groups {
            nodes.post(1, &format!("/v1/groups/{group}/resume"), json!({})).await;
        }
        for stream in [&mut all, &mut late] {
            stream.read_until(have_ended(&waiting)).await;
            let resets = stream.events.iter().filter(|event| event.name == "reset").count();
            assert_eq!(resets, 1, "{:?}", stream.events);
        }
        assert_eq!(late.events[0].name, "reset", "{:?}", late.events);
        for (id, states) in states(&all.events) {
            assert!(!waiting.contains(&id) || states == STATES, "{id}: {states:?}");
        }
    })
    .await;
}

/// A node that joins and a node that leaves in order cost a client nothing.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_come_and_go_without_a_reset() {
    within(async {
        let mut nodes = Nodes::start(2).await;
        let mut all = nodes.listen(0, "").await;
        let mut ids = nodes.submit_to_all(0).await;
        nodes.add().await;
        nodes.wait_until_joined().await;
        ids.extend(nodes.submit_to_all(2).await);
        nodes.nodes[1].stop().await;
        ids.extend(nodes.submit_to_all(2).await);
        all.read_until(have_ended(&ids)).await;
        nodes.wait_until_joined().await;
        ids.extend(nodes.submit_to_all(0).await);
        all.read_until(have_ended(&ids)).await;
        assert!(all.events.iter().all(|event| event.name == "operation"), "{:?}", all.events);
        for (id, states) in states(&all.events) {
            let count = |wanted: &str| states.iter().filter(|state| *state == wanted).count();
            assert_eq!((count("queued"), count("succeeded")), (1, 1), "{id}: {states:?}");
        }
    })
    .await;
}
