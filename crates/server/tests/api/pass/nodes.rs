//! LIM-28: the paced proxy in a cluster.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::Value;
use tidegate_core::OperationId;
use tidegate_fixture::redis::RedisServer;
use tidegate_server::Server;

use super::config;
use super::upstream::{ScriptedReply, Upstream, answer as next};
use crate::support::{wait_until_joined, within};

const GOOD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-other: 1\r\ncontent-length: 4\r\n\r\ngood";

fn ask(client: &Client, node: &Server, method: Method, path: &str) -> RequestBuilder {
    client.request(method, format!("http://{}{path}", node.addr))
}

async fn start(store: &RedisServer, upstream: &Upstream, more: &str) -> Server {
    Server::start(config(&store.url(), upstream.addr, more)).await.unwrap()
}

async fn json(request: RequestBuilder) -> Value {
    serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap()
}

/// The address of the node that owns the partition of an operation.
async fn owner(client: &Client, node: &Server, id: &str) -> String {
    let id: OperationId = id.parse().unwrap();
    let view = json(ask(client, node, Method::GET, "/v1/cluster")).await;
    let name = &view["partitions"][usize::from(id.partition())]["node"];
    name.as_str().unwrap().split('@').nth(1).unwrap().to_owned()
}

fn id_of(response: &Response) -> String {
    response.headers()["x-tidegate-operation"].to_str().unwrap().to_owned()
}

