//! Idempotency keys for operators, over HTTP.

use reqwest::Method;
use serde_json::{Value, json};
use tidegate_core::shared::record::{HolderToken, OnLapse, RecordClaim};
use tidegate_idempotency::KeyStore;
use tidegate_server::Server;
use tidegate_server::config::{ApiToken, TokenScope};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{Answer, World, answer, config, operation, within};

async fn keyed(world: &World, path: &str, key: &str, body: Value) -> Answer {
    let request = world.request(Method::POST, path).header("idempotency-key", key);
    answer(request.body(body.to_string())).await
}

/// IDM-22: keys are listed and shown, with the status of the response and never its body; an
/// expired one is new again.
#[tokio::test]
async fn idm_22_keys_are_listed_looked_into_and_expired() {
    within(async {
        let world = World::new().await;
        let first = keyed(&world, "/v1/operations", "order-1", operation("secret-group")).await;
        let list = world.get("/v1/keys").await;
        assert_eq!(list.status, 200, "{list:?}");
        let key = &list.json["keys"][0];
        assert_eq!(list.json["keys"].as_array().unwrap().len(), 1, "{list:?}");
        assert_eq!(
            json!([key["key"], key["scope"], key["method"], key["path"], key["state"], key["lease_until"]]),
            json!(["order-1", "-", "POST", "/v1/operations", "completed", null])
        );
        assert!(key["created_at"].as_str().unwrap().ends_with('Z') && key["kept_bytes"].as_u64() > Some(10));
        let shown = world.get("/v1/keys/order-1").await;
        assert_eq!(shown.json["answer"]["status"], 202, "{shown:?}");
        assert!(shown.json["answer"]["body_bytes"].as_u64() > Some(10), "{shown:?}");
        assert_eq!(shown.json["fingerprint"].as_str().map(str::len), Some(64), "{shown:?}");
        assert!(!shown.json.to_string().contains("secret-group"), "{shown:?}");
        let page = world.request(Method::GET, "/keys").send().await.unwrap().text().await.unwrap();
        assert!(page.contains(">order-1<") && !page.contains("secret-group"), "{page}");
        let exact = world.get("/v1/keys/order-1?scope=-&method=post&path=/v1/operations").await;
        assert_eq!(exact.json, shown.json);
        let claimed = world.post("/v1/keys/order-1/release", "").await;
        claimed.refused(409, "TG0013", None);
        let expired = world.post("/v1/keys/order-1/expire", "").await;
        assert_eq!((expired.status, &expired.json["state"]), (200, &json!("expired")), "{expired:?}");
        world.get("/v1/keys/order-1").await.refused(404, "TG0024", Some("key"));
        world.post("/v1/keys/order-1/expire", "").await.refused(404, "TG0024", Some("key"));
        let again = keyed(&world, "/v1/operations", "order-1", operation("secret-group")).await;
        assert_ne!(again.text("id"), first.text("id"));
        // Who saw the first use decides nothing about the second one.
        let seen = key["created_at"].as_str().unwrap();
        let late = world.post(&format!("/v1/keys/order-1/expire?created_at={seen}"), "").await;
        late.refused(409, "TG0013", Some("created_at"));
        let seen = world.get("/v1/keys/order-1").await.text("created_at");
        let expired = world.post(&format!("/v1/keys/order-1/expire?created_at={seen}"), "").await;
        assert_eq!(expired.status, 200, "{expired:?}");
    })
    .await;
}

