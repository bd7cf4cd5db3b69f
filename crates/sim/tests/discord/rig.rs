//! A running simulator, and a caller with a token.

use std::net::{IpAddr, Ipv4Addr};

use reqwest::header::HeaderMap;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tidegate_sim::discord::limits::DiscordLimits;
use tidegate_sim::{DiscordSim, DiscordSimOptions};

/// The guild that most tests call.
pub(crate) const GUILD: u64 = 4_242;

/// A simulator and its caller.
pub(crate) struct Rig {
    pub sim: DiscordSim,
    pub client: Client,
    pub token: Option<&'static str>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl TestResponse {
    pub(crate) fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// Returns the id of the created object.
    pub(crate) fn id(&self) -> String {
        self.body()["id"].as_str().unwrap().to_owned()
    }

    /// Returns the status and the code.
    pub(crate) fn refusal(&self) -> (u16, u64) {
        (self.status, self.body()["code"].as_u64().unwrap_or_default())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Returns options whose routes have no effective limits.
pub(crate) fn open() -> DiscordSimOptions {
    let mut limits = DiscordLimits::default();
    for name in ["routes", "global", "renames", "role-creates"] {
        limits.set(name, 1_000_000, 3_600_000).unwrap();
    }
    DiscordSimOptions { limits, ..DiscordSimOptions::default() }
}

pub(crate) fn client_from(last: u8) -> Client {
    Client::builder()
        .no_proxy()
        .retry(reqwest::retry::never())
        .user_agent("DiscordBot (https://example.invalid, 1)")
        .local_address(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)))
        .build()
        .unwrap()
}

impl Rig {
    pub(crate) async fn start(options: DiscordSimOptions) -> Self {
        let sim = DiscordSim::start(options).await.unwrap();
        Self { sim, client: client_from(1), token: Some("t") }
    }

    /// Makes a call that may be cut.
    pub(crate) async fn try_call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Option<TestResponse> {
        let path = if path.starts_with("/_sim") { path.to_owned() } else { format!("/api/v10{path}") };
        let mut request = self.client.request(method, format!("http://{}{path}", self.sim.addr()));
        if let Some(token) = self.token {
            request = request.header("authorization", format!("Bot {token}"));
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = request.header("x-audit-log-reason", "set%20up").send().await.ok()?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Some(TestResponse { status, headers, text: answer.text().await.unwrap() })
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Value) -> TestResponse {
        self.try_call(method, path, Some(&body)).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.try_call(Method::GET, path, None).await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.call(Method::POST, path, body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> TestResponse {
        self.call(Method::PATCH, path, body).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> TestResponse {
        self.call(Method::PUT, path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> TestResponse {
        self.try_call(Method::DELETE, path, None).await.unwrap()
    }

    pub(crate) async fn role(&self, body: Value) -> String {
        self.post(&format!("/guilds/{GUILD}/roles"), body).await.id()
    }

    pub(crate) async fn channel(&self, body: Value) -> String {
        self.post(&format!("/guilds/{GUILD}/channels"), body).await.id()
    }

    /// Advances the simulator's clock.
    pub(crate) async fn forward(&self, ms: u64) {
        assert_eq!(self.post("/_sim/clock", json!({"for_ms": ms})).await.status, 200);
    }

    /// Sets the bot's permissions from now on.
    pub(crate) async fn permit(&self, permissions: u64) {
        self.get(&format!("/guilds/{GUILD}")).await;
        let body = json!({"bot_permissions": permissions.to_string()});
        assert_eq!(self.post(&format!("/_sim/guilds/{GUILD}"), body).await.status, 200);
    }
}
