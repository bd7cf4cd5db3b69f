//! `Idempotency-Key` on the server's own POST routes.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::Value;
use tidegate_core::shared::record::{ForgetTarget, HolderToken, OnLapse, RecordClaim};
use tidegate_server::Server;
use tidegate_server::config::SealKeys;
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{World, answer, config_on, operation, read, with, within};

const CALLERS: &str = r#"
[[token]]
name = "first"
value_env = "TEST_TOKEN"
scopes = ["read", "write", "operate"]

[[token]]
name = "second"
hash = "sha256:95bb0389b458c2b5ee446c5ff1aa7e5f04060d09670cba8dd91db32a89c8556e"
scopes = ["write"]
"#;

async fn send(world: &World, path: &str, key: &str, body: &Value) -> Response {
    let request = world.request(Method::POST, path).header("idempotency-key", key);
    request.body(body.to_string()).send().await.unwrap()
}

fn is_replayed(response: &Response) -> bool {
    response.headers().get("idempotent-replayed").is_some_and(|value| value == "true")
}

/// IDM-12, IDM-2, IDM-4: the same POST with one key is accepted once and gets the same response;
/// another body with that key is refused, to the letter; without a key nothing changes.
#[tokio::test]
async fn idm_12_a_repeated_post_is_answered_and_not_accepted_again() {
    within(async {
        let world = World::new().await;
        let first = send(&world, "/v1/operations", "order-1", &operation("g")).await;
        assert!(first.status() == 202 && !is_replayed(&first), "{first:?}");
        let first = first.text().await.unwrap();
        let again = send(&world, "/v1/operations", "\"order-1\"", &operation("g")).await;
        assert!(again.status() == 202 && is_replayed(&again), "{again:?}");
        assert!(again.headers().contains_key("x-request-id"), "{again:?}");
        assert_eq!(again.text().await.unwrap(), first);
        assert_eq!(world.count().await, 1);
        let other = send(&world, "/v1/operations", "order-1", &operation("h")).await;
        assert_eq!(other.status(), 409);
        assert_eq!(other.headers()["x-tidegate-error"], "IDEMPOTENCY_KEY_CONFLICT");
        assert_eq!(
            other.text().await.unwrap(),
            "{\"detail\":\"Idempotency key already used with different request body\",\
             \"error_code\":\"IDEMPOTENCY_KEY_CONFLICT\",\"idempotency_key\":\"order-1\"}"
        );
        let batch = serde_json::json!({ "operations": [operation("g")] });
        let elsewhere = send(&world, "/v1/operations/batch", "order-1", &batch).await;
        assert_eq!(elsewhere.status(), 202, "another route is another key");
        for _ in 0..2 {
            assert_eq!(world.post("/v1/operations", operation("g")).await.status, 202);
        }
        assert_eq!(world.count().await, 4);
    })
    .await;
}

/// IDM-2: names in a path that differ are different, also where another service would take one for
/// the other.
#[tokio::test]
async fn idm_2_names_that_differ_do_not_share_a_key() {
    within(async {
        let world = World::new().await;
        let body = serde_json::json!({ "cost": 1, "capacity": 4, "refill_per_s": 0.001 });
        for name in ["a/b", "a//b", "a/b/", "a/%2F/b", "a/c"] {
            let path = format!("/v1/buckets/{name}/reserve");
            let first = send(&world, &path, "k", &body).await;
            assert!(first.status() == 200 && !is_replayed(&first), "{name}: {first:?}");
            assert!(is_replayed(&send(&world, &path, "k", &body).await), "{name}");
        }
        let buckets = world.get("/v1/buckets").await.json;
        assert_eq!(buckets["buckets"].as_array().map(Vec::len), Some(5), "{buckets}");
    })
    .await;
}