/// IDM-22: lists have pages and filters.
#[tokio::test]
async fn idm_22_lists_have_pages_and_filters() {
    within(async {
        let world = World::new().await;
        for number in 0..5 {
            keyed(&world, "/v1/operations", &format!("k-{number}"), operation("g")).await;
        }
        let (mut found, mut cursor) = (Vec::new(), String::new());
        for _ in 0..20 {
            let page = world.get(&format!("/v1/keys?limit=2{cursor}")).await.json;
            let keys = page["keys"].as_array().unwrap();
            assert!(keys.len() <= 2, "{page}");
            found.extend(keys.iter().map(|key| key["key"].as_str().unwrap().to_owned()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        found.sort_unstable();
        assert_eq!(found, ["k-0", "k-1", "k-2", "k-3", "k-4"]);
        let count = async |query: &str| {
            world.get(&format!("/v1/keys?{query}")).await.json["keys"].as_array().unwrap().len()
        };
        assert_eq!((count("key=k-3").await, count("key=none").await, count("scope=-").await), (1, 0, 5));
        assert_eq!((count("state=completed").await, count("state=unknown").await), (5, 0));
        assert_eq!(count("scope=somebody").await, 0);
        for (query, field) in [
            ("state=done", "state"),
            ("limit=201", "limit"),
            ("key=%C3%A9", "key"),
            ("scope=~a%20b", "scope"),
            ("what=1", "what"),
        ] {
            world.get(&format!("/v1/keys?{query}")).await.refused(400, "TG0001", Some(field));
        }
        let other = world.get(&format!("/v1/keys?state=completed{cursor}x")).await;
        other.refused(400, "TG0014", Some("cursor"));
    })
    .await;
}

/// IDM-22: an ambiguous key is refused with a list of the candidates.
#[tokio::test]
async fn idm_22_a_key_that_is_not_unique_is_asked_for_by_its_parts() {
    within(async {
        let world = World::new().await;
        keyed(&world, "/v1/operations", "same", operation("g")).await;
        keyed(&world, "/v1/operations/batch", "same", json!({ "operations": [operation("g")] })).await;
        let both = world.post("/v1/keys/same/expire", "").await;
        both.refused(409, "TG0025", None);
        let candidates = both.json["error"]["detail"]["candidates"].as_array().unwrap();
        let mut paths: Vec<_> = candidates.iter().map(|one| one["path"].as_str().unwrap()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["/v1/operations", "/v1/operations/batch"], "{both:?}");
        assert_eq!(candidates[0]["scope"], "-");
        let one = world.post("/v1/keys/same/expire?path=/v1/operations/batch", "").await;
        assert_eq!((one.status, &one.json["path"]), (200, &json!("/v1/operations/batch")), "{one:?}");
        assert_eq!(world.get("/v1/keys/same").await.json["path"], "/v1/operations");
    })
    .await;
}

/// IDM-22: reading requires `read`, changing `operate`, as everywhere.
#[tokio::test]
async fn idm_22_each_call_asks_for_its_scope() {
    within(async {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let mut config = config(&sim, "");
        let token = |name: &str, scope| ApiToken::new(name, &format!("the-token-of-{name}"), vec![scope]);
        config.tokens = vec![
            token("reader", TokenScope::Read),
            token("writer", TokenScope::Write),
            token("operator", TokenScope::Operate),
        ];
        let server = Server::start(config).await.unwrap();
        let world = World { server, sim, client: reqwest::Client::new() };
        let call = |who: &str, method: Method, path: &str| {
            let request = world.request(method, path).bearer_auth(format!("the-token-of-{who}"));
            answer(request.header("idempotency-key", "k").body(operation("g").to_string()))
        };
        assert_eq!(call("writer", Method::POST, "/v1/operations").await.status, 202);
        call("writer", Method::GET, "/v1/keys").await.refused(403, "TG0016", None);
        call("operator", Method::GET, "/v1/keys/k").await.refused(403, "TG0016", None);
        call("reader", Method::POST, "/v1/keys/k/expire").await.refused(403, "TG0016", None);
        call("writer", Method::POST, "/v1/keys/k/release").await.refused(403, "TG0016", None);
        world.get("/v1/keys").await.refused(401, "TG0015", None);
        assert_eq!(call("reader", Method::GET, "/v1/keys/k?scope=writer").await.json["scope"], "writer");
        assert_eq!(call("operator", Method::POST, "/v1/keys/k/expire?scope=writer").await.status, 200);
    })
    .await;
}

/// IDM-22: a claim is released and not expired, whether its request is processing or its outcome is
/// unknown; the routes need no server, so another service can serve them for its own keys.
#[tokio::test]
async fn idm_22_a_claim_is_released_and_nothing_else() {
    within(async {
        let store = tidegate_server::backend::open("memory:").await.unwrap();
        let gate = KeyStore::new(store.clone());
        let router = tidegate_server::keys_router(gate.keys(), "tester");
        let claim = |lease| RecordClaim {
            fingerprint: [1; 32],
            token: HolderToken([2; 16]),
            lease: std::time::Duration::from_secs(lease),
            ttl: std::time::Duration::from_secs(3_600),
            on_lapse: OnLapse::Hold,
        };
        store.claim_record("acme POST /pay busy", claim(3_600)).await.unwrap();
        store.claim_record("acme POST /pay lost", claim(3_600)).await.unwrap();
        store
            .renew_record("acme POST /pay lost", HolderToken([2; 16]), std::time::Duration::ZERO)
            .await
            .unwrap();
        let call = async |method: &str, path: &str| ask(&router, method, path, Value::Null).await;
        for (key, state) in [("busy", "processing"), ("lost", "unknown")] {
            let list = call("GET", &format!("/v1/keys?state={state}")).await;
            assert_eq!(list.json["keys"].as_array().unwrap().len(), 1, "{list:?}");
            let shown = call("GET", &format!("/v1/keys/{key}")).await;
            assert_eq!(json!([shown.json["state"], shown.json["on_lapse"]]), json!([state, "hold"]));
            call("POST", &format!("/v1/keys/{key}/expire")).await.refused(409, "TG0013", None);
            let released = call("POST", &format!("/v1/keys/{key}/release?scope=acme")).await;
            assert_eq!(released.json["state"], "released", "{released:?}");
            call("POST", &format!("/v1/keys/{key}/release")).await.refused(404, "TG0024", Some("key"));
        }
    })
    .await;
}

async fn ask(router: &axum::Router, method: &str, path: &str, body: Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = axum::http::Request::builder().method(method).uri(path);
    let request = request.body(axum::body::Body::from(body)).unwrap();
    let response = tower::ServiceExt::oneshot(router.clone(), request).await.unwrap();
    let status = response.status().as_u16();
    let body = axum::body::to_bytes(response.into_body(), 100_000).await.unwrap();
    Answer { status, json: serde_json::from_slice(&body).unwrap() }
}

/// IDM-22: the response of a request with an unknown outcome is recorded; keys that are processing
/// or completed are left unchanged.
#[tokio::test]
async fn idm_22_an_answer_is_recorded_for_an_unknown_outcome() {
    within(async {
        let store = tidegate_server::backend::open("memory:").await.unwrap();
        let router = tidegate_server::keys_router(KeyStore::new(store.clone()).keys(), "tester");
        let lease = std::time::Duration::from_secs(3_600);
        let token = HolderToken([2; 16]);
        let claim = RecordClaim { fingerprint: [1; 32], token, lease, ttl: lease, on_lapse: OnLapse::Hold };
        for key in ["busy", "lost"] {
            store.claim_record(&format!("acme POST /pay {key}"), claim).await.unwrap();
        }
        store.renew_record("acme POST /pay lost", token, std::time::Duration::ZERO).await.unwrap();
        let complete = async |key: &str, answer: Value| {
            ask(&router, "POST", &format!("/v1/keys/{key}/complete"), answer).await
        };
        let made = json!({ "status": 201, "body": { "id": 7 } });
        complete("busy", made.clone()).await.refused(409, "TG0013", None);
        complete("none", made.clone()).await.refused(404, "TG0024", Some("key"));
        complete("lost", json!({ "body": 1 })).await.refused(400, "TG0001", Some("status"));
        let recorded = complete("lost", made.clone()).await;
        assert_eq!(recorded.status, 200, "{recorded:?}");
        assert_eq!(
            json!([recorded.json["state"], recorded.json["answer"]]),
            json!(["completed", { "status": 201, "body_bytes": 8 }])
        );
        complete("lost", made).await.refused(409, "TG0013", None);
    })
    .await;
}
