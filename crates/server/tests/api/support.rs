//! A server with everything it needs, and a client that knows its address.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tidegate_server::Server;
use tidegate_server::config::{Config, Overrides};
use tidegate_sim::{HttpSim, HttpSimOptions};

/// Longer than anything here may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A server, its upstream and a client.
pub(crate) struct World {
    pub server: Server,
    pub sim: HttpSim,
    pub client: Client,
}

/// A response: status and JSON.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub json: Value,
}

impl World {
    /// With one upstream `echo`, without limits.
    pub(crate) async fn new() -> Self {
        Self::with("", HttpSimOptions::default()).await
    }

    /// With more in the configuration; `[[upstream.limit]]` first, since it belongs to `echo`.
    pub(crate) async fn with(more: &str, sim: HttpSimOptions) -> Self {
        let sim = HttpSim::start(sim).await.unwrap();
        let server = Server::start(config(&sim, more)).await.unwrap();
        Self { server, sim, client: Client::new() }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.addr)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path)).timeout(LIMIT)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl ToString) -> Answer {
        answer(self.request(Method::POST, path).body(body.to_string())).await
    }

    pub(crate) async fn put(&self, path: &str, body: impl ToString) -> Answer {
        answer(self.request(Method::PUT, path).body(body.to_string())).await
    }

    /// Submits an operation and returns its id.
    pub(crate) async fn submit(&self, operation: Value) -> String {
        let answer = self.post("/v1/operations", operation).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.text("id")
    }

    /// Waits for its end.
    pub(crate) async fn wait_until_ended(&self, id: &str) -> Value {
        self.get(&format!("/v1/operations/{id}?wait_ms=30000")).await.json
    }

    /// How many operations there are.
    pub(crate) async fn count(&self) -> usize {
        self.get("/v1/operations?limit=200").await.json["operations"].as_array().unwrap().len()
    }
}

impl Answer {
    pub(crate) fn text(&self, field: &str) -> String {
        self.json[field].as_str().unwrap_or_else(|| panic!("{field} in {self:?}")).to_owned()
    }

    /// Asserts that it is an error with this status, code and field, and a message.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str, field: Option<&str>) {
        let error = &self.json["error"];
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(error["code"], code, "{self:?}");
        assert_eq!(error["detail"]["field"].as_str(), field, "{self:?}");
        assert_eq!(error["field"].as_str(), field, "{self:?}");
        assert_eq!(error["link"], format!("/docs/errors/{code}"), "{self:?}");
        assert!(error["title"].as_str().is_some_and(|title| title.len() > 3), "{self:?}");
        let first = &error["problems"][0];
        assert_eq!((&first["code"], &first["message"]), (&error["code"], &error["message"]), "{self:?}");
        assert!(error["message"].as_str().is_some_and(|message| message.len() > 10), "{self:?}");
    }
}

pub(crate) fn config(sim: &HttpSim, more: &str) -> Config {
    config_on("memory:", sim, more)
}

/// The same on this store.
pub(crate) fn config_on(store: &str, sim: &HttpSim, more: &str) -> Config {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ndrain_s = 1\nread_timeout_s = 2\n[store]\nurl = \"{store}\"\n\
         [[upstream]]\nname = \"echo\"\nbase_url = \"http://{}\"\n{more}",
        sim.addr()
    );
    let env = |name: &str| (name == "TEST_TOKEN").then(|| "a-token-from-the-environment".to_owned());
    Config::parse("test.toml", &text, &env, &Overrides::default(), &[]).unwrap()
}

/// A valid operation.
pub(crate) fn operation(group: &str) -> Value {
    json!({
        "kind": "http", "upstream": "echo", "group": group,
        "request": { "method": "POST", "path": "/x", "headers": {}, "body": { "n": 1 } },
    })
}

/// The same with one additional field.
pub(crate) fn with(field: &str, value: impl Into<Value>) -> Value {
    let mut operation = operation("g");
    operation[field] = value.into();
    operation
}

pub(crate) async fn answer(request: RequestBuilder) -> Answer {
    read(request.send().await.unwrap()).await
}

pub(crate) async fn read(response: Response) -> Answer {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    let json = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status} with {text:?}"));
    Answer { status, json }
}

/// Waits until all nodes of a store see that each of them has a share of its partitions.
pub(crate) async fn wait_until_joined(client: &Client, nodes: &[SocketAddr]) {
    for node in nodes {
        loop {
            let view = answer(client.get(format!("http://{node}/v1/cluster"))).await.json;
            let owned = |node: &Value| node["partitions"].as_array().unwrap().len();
            let parts: Vec<usize> = view["nodes"].as_array().unwrap().iter().map(owned).collect();
            let (each, all) = (16 / nodes.len(), parts.iter().sum::<usize>());
            if parts.len() == nodes.len() && all == 16 && parts.iter().all(|share| *share >= each) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Fails instead of hanging forever.
pub(crate) fn within<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    // A test with a server in it is large.
    let work = Box::pin(work);
    async move { tokio::time::timeout(LIMIT, work).await.expect("it took too long") }
}