/// IDM-12: a repeated submission that waits gets the operation as it is now, whatever the first one
/// waited for; the time to wait is no part of the request.
#[tokio::test]
async fn idm_12_a_repeat_that_waits_gets_the_present_state() {
    within(async {
        let world = World::new().await;
        world.post("/v1/groups/g/pause", r#"{"create":true}"#).await;
        let first = send(&world, "/v1/operations?wait_ms=20", "k", &operation("g")).await;
        assert!(first.status() == 202 && !is_replayed(&first), "{first:?}");
        let first = read(first).await;
        world.post("/v1/groups/g/resume", "").await;
        for path in ["/v1/operations?wait_ms=20000", "/v1/operations?wait_ms=30000"] {
            let again = send(&world, path, "k", &operation("g")).await;
            assert!(again.status() == 200 && is_replayed(&again), "{again:?}");
            let again = read(again).await;
            assert_eq!((again.text("id"), again.text("state")), (first.text("id"), "succeeded".into()));
        }
        let without = send(&world, "/v1/operations", "k", &operation("g")).await;
        assert!(without.status() == 202 && is_replayed(&without), "{without:?}");
        assert_eq!(send(&world, "/v1/operations?wait_ms=1", "k", &operation("h")).await.status(), 409);
        assert_eq!(world.count().await, 1);
    })
    .await;
}

/// IDM-12: a repeat that comes while the first request waits, or after its client has gone, finds
/// the operation and waits for it too.
#[tokio::test]
async fn idm_12_a_repeat_waits_along_with_the_first() {
    within(async {
        let world = World::new().await;
        world.post("/v1/groups/g/pause", r#"{"create":true}"#).await;
        let long = world.request(Method::POST, "/v1/operations?wait_ms=50000").header("idempotency-key", "k");
        let long = tokio::spawn(long.body(operation("g").to_string()).send());
        while world.count().await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let again = loop {
            let again = send(&world, "/v1/operations?wait_ms=20", "k", &operation("g")).await;
            // The first response may still be on its way into the store.
            if again.status() != 409 {
                break again;
            }
        };
        assert!(again.status() == 202 && is_replayed(&again), "{again:?}");
        let again = read(again).await;
        assert_eq!(again.text("state"), "waiting");
        long.abort();
        let preferred = world.request(Method::POST, "/v1/operations").header("idempotency-key", "k");
        let preferred = preferred.header("prefer", "wait=50").body(operation("g").to_string()).send();
        let (ended, ()) = tokio::join!(preferred, async {
            world.post("/v1/groups/g/resume", "").await;
        });
        let ended = ended.unwrap();
        assert!(ended.status() == 200 && ended.headers().contains_key("preference-applied"), "{ended:?}");
        let ended = read(ended).await;
        assert_eq!((ended.text("id"), ended.text("state")), (again.text("id"), "succeeded".into()));
        let wrong = read(send(&world, "/v1/operations?wait_ms=x", "other", &operation("g")).await).await;
        wrong.refused(400, "TG0001", Some("wait_ms"));
        assert_eq!(world.count().await, 1);
    })
    .await;
}

/// IDM-12, OPS-3: when the process died between the acceptance and the key's completion, the
/// request that takes the key over finds the operation.
#[tokio::test]
async fn idm_12_a_key_left_by_a_dead_process_finds_its_operation() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let store = format!("file:{}", dir.path().join("data").display());
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let mut answers = Vec::new();
        for _ in 0..2 {
            // The folder is free when the last task of the one before has ended.
            let server = loop {
                match Server::start(config_on(&store, &sim, "")).await {
                    Ok(server) => break server,
                    Err(error) => assert_eq!(error.code.to_string(), "TG0022", "{error}"),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            };
            let request = reqwest::Client::new().post(format!("http://{}/v1/operations", server.addr));
            let request = request.header("idempotency-key", "k").body(operation("g").to_string());
            answers.push(answer(request).await);
            server.shutdown().await;
            leave_unsettled(&store, "- POST /v1/operations k").await;
        }
        assert_eq!(answers[0].text("id"), answers[1].text("id"), "{answers:?}");
        let again = &answers[1].json;
        assert_eq!((&again["deduplicated"], again.get("dedupe_key")), (&true.into(), None), "{again}");
    })
    .await;
}

