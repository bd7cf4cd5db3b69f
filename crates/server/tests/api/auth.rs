//! Authentication and authorization.

use reqwest::Method;
use tidegate_server::Server;
use tidegate_server::config::{ApiToken, TokenScope};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{World, answer, config, operation, within};

const TOKENS: &str = r#"
[[token]]
name = "reader"
hash = "sha256:b17a4a64064eb01bdc0b66a6ab5b7ed8a5e3ce1f1ff4ec4ab2b4e6da1c1c0e2f"
scopes = ["read"]

[[token]]
name = "writer"
value_env = "TEST_TOKEN"
scopes = ["write"]
"#;

/// Each route requires its scope; a missing, wrong or too weak token is refused, and the token is
/// never repeated.
#[tokio::test]
async fn each_route_asks_for_its_scope() {
    within(async {
        let world = World::with(TOKENS, HttpSimOptions::default()).await;
        let with = |token: &str, method: Method, path: &str| {
            answer(world.request(method, path).bearer_auth(token).body(operation("g").to_string()))
        };
        let writer = "a-token-from-the-environment";
        assert_eq!(with(writer, Method::POST, "/v1/operations").await.status, 202);
        with(writer, Method::GET, "/v1/operations").await.refused(403, "TG0016", None);
        with(writer, Method::GET, "/metrics").await.refused(403, "TG0016", None);
        with(writer, Method::POST, "/v1/groups/g/pause").await.refused(403, "TG0016", None);
        with(writer, Method::PUT, "/v1/limits/echo").await.refused(403, "TG0016", None);
        let wrong = with("hunter2-hunter2-hunter2", Method::GET, "/v1/limits").await;
        wrong.refused(401, "TG0015", None);
        assert!(!wrong.json.to_string().contains("hunter2"));
        world.get("/v1/limits").await.refused(401, "TG0015", None);
        world.get("/metrics").await.refused(401, "TG0015", None);
        world.get("/").await.refused(401, "TG0015", None);
        assert_eq!(world.get("/healthz").await.status, 200);
        assert_eq!(world.get("/readyz").await.status, 200);
        let basic = world.request(Method::POST, "/v1/operations").basic_auth("anybody", Some(writer));
        assert_eq!(answer(basic.body(operation("g").to_string())).await.status, 202);
        let user = world.request(Method::POST, "/v1/operations").basic_auth(writer, Some(""));
        assert_eq!(answer(user.body(operation("g").to_string())).await.status, 202);
        let bare = world.request(Method::GET, "/v1/limits").header("authorization", writer);
        answer(bare).await.refused(401, "TG0015", None);
    })
    .await;
}

#[tokio::test]
async fn a_hash_lets_its_token_in() {
    within(async {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let mut config = config(&sim, "");
        config.tokens = vec![ApiToken::new("r", "the-token-of-a-reader", vec![TokenScope::Read])];
        let server = Server::start(config).await.unwrap();
        let world = World { server, sim, client: reqwest::Client::new() };
        let request = world.request(Method::GET, "/v1/limits").bearer_auth("the-token-of-a-reader");
        assert_eq!(answer(request).await.status, 200);
    })
    .await;
}

/// A server without tokens does not start on an address that other machines can reach.
#[tokio::test]
async fn without_a_token_it_does_not_listen_to_others() {
    within(async {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let mut config = config(&sim, "");
        config.listen = "0.0.0.0:0".parse().unwrap();
        let error = Server::start(config).await.err().unwrap();
        assert_eq!(error.code.to_string(), "TG0020");
        assert!(error.message.contains("[[token]]"), "{error}");
    })
    .await;
}

/// A web site in a browser on this machine cannot use the API: neither by its own name nor across
/// origins.
#[tokio::test]
async fn other_web_sites_are_kept_out() {
    within(async {
        let world = World::new().await;
        let rebound = world.request(Method::GET, "/v1/limits").header("host", "evil.example");
        answer(rebound).await.refused(403, "TG0016", None);
        let body = operation("g").to_string();
        for (name, value) in
            [("origin", "http://evil.example"), ("sec-fetch-site", "cross-site"), ("origin", "null")]
        {
            let crossed =
                world.request(Method::POST, "/v1/operations").header(name, value).body(body.clone());
            answer(crossed).await.refused(403, "TG0016", None);
        }
        let own = world.request(Method::POST, "/v1/operations").header("origin", world.url("")).body(body);
        assert_eq!(answer(own).await.status, 202);
        assert_eq!(world.count().await, 1);
    })
    .await;
}
