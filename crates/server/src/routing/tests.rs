//! The table of routes on a real node of a cluster.

use std::net::SocketAddr;

use axum::routing::MethodFilter;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tidegate_fixture::redis::RedisServer;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::api::routes::routes;
use crate::config::{Config, Overrides};
use crate::server::Server;

/// A node of a cluster, its store and its upstream.
struct Node {
    server: Server,
    client: Client,
    _store: RedisServer,
    _upstream: HttpSim,
}

/// The address of a service that closes every connection once a request has arrived.
async fn closing_service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4_096]).await;
        }
    });
    addr
}

impl Node {
    async fn start() -> Self {
        let store = RedisServer::start();
        let closing = closing_service().await;
        let upstream = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\ndrain_s = 1\n[store]\nurl = \"{}\"\n\
             [[upstream]]\nname = \"echo\"\nbase_url = \"http://{}\"\n\
             [[upstream.limit]]\nname = \"requests\"\ncapacity = 100\nrefill_per_s = 100\n\
             [[upstream]]\nname = \"closing\"\nbase_url = \"http://{closing}\"\n",
            store.url(),
            upstream.addr()
        );
        let config = Config::parse("test.toml", &text, &|_| None, &Overrides::default(), &[]).unwrap();
        let server = Server::start(config).await.unwrap();
        let client = Client::builder().no_proxy().build().unwrap();
        Self { server, client, _store: store, _upstream: upstream }
    }

    fn call(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.server.addr))
    }

    async fn text(&self, path: &str) -> String {
        self.call(Method::GET, path).send().await.unwrap().text().await.unwrap()
    }

    async fn submit(&self) -> String {
        self.submit_to("echo", "g").await
    }

    async fn submit_to(&self, upstream: &str, group: &str) -> String {
        let operation = json!({
            "kind": "http", "upstream": upstream, "group": group, "request": { "method": "POST", "path": "/x" },
        });
        let accepted = self.call(Method::POST, "/v1/operations").body(operation.to_string());
        let accepted: Value =
            serde_json::from_str(&accepted.send().await.unwrap().text().await.unwrap()).unwrap();
        accepted["id"].as_str().unwrap().to_owned()
    }
}

/// A path with something in place of each parameter.
fn filled(path: &str, id: &str) -> String {
    let words = [
        ("{id}", id),
        ("{action}", "pause"),
        ("{type}", "customer"),
        ("{group}", "g"),
        ("{key}", "k"),
        ("{code}", "TG0001"),
        ("{upstream}", "echo"),
        ("{*path}", "x"),
        ("{partition}", "0"),
        ("{*rest}", "v1/operations"),
        ("{name}", "lease"),
        ("{provider}", "replicate"),
        ("{token}", "made-up"),
        ("{index}", "0"),
        // What follows a name is its command.
        ("{*name}", "echo/requests/reserve"),
    ];
    let path = words.into_iter().fold(path.to_owned(), |path, (name, word)| path.replace(name, word));
    assert!(!path.contains('{'), "this test does not know the parameter in {path}");
    path
}

/// A node of a cluster serves every route of the table: the response may be an error about what was
/// sent, but never that there is no such path or method.
#[tokio::test]
async fn a_node_serves_every_route_of_the_table() {
    let node = Node::start().await;
    let id = node.submit().await;
    for spec in routes().into_iter().map(|route| route.spec) {
        let method = match spec.method {
            MethodFilter::GET => Method::GET,
            MethodFilter::POST => Method::POST,
            MethodFilter::PUT => Method::PUT,
            MethodFilter::DELETE => Method::DELETE,
            _ => Method::PATCH,
        };
        let path = filled(spec.path, &id);
        let response = node.call(method.clone(), &path).body("{}").send().await.unwrap();
        let status = response.status().as_u16();
        let is_stream =
            response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let text = if is_stream { String::new() } else { response.text().await.unwrap() };
        let is_missing = status == 405 || status == 404 && text.contains("There is nothing at");
        assert!(!is_missing, "{method} {path}: {status} {text}");
    }
}

/// OPS-23: the overview lists the unknown outcomes of all partitions, with what is known of them.
#[tokio::test]
async fn ops_23_the_page_of_a_node_lists_unknown_outcomes() {
    let node = Node::start().await;
    assert!(!node.text("/").await.contains("id=\"need-"));
    let mut ids = Vec::new();
    for group in ["a", "b", "c"] {
        ids.push(node.submit_to("closing", group).await);
    }
    for id in &ids {
        let view = node.text(&format!("/v1/operations/{id}?wait_ms=30000")).await;
        assert!(view.contains("\"state\":\"unknown\""), "{view}");
    }
    let page = node.text("/").await;
    for id in ids {
        assert!(page.contains(&format!("id=\"need-{id}\"")), "{page}");
    }
}

/// The overview of a node refreshes itself as that of a single node does.
#[tokio::test]
async fn the_page_of_a_node_is_live() {
    let node = Node::start().await;
    assert!(node.text("/").await.contains("/assets/page.js"));
    let regions = node.text("/page/live").await;
    for region in ["counts", "needs", "hour", "deployments"] {
        assert!(regions.contains(&format!("<section id=\"{region}\" data-live")), "{regions}");
    }
    let mut ticks = node.call(Method::GET, "/page/ticks").send().await.unwrap();
    node.submit().await;
    let first = ticks.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: tick"), "{first:?}");
}