/// Leaves a key as a process does that dies before its response is kept.
async fn leave_unsettled(store: &str, name: &str) {
    let store = loop {
        if let Ok(store) = tidegate_server::backend::open(store).await {
            break store;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let fingerprint = store.get_record(name).await.unwrap().unwrap().fingerprint;
    store.forget_record(name, ForgetTarget::Answer).await.unwrap();
    let (token, on_lapse) = (HolderToken([2; 16]), OnLapse::TakeOver);
    let (lease, ttl) = (Duration::from_secs(60), Duration::from_secs(3_600));
    let claim = RecordClaim { fingerprint, token, lease, ttl, on_lapse };
    store.claim_record(name, claim).await.unwrap();
    store.renew_record(name, token, Duration::ZERO).await.unwrap();
}

/// IDM-12, IDM-4: an invalid key is refused, to the letter, and nothing is accepted.
#[tokio::test]
async fn idm_12_a_key_of_a_wrong_form_is_refused() {
    within(async {
        let world = World::new().await;
        let refused = send(&world, "/v1/operations", "a key", &operation("g")).await;
        assert_eq!(refused.status(), 400);
        assert_eq!(refused.headers()["x-tidegate-error"], "INVALID_IDEMPOTENCY_KEY");
        assert_eq!(
            refused.text().await.unwrap(),
            "{\"detail\":\"Invalid idempotency key format. Key must be 1-255 characters long and contain only \
             letters, numbers, hyphens, and underscores\",\"error_code\":\"INVALID_IDEMPOTENCY_KEY\",\
             \"idempotency_key\":\"a key\"}"
        );
        assert_eq!(world.count().await, 0);
    })
    .await;
}

/// IDM-3: a refused request may be corrected with the same key, and a body that is too large gets
/// the same error as without a key.
#[tokio::test]
async fn idm_3_a_refusal_frees_the_key() {
    within(async {
        let world = World::new().await;
        let wrong = read(send(&world, "/v1/operations", "k", &with("upstream", "nobody")).await).await;
        wrong.refused(422, "TG0003", Some("upstream"));
        assert_eq!(send(&world, "/v1/operations", "k", &operation("g")).await.status(), 202);
        let large = with("note", "x".repeat(100_000));
        let large = read(send(&world, "/v1/groups/g/pause", "k", &large).await).await;
        large.refused(413, "TG0005", Some("body"));
    })
    .await;
}

/// IDM-2, IDM-12: two tokens with one key do not see each other's responses, and a token is checked
/// before its key.
#[tokio::test]
async fn idm_2_two_callers_do_not_share_a_key() {
    within(async {
        let world = World::with(CALLERS, HttpSimOptions::default()).await;
        let as_whom = |token: &str| {
            let request = world.request(Method::POST, "/v1/operations").header("idempotency-key", "same");
            request.bearer_auth(token).body(operation("g").to_string())
        };
        let (first, second) = ("a-token-from-the-environment", "the-token-of-the-second-caller");
        let mine = answer(as_whom(first)).await;
        let theirs = as_whom(second).send().await.unwrap();
        assert!(theirs.status() == 202 && !is_replayed(&theirs), "{theirs:?}");
        let theirs = read(theirs).await;
        assert_ne!(mine.text("id"), theirs.text("id"));
        assert_eq!(answer(as_whom(first)).await.text("id"), mine.text("id"));
        assert_eq!(answer(as_whom(second)).await.text("id"), theirs.text("id"));
        answer(as_whom("nobody-nobody-nobody")).await.refused(401, "TG0015", None);
    })
    .await;
}

/// IDM-9: events of keys are counted at `/metrics`, each metric with its description.
#[tokio::test]
async fn idm_9_keys_are_counted() {
    within(async {
        let world = World::new().await;
        for body in [operation("g"), operation("g"), operation("h")] {
            send(&world, "/v1/operations", "counted", &body).await;
        }
        let text = world.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
        for name in ["idempotency_hit", "idempotency_miss", "idempotency_conflict"] {
            assert!(text.contains(&format!("# HELP {name} ")), "{name} in {text}");
            let figure = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
            assert!(figure.is_some_and(|figure| figure.parse::<u64>().unwrap() >= 1), "{name} in {text}");
        }
        let page = world.request(Method::GET, "/keys").send().await.unwrap().text().await.unwrap();
        assert!(page.contains("1 of 2 requests with a key") && page.contains("50 %"), "{page}");
        // Counters that are still zero are there too.
        for name in ["idempotency_store_error", "idempotency_damaged", "idempotency_cleanup_count"] {
            assert!(text.contains(&format!("\n{name} ")), "{name} in {text}");
        }
    })
    .await;
}

/// IDM-12: responses are replayed after a restart, and sealed if a sealing key is configured.
#[tokio::test]
async fn idm_12_answers_outlive_a_stop_and_may_be_sealed() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let store = format!("file:{}", dir.path().join("data").display());
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let mut ids = Vec::new();
        for _ in 0..2 {
            let mut config = config_on(&store, &sim, "");
            let key = tidegate_upstream::Secret::new("ab".repeat(32));
            config.idempotency.sealing = Some(SealKeys { variable: "SEAL_KEYS".into(), keys: key });
            // The folder is free again when the last task of the first server has ended.
            let server = loop {
                match Server::start(config.clone()).await {
                    Ok(server) => break server,
                    Err(error) => assert_eq!(error.code.to_string(), "TG0022", "{error}"),
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            };
            let client = reqwest::Client::new();
            let url = format!("http://{}/v1/operations", server.addr);
            let request = client.post(url).header("idempotency-key", "k").body(operation("g").to_string());
            ids.push(answer(request).await.text("id"));
            server.shutdown().await;
        }
        assert_eq!(ids[0], ids[1]);
    })
    .await;
}