/// LIM-28: through any node, the complete request arrives and the complete response comes back,
/// even with statuses that nodes use among themselves.
#[tokio::test]
async fn lim_28_any_node_passes_the_whole_request_and_the_whole_answer() {
    within(async {
        let odd = "HTTP/1.1 421 Odd\r\nx-many: a=1\r\nx-many: b=2\r\ncontent-length: 2\r\n\r\n\u{1}\u{2}";
        let no = "HTTP/1.1 403 No\r\nx-request-id: theirs\r\ncontent-length: 0\r\n\r\n";
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 4711\r\n\r\n";
        let bare = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let one = [odd, no, head, bare];
        let upstream = Upstream::start(one.iter().chain(&one).map(|text| next(text))).await;
        let store = RedisServer::start();
        let nodes = [start(&store, &upstream, "").await, start(&store, &upstream, "").await];
        let client = Client::builder().no_proxy().build().unwrap();
        wait_until_joined(&client, &[nodes[0].addr, nodes[1].addr]).await;
        for node in &nodes {
            let body = vec![0_u8, 255, 10];
            let request = ask(&client, node, Method::POST, "/proxy/up/a%2Fb%FF?x=1")
                .header("x-tag", "a")
                .header("x-tag", "b");
            let odd = request.header("x-tidegate-group", "g").body(body.clone()).send().await.unwrap();
            assert_eq!(odd.status(), 421);
            assert_eq!(odd.headers().get_all("x-many").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
            let id = id_of(&odd);
            assert_eq!(&odd.bytes().await.unwrap()[..], [1, 2]);
            let seen = upstream.requests().last().unwrap().clone();
            assert_eq!((seen.line(), seen.body.clone()), ("POST /a%2Fb%FF?x=1 HTTP/1.1", body));
            assert_eq!(seen.all("x-tag"), ["a, b"]);
            assert_eq!(seen.all("tidegate-operation"), [id.as_str()]);
            assert!(
                seen.all("x-request-id").is_empty() && !seen.head.contains("x-tidegate-"),
                "{}",
                seen.head
            );
            let no = ask(&client, node, Method::GET, "/proxy/up/x").send().await.unwrap();
            assert_eq!(
                (no.status().as_u16(), &no.headers()["x-request-id"]),
                (403, &"theirs".parse().unwrap())
            );
            let policies: Vec<_> = no.headers().get_all("content-security-policy").iter().collect();
            assert_eq!(policies, ["sandbox"], "once, however many nodes it came through");
            for len in [Some("4711"), None] {
                let head = ask(&client, node, Method::HEAD, "/proxy/up/x").header("x-request-id", "mine");
                let head = head.send().await.unwrap();
                assert_eq!(head.headers()["x-request-id"], "mine", "the upstream sent none");
                assert_eq!(head.headers().get("content-length").map(|len| len.to_str().unwrap()), len);
            }
            let none = ask(&client, node, Method::GET, "/proxy/nobody/x").send().await.unwrap();
            assert_eq!(
                (none.status().as_u16(), &none.headers()["x-tidegate-error"]),
                (404, &"TG0003".parse().unwrap())
            );
        }
        assert_eq!(upstream.requests().len(), 8);
    })
    .await;
}

/// LIM-28: a node that shuts down cancels its waiting calls, and the other one makes them.
#[tokio::test]
async fn lim_28_what_waits_in_a_node_that_stops_is_made_by_another() {
    within(async {
        let upstream = Upstream::start([next(GOOD), ScriptedReply::Hold(GOOD.into()), next(GOOD)]).await;
        let store = RedisServer::start();
        let (one, other) = (start(&store, &upstream, "").await, start(&store, &upstream, "").await);
        let client = Client::builder().no_proxy().build().unwrap();
        wait_until_joined(&client, &[one.addr, other.addr]).await;
        let first = ask(&client, &one, Method::GET, "/proxy/up/x").send().await.unwrap();
        let at = owner(&client, &one, &id_of(&first)).await;
        let (owns, asks) = if at == one.addr.to_string() { (one, other) } else { (other, one) };
        let post = |path: &str| {
            let request = ask(&client, &asks, Method::POST, path).header("x-tidegate-group", "up");
            tokio::spawn(request.body("{}").send())
        };
        let under_way = post("/proxy/up/under-way");
        upstream.wait_for_requests(2).await;
        let waits = post("/proxy/up/waits");
        while json(ask(&client, &asks, Method::GET, "/v1/groups/up")).await["depth"] != 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let stopping = tokio::spawn(owns.shutdown());
        tokio::time::sleep(Duration::from_millis(300)).await;
        upstream.go.add_permits(1);
        for call in [under_way, waits] {
            let response = call.await.unwrap().unwrap();
            assert_eq!(response.status(), 200, "{response:?}");
            assert_eq!(response.text().await.unwrap(), "good");
        }
        stopping.await.unwrap();
        let paths: Vec<_> = upstream.requests().iter().map(|seen| seen.line().to_owned()).collect();
        assert_eq!(paths, ["GET /x HTTP/1.1", "POST /under-way HTTP/1.1", "POST /waits HTTP/1.1"]);
    })
    .await;
}

/// LIM-28: a call whose partition moves to another node while it waits is followed there, and is
/// made once.
#[tokio::test]
async fn lim_28_a_call_is_followed_when_its_place_moves() {
    const UPSTREAMS: usize = 12;
    within(async {
        let upstream = Upstream::start(vec![next(GOOD); UPSTREAMS]).await;
        let more: String = (0..UPSTREAMS)
            .map(|n| format!("[[upstream]]\nname = \"up-{n}\"\nbase_url = \"http://{}\"\n", upstream.addr))
            .collect();
        let store = RedisServer::start();
        let one = start(&store, &upstream, &more).await;
        let client = Client::builder().no_proxy().build().unwrap();
        wait_until_joined(&client, &[one.addr]).await;
        let send =
            |path: String, body: &'static str| ask(&client, &one, Method::POST, &path).body(body).send();
        let post = |path: String| send(path, "{}");
        for n in 0..UPSTREAMS {
            let paused = send(format!("/v1/groups/up-{n}/pause"), r#"{"create":true}"#).await;
            assert_eq!(paused.unwrap().status(), 200);
        }
        let call = |n: usize| {
            let request = ask(&client, &one, Method::POST, &format!("/proxy/up-{n}/x?n={n}"));
            tokio::spawn(request.header("x-tidegate-group", format!("up-{n}")).body("{}").send())
        };
        let calls: Vec<_> = (0..UPSTREAMS).map(call).collect();
        while json(ask(&client, &one, Method::GET, "/v1/operations?limit=200")).await["operations"]
            .as_array()
            .unwrap()
            .len()
            < UPSTREAMS
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let other = start(&store, &upstream, &more).await;
        wait_until_joined(&client, &[one.addr, other.addr]).await;
        for n in 0..UPSTREAMS {
            assert_eq!(post(format!("/v1/groups/up-{n}/resume")).await.unwrap().status(), 200);
        }
        let mut moved = 0;
        for call in calls {
            let response = call.await.unwrap().unwrap();
            assert_eq!(response.status(), 200, "{response:?}");
            let (id, kind) = (id_of(&response), response.headers()["content-type"].clone());
            moved += usize::from(owner(&client, &one, &id).await == other.addr.to_string());
            assert_eq!((kind.to_str().unwrap(), &*response.text().await.unwrap()), ("text/plain", "good"));
        }
        assert!(moved > 0, "none of them has moved");
        assert_eq!(upstream.requests().len(), UPSTREAMS, "each was made once");
    })
    .await;
}

/// OPS-6, OPS-7: any node accepts, waits for the end and finds by key, upstream and states,
/// wherever the operation is.
#[tokio::test]
async fn ops_6_any_node_waits_and_finds() {
    within(async {
        let upstream = Upstream::start((0..8).map(|_| next(GOOD))).await;
        let store = RedisServer::start();
        let more = "spread = \"group\"\n";
        let nodes = [start(&store, &upstream, more).await, start(&store, &upstream, more).await];
        let client = Client::builder().no_proxy().build().unwrap();
        wait_until_joined(&client, &[nodes[0].addr, nodes[1].addr]).await;
        let listening = ask(&client, &nodes[0], Method::GET, "/v1/events?results=true").send().await.unwrap();
        assert_eq!(listening.status(), 200);
        let mut ids = Vec::new();
        for n in 0..8 {
            let body = serde_json::json!({
                "upstream": "up", "group": format!("g{n}"), "dedupe_key": format!("k{n}"),
                "request": { "method": "POST", "path": "/x" },
            });
            let (path, wish) =
                if n < 4 { ("/v1/operations?wait_ms=30000", "") } else { ("/v1/operations", "wait=30") };
            let request = ask(&client, &nodes[n % 2], Method::POST, path).header("prefer", wish);
            let response = request.body(body.to_string()).send().await.unwrap();
            let status = response.status().as_u16();
            assert_eq!(response.headers().contains_key("preference-applied"), n >= 4);
            let ended: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
            assert_eq!((status, &ended["state"]), (200, &"succeeded".into()), "{ended}");
            assert_eq!((&ended["result"]["body"], &ended["deduplicated"]), (&"good".into(), &false.into()));
            ids.insert(0, ended["id"].clone());
        }
        for node in &nodes {
            let list = async |query: &str| {
                let page = json(ask(&client, node, Method::GET, &format!("/v1/operations?{query}"))).await;
                let all = page["operations"].as_array().unwrap_or_else(|| panic!("{page}")).clone();
                all.iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
            };
            assert_eq!(list("dedupe_key=k5").await, [ids[2].clone()]);
            assert_eq!(list("upstream=up&state=failed,succeeded").await, ids);
            assert_eq!(list("upstream=other").await, [Value::Null; 0]);
            assert_eq!(list("error=500").await, [Value::Null; 0]);
            // A group is known wherever its operations were, also when all have ended.
            for (group, status) in [("g0", 200), ("g7", 200), ("misspelled", 404)] {
                for command in ["resume", "rerun"] {
                    let path = format!("/v1/groups/{group}/{command}");
                    let done = ask(&client, node, Method::POST, &path).send().await.unwrap();
                    assert_eq!(done.status(), status, "{path}");
                }
            }
            let refused =
                ask(&client, node, Method::POST, "/v1/operations?wait=3").body("{}").send().await.unwrap();
            assert_eq!(refused.status(), 400);
        }
    })
    .await;
}

/// LIM-28: bodies that are too large to be buffered pass through any node, both ways.
#[tokio::test]
async fn lim_28_large_bodies_pass_through_any_node() {
    within(async {
        let body = vec![b'x'; 3 << 20];
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        let answer = [head.into_bytes(), body.clone()].concat();
        let upstream = Upstream::start(vec![ScriptedReply::Answer(answer); 2]).await;
        let store = RedisServer::start();
        let nodes = [start(&store, &upstream, "").await, start(&store, &upstream, "").await];
        let client = Client::builder().no_proxy().build().unwrap();
        wait_until_joined(&client, &[nodes[0].addr, nodes[1].addr]).await;
        for node in &nodes {
            let request = ask(&client, node, Method::PUT, "/proxy/up/x").body(body.clone());
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 200, "{response:?}");
            assert!(response.bytes().await.unwrap() == body, "all of it");
            assert!(upstream.requests().last().unwrap().body == body, "all of it");
        }
        assert_eq!(upstream.requests().len(), 2);
    })
    .await;
}
