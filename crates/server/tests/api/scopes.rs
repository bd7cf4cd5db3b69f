//! Every route in the OpenAPI description asks for the scope that it names, and for no other.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tidegate_server::Server;
use tidegate_server::config::{ApiToken, TokenScope};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{World, answer, config, within};

const SCOPES: [TokenScope; 4] = [TokenScope::Read, TokenScope::Write, TokenScope::Work, TokenScope::Operate];
/// Long enough for any head of a response.
const HEAD_TIMEOUT: Duration = Duration::from_secs(20);

/// A call that the description lists.
struct DescribedCall {
    method: Method,
    path: String,
    /// `None` for a call that needs no token.
    scope: Option<String>,
}

impl DescribedCall {
    fn all(description: &Value) -> Vec<Self> {
        let mut calls = Vec::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            for (method, call) in item.as_object().unwrap() {
                let scope = call["security"][0]["bearer"][0].as_str().map(str::to_owned);
                let method = method.to_uppercase().parse().unwrap();
                calls.push(Self { method, path: fill(path), scope });
            }
        }
        calls
    }

    /// The status that a caller with this token gets.
    async fn status(&self, world: &World, token: Option<&str>) -> u16 {
        let mut request = world.request(self.method.clone(), &self.path).timeout(HEAD_TIMEOUT);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if [Method::POST, Method::PUT, Method::PATCH].contains(&self.method) {
            request = request.body("{}");
        }
        request.send().await.unwrap().status().as_u16()
    }
}

/// A path with something in the place of its parameters.
fn fill(path: &str) -> String {
    let segment = |segment: &str| match segment {
        "{upstream}" => "echo".to_owned(),
        "{code}" => "TG0001".to_owned(),
        _ if segment.starts_with('{') => "nothing".to_owned(),
        _ => segment.to_owned(),
    };
    path.split('/').map(segment).collect::<Vec<_>>().join("/")
}

fn token_of(scope: TokenScope) -> String {
    format!("a-token-that-may-{}", scope.as_str())
}

async fn world() -> World {
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let mut config = config(&sim, "[auth]\nfailures_per_minute = 0\n");
    config.tokens = SCOPES.map(|scope| ApiToken::new(scope.as_str(), &token_of(scope), vec![scope])).into();
    let server = Server::start(config).await.unwrap();
    World { server, sim, client: reqwest::Client::new() }
}

/// Without a token, with a wrong one and with the token of any other scope a call is refused; with
/// its own scope it is admitted, whatever becomes of it then.
#[tokio::test]
async fn every_described_call_asks_for_its_scope() {
    within(async {
        let world = world().await;
        let description = world.get("/openapi.json").await.json;
        let calls = DescribedCall::all(&description);
        assert!(calls.len() > 60, "{} calls: the test would prove nothing", calls.len());
        for call in &calls {
            let what = format!("{} {}", call.method, call.path);
            let Some(wanted) = &call.scope else {
                let status = call.status(&world, None).await;
                // A webhook has a token of its own, in its path.
                let is_webhook = call.path.starts_with("/api/webhooks/");
                assert!(is_webhook || ![401, 403].contains(&status), "{what} is open: {status}");
                continue;
            };
            assert_eq!(call.status(&world, None).await, 401, "{what} without a token");
            assert_eq!(call.status(&world, Some("a-token-of-no-one")).await, 401, "{what}, wrong token");
            for scope in SCOPES {
                let status = call.status(&world, Some(&token_of(scope))).await;
                let has = scope.as_str();
                match has == wanted {
                    true => assert!(![401, 403].contains(&status), "{what} with {has}: {status}"),
                    false => assert_eq!(status, 403, "{what} with {has}"),
                }
            }
        }
        let reader =
            world.request(Method::POST, "/v1/groups/g/pause").bearer_auth(token_of(TokenScope::Read));
        let refused = answer(reader).await;
        assert_eq!(refused.json["error"]["detail"]["scope"], "operate", "{refused:?}");
        let mut seen: Vec<_> = calls.iter().filter_map(|call| call.scope.as_deref()).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, ["operate", "read", "work", "write"], "every scope is used");
    })
    .await;
}