/// Two nodes on one store: of many requests with one key at both of them one runs, wherever its
/// partition is, and both return its response from then on.
async fn two_nodes_handle_one(store: &str) {
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let mut nodes = Vec::new();
    for _ in 0..2 {
        nodes.push(Server::start(config_on(store, &sim, "")).await.unwrap());
    }
    let client = reqwest::Client::new();
    let send = |node: usize| {
        let url = format!("http://{}/v1/operations", nodes[node % 2].addr);
        let request = client.post(url).header("idempotency-key", "one");
        request.body(operation("g").to_string()).send()
    };
    let mut ids = BTreeSet::new();
    let mut handled = 0;
    for response in futures_util::future::join_all((0..12).map(send)).await {
        let response = response.unwrap();
        let is_new = !is_replayed(&response);
        let answer = read(response).await;
        match answer.status {
            202 => {
                handled += usize::from(is_new);
                ids.insert(answer.text("id"));
            }
            _ => assert_eq!(answer.json["error_code"], "IDEMPOTENCY_KEY_PROCESSING", "{answer:?}"),
        }
    }
    assert_eq!((handled, ids.len()), (1, 1));
    for (place, node) in nodes.iter().enumerate() {
        let again = send(place).await.unwrap();
        assert!(is_replayed(&again), "{again:?}");
        assert!(ids.contains(&read(again).await.text("id")));
        let url = format!("http://{}/v1/keys", node.addr);
        assert_eq!(answer(client.get(url)).await.json["keys"].as_array().unwrap().len(), 1, "claimed once");
        let url = format!("http://{}/v1/operations", node.addr);
        assert_eq!(answer(client.get(url)).await.json["operations"].as_array().unwrap().len(), 1);
    }
}

/// IDM-8, IDM-12: on Redis.
#[tokio::test(flavor = "multi_thread")]
async fn idm_8_two_nodes_on_a_redis_handle_one() {
    let store = tidegate_fixture::redis::RedisServer::start();
    within(two_nodes_handle_one(&store.url())).await;
}

/// IDM-8, IDM-12: on PostgreSQL.
#[tokio::test(flavor = "multi_thread")]
async fn idm_8_two_nodes_on_a_postgresql_handle_one() {
    let store = tidegate_fixture::postgres::PostgresServer::start();
    within(two_nodes_handle_one(&store.url())).await;
}

/// IDM-5, IDM-16, IDM-1: the server's own routes use the settings of the file, each route its own.
#[tokio::test]
async fn idm_5_a_route_of_the_server_goes_by_its_settings() {
    within(async {
        let settings = "[idempotency]\nkey_alphabet = \"printable\"\nfingerprint = \"json\"\n\
                        [[idempotency.route]]\npath = \"/v1/operations/batch\"\ndialect = \"ietf\"\n\
                        answer_max = \"1B\"\n";
        let world = World::with(settings, HttpSimOptions::default()).await;
        let one = operation("g");
        assert_eq!(send(&world, "/v1/operations", "order:1", &one).await.status(), 202);
        let again = world.request(Method::POST, "/v1/operations").header("idempotency-key", "order:1");
        let again = again.body(serde_json::to_string_pretty(&one).unwrap()).send().await.unwrap();
        assert!(again.status() == 202 && is_replayed(&again), "{again:?}");
        let other = send(&world, "/v1/operations", "order:1", &operation("h")).await;
        assert_eq!(other.status(), 409);
        assert_eq!(other.headers()["idempotency-hint"], "the first request with this key had another body");
        let batch = |group: &str| serde_json::json!({ "operations": [operation(group)] });
        assert_eq!(send(&world, "/v1/operations/batch", "b:1", &batch("g")).await.status(), 202);
        let unkept = send(&world, "/v1/operations/batch", "b:1", &batch("g")).await;
        assert_eq!(unkept.status(), 409, "too large to be kept by this route");
        let other = send(&world, "/v1/operations/batch", "b:1", &batch("h")).await;
        assert_eq!(other.status(), 422);
        assert_eq!(other.headers()["content-type"], "application/problem+json");
        assert_eq!(world.count().await, 2);
    })
    .await;
}
