//! A 429 over HTTP, with what it says and how long is waited, on the stores that nodes share.

use std::time::Duration;

use reqwest::Client;
use serde_json::json;
use tidegate_server::Server;
use tidegate_server::config::{Config, Overrides};

use crate::pass::upstream::{RecordedRequest, Upstream, answer as reply};
use crate::support::{answer, within};

const TWO_SECONDS: &str = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n";
const NAMED: Duration = Duration::from_millis(2_000);
/// The jitter above what was named, and the time that a busy machine takes.
const LATEST: Duration = Duration::from_millis(5_000);

/// An operation whose first call gets a 429 with `Retry-After: 2` is sent again 2,000 ms later or a
/// little after that, and this is still its first attempt. Another of the same upstream waits as
/// well.
async fn two_seconds_are_waited(store: &str) {
    let upstream = Upstream::start([reply(TWO_SECONDS)]).await;
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[store]\nurl = \"{store}\"\n\
         [[upstream]]\nname = \"up\"\nbase_url = \"http://{}\"\n",
        upstream.addr
    );
    let config = Config::parse("test.toml", &text, &|_| None, &Overrides::default(), &[]).unwrap();
    let server = Server::start(config).await.unwrap();
    let (client, url) = (Client::new(), format!("http://{}/v1/operations", server.addr));
    let submit = async |group: &str| {
        let request = json!({ "method": "POST", "path": format!("/{group}"), "body": {} });
        let operation = json!({ "upstream": "up", "group": group, "request": request });
        let accepted = answer(client.post(&url).body(operation.to_string())).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
        accepted.text("id")
    };
    assert_eq!(closings(&client, &server).await, 0);
    let first = submit("first").await;
    upstream.wait_for_requests(1).await;
    // Until the response is read, no one else knows of it.
    while answer(client.get(format!("{url}/{first}"))).await.text("state") == "running" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let beside = submit("beside").await;
    for id in [first, beside] {
        let ended = answer(client.get(format!("{url}/{id}?wait_ms=30000"))).await.json;
        assert_eq!((&ended["state"], &ended["attempt"]), (&"succeeded".into(), &1.into()), "{ended}");
    }
    let requests = upstream.requests();
    let lines: Vec<_> = requests.iter().map(RecordedRequest::line).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("POST /first ") && lines[1].starts_with("POST /first "), "{lines:?}");
    for again in &requests[1..] {
        let waited = again.at - requests[0].at;
        assert!((NAMED..LATEST).contains(&waited), "{waited:?}, {lines:?}");
    }
    assert_eq!(closings(&client, &server).await, 1, "the last hour of the limit has a mark");
}

/// How often the gate of the upstream was closed in the last hour.
async fn closings(client: &Client, server: &Server) -> u64 {
    let listed = answer(client.get(format!("http://{}/v1/limits?history=true", server.addr))).await.json;
    let gate = listed["limits"].as_array().unwrap().iter().find(|limit| limit["name"] == "up").unwrap();
    let closed = gate["hour"]["closed"].as_array().unwrap_or_else(|| panic!("{listed}"));
    closed.iter().map(|times| times.as_u64().unwrap()).sum()
}

/// LIM-20, LIM-2, LIM-12: on a real Redis.
#[tokio::test(flavor = "multi_thread")]
async fn lim_20_two_seconds_are_waited_on_redis() {
    let store = tidegate_fixture::redis::RedisServer::start();
    within(two_seconds_are_waited(&store.url())).await;
}

/// LIM-20, LIM-2, LIM-12: on a real PostgreSQL.
#[tokio::test(flavor = "multi_thread")]
async fn lim_20_two_seconds_are_waited_on_postgres() {
    let store = tidegate_fixture::postgres::PostgresServer::start();
    within(two_seconds_are_waited(&store.url())).await;
}
