//! Remote workers over HTTP: take with a long poll, extend, settle; alone and with two nodes.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_fixture::redis::RedisServer;
use tidegate_server::Server;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::{Instant, sleep};

use crate::support::{Answer, World, config_on, within};

const KINDS: &str = "[[kind]]\nname = \"resize\"\nworker = \"remote\"\n[[kind]]\nname = \"limited\"\nworker = \"remote\"\nrepeatable = false\n[[kind.limit]]\nname = \"slots\"\nat_once = 1\n";

async fn world() -> World {
    World::with(KINDS, HttpSimOptions::default()).await
}

fn job(kind: &str, group: &str, payload: impl Into<Value>) -> Value {
    let payload: Value = payload.into();
    json!({ "kind": kind, "group": group, "payload": payload })
}

async fn take(world: &World, kinds: &[&str], wait_ms: u64) -> Vec<Value> {
    let body = json!({ "kinds": kinds, "max": 9, "wait_ms": wait_ms, "lease_ms": 1_000 });
    let answer = world.post("/v1/work/take", body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json["claims"].as_array().unwrap().clone()
}

async fn settle(world: &World, claim: &Value, more: Value) -> Value {
    let mut settlement = json!({ "id": claim["id"], "fence": claim["fence"] });
    settlement.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = world.post("/v1/work/settle", json!({ "settlements": [settlement] })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json["settlements"][0].clone()
}

/// A payload of any JSON reaches a worker as it was submitted, and its result is the operation's.
/// The first report counts; later ones say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_takes_and_settles() {
    within(async {
        let world = world().await;
        let id = world.submit(job("resize", "g", json!(["a", 1.5]))).await;
        let claim = take(&world, &["resize", "limited"], 0).await.pop().unwrap();
        assert_eq!(
            (&claim["id"], &claim["kind"], &claim["payload"]),
            (&json!(id), &json!("resize"), &json!(["a", 1.5]))
        );
        assert_eq!((&claim["attempt"], &claim["group"]), (&json!(1), &json!("g")));
        assert!(claim["lease_ms"].as_u64().unwrap() <= 1_000 && claim["lease_until"].is_string());
        let done = settle(&world, &claim, json!({ "outcome": "succeeded", "result": { "w": 640 } })).await;
        assert_eq!((&done["applied"], &done["state"]), (&json!(true), &json!("succeeded")));
        let again = settle(&world, &claim, json!({ "outcome": "failed" })).await;
        assert_eq!((&again["applied"], &again["state"]), (&json!(false), &json!("succeeded")));
        let ended = world.wait_until_ended(&id).await;
        assert_eq!((&ended["result"]["body"], &ended["kind"]), (&json!({ "w": 640 }), &json!("resize")));
        let failed = world.submit(job("resize", "g", Value::Null)).await;
        let claim = take(&world, &["resize"], 5_000).await.pop().unwrap();
        let fault = json!({ "class": "conflict", "message": "no such image", "may_have_happened": true });
        settle(&world, &claim, json!({ "outcome": "failed", "fault": fault })).await;
        assert_eq!(world.wait_until_ended(&failed).await["fault"], fault);
    })
    .await;
}

/// A take waits until there is something to do, and one operation wakes one caller; a worker that
/// hangs up takes nothing along.
#[tokio::test(flavor = "multi_thread")]
async fn a_take_waits_for_work() {
    within(async {
        let world = world().await;
        let asked = Instant::now();
        assert!(take(&world, &["resize"], 300).await.is_empty());
        assert!(asked.elapsed() >= Duration::from_millis(300));
        {
            let gone = take(&world, &["resize"], 20_000);
            assert!(tokio::time::timeout(Duration::from_millis(50), gone).await.is_err(), "it hangs up");
        }
        let asked = Instant::now();
        let (first, second, id) =
            tokio::join!(take(&world, &["resize"], 700), take(&world, &["resize"], 700), async {
                sleep(Duration::from_millis(100)).await;
                world.submit(job("resize", "g", json!(1))).await
            });
        let claims: Vec<Value> = first.into_iter().chain(second).collect();
        assert_eq!(claims.len(), 1, "{claims:?}");
        assert_eq!(claims[0]["id"], id);
        assert!(asked.elapsed() < Duration::from_secs(10));
    })
    .await;
}

/// OPS-8: a lease that runs out gives the claim back: to another worker, or to an operator where
/// the kind must not run twice. A claim that is extended stays.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_a_lease_that_runs_out_gives_the_claim_back() {
    within(async {
        let world = world().await;
        let (again, once) = (
            world.submit(job("resize", "a", json!(1))).await,
            world.submit(job("limited", "b", json!(2))).await,
        );
        let kept = world.submit(job("resize", "c", json!(3))).await;
        let claims = take(&world, &["resize", "limited"], 0).await;
        assert_eq!(claims.len(), 3);
        let of = |id: &str| claims.iter().find(|claim| claim["id"] == id).unwrap().clone();
        let extend = json!({ "claims": [{ "id": kept, "fence": of(&kept)["fence"], "lease_ms": 60_000 }, { "id": "op" }] });
        let extended = world.post("/v1/work/extend", extend).await.json;
        assert_eq!((&extended["claims"][0]["held"], &extended["claims"][0]["cancel_requested"]), (&json!(true), &json!(false)));
        assert!(extended["claims"][1]["error"]["code"].is_string(), "{extended}");
        assert_eq!((&extended["claims"][1]["id"], extended["claims"][1].get("fence")), (&json!("op"), None));
        let claim = take(&world, &["resize"], 10_000).await.pop().unwrap();
        assert_eq!((&claim["id"], &claim["attempt"]), (&json!(again), &json!(2)));
        let late = settle(&world, &of(&again), json!({ "outcome": "succeeded" })).await;
        assert_eq!((&late["applied"], &late["state"]), (&json!(false), &json!("running")));
        assert_eq!(world.get(&format!("/v1/operations/{once}")).await.text("state"), "unknown");
        assert_eq!(world.get("/v1/limits/limited/slots").await.json["in_flight"], 0, "no slot is leaked");
        world.post(&format!("/v1/operations/{kept}/cancel"), "").await;
        let extend = json!({ "claims": [{ "id": kept, "fence": of(&kept)["fence"] }] });
        let extended = world.post("/v1/work/extend", extend).await.json;
        assert_eq!(extended["claims"][0]["cancel_requested"], true);
        let stopped = settle(&world, &of(&kept), json!({ "outcome": "canceled" })).await;
        assert_eq!((&stopped["applied"], &stopped["state"]), (&json!(true), &json!("canceled")));
        let late = settle(&world, &of(&kept), json!({ "outcome": "succeeded" })).await;
        assert_eq!((&late["applied"], &late["state"]), (&json!(false), &json!("canceled")));
    })
    .await;
}

/// What does not fit is refused by field, and `why` says that no worker asks.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_fit_is_refused() {
    within(async {
        let world = world().await;
        let refused = |answer: Answer, status, code, field| answer.refused(status, code, Some(field));
        refused(world.post("/v1/work/take", json!({ "kinds": ["http"] })).await, 422, "TG0004", "kinds");
        let mixed = json!({ "kind": "resize", "upstream": "echo", "group": "g", "request": {} });
        refused(world.post("/v1/operations", mixed).await, 400, "TG0002", "payload");
        let mixed = json!({ "kind": "http", "group": "g", "payload": 1 });
        refused(world.post("/v1/operations", mixed).await, 400, "TG0002", "payload");
        let empty = json!({ "kind": "resize", "group": "g" });
        refused(world.post("/v1/operations", empty).await, 400, "TG0001", "payload");
        let costly = json!({ "kind": "resize", "group": "g", "payload": 1, "cost": { "slots": 1 } });
        refused(world.post("/v1/operations", costly).await, 422, "TG0007", "cost.slots");
        let unknown = json!({ "settlements": [{ "id": "op_01k6zm2c7r0000000000000001", "fence": 1, "outcome": "succeeded" }] });
        let answer = world.post("/v1/work/settle", unknown).await;
        let refused = &answer.json["settlements"][0];
        assert_eq!(refused["error"]["code"], "TG0010", "{answer:?}");
        assert_eq!((&refused["id"], &refused["fence"]), (&json!("op_01k6zm2c7r0000000000000001"), &json!(1)));
        let id = world.submit(job("resize", "g", json!(1))).await;
        let why = world.get(&format!("/v1/operations/{id}/why")).await;
        assert_eq!((why.text("waiting_for"), why.text("name")), ("worker".into(), "resize".into()));
        assert!(why.text("because").contains("none has asked for kind resize"), "{why:?}");
    })
    .await;
}

/// A take that found nothing counts as asking, for `why`.
#[tokio::test(flavor = "multi_thread")]
async fn a_take_that_found_nothing_counts_as_asking() {
    within(async {
        let world = world().await;
        assert!(take(&world, &["resize"], 0).await.is_empty());
        let id = world.submit(job("resize", "g", json!(1))).await;
        let why = world.get(&format!("/v1/operations/{id}/why")).await;
        assert!(why.text("because").contains("none has asked for kind resize for "), "{why:?}");
    })
    .await;
}

/// Of two nodes any one hands out operations of all partitions, and takes reports on them.
#[tokio::test(flavor = "multi_thread")]
async fn any_node_serves_workers() {
    within(async {
        let redis = RedisServer::start();
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let one = Server::start(config_on(&redis.url(), &sim, KINDS)).await.unwrap();
        let two = Server::start(config_on(&redis.url(), &sim, KINDS)).await.unwrap();
        let two = World { server: two, sim, client: reqwest::Client::new() };
        let shared = async {
            loop {
                let view = two.get("/v1/cluster").await.json;
                let shares = view["nodes"].as_array().unwrap().iter();
                if shares.filter(|node| !node["partitions"].as_array().unwrap().is_empty()).count() == 2 {
                    return;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        shared.await;
        let mut ids = Vec::new();
        for n in 0..12 {
            ids.push(two.submit(job("resize", &format!("g{n}"), json!(n))).await);
        }
        ids.push(two.submit(job("limited", "g", json!(0))).await);
        let mut done = Vec::new();
        while done.len() < ids.len() {
            let claims = take(&two, &["resize", "limited"], 10_000).await;
            assert!(!claims.is_empty(), "{} of {}", done.len(), ids.len());
            let reports: Vec<Value> = claims
                .iter()
                .map(|claim| json!({ "id": claim["id"], "fence": claim["fence"], "outcome": "succeeded" }))
                .collect();
            let settled = two.post("/v1/work/settle", json!({ "settlements": reports })).await;
            for (claim, settled) in claims.iter().zip(settled.json["settlements"].as_array().unwrap()) {
                assert_eq!((&settled["id"], &settled["applied"]), (&claim["id"], &json!(true)));
                done.push(claim["id"].as_str().unwrap().to_owned());
            }
        }
        ids.sort();
        done.sort();
        assert_eq!(done, ids);
        // The other node's caller waits, and is woken from here.
        let waiting = reqwest::Client::new().post(format!("http://{}/v1/work/take", one.addr));
        let body = json!({ "kinds": ["resize"], "max": 100, "wait_ms": 20_000 }).to_string();
        let asked = tokio::spawn(waiting.body(body).send());
        sleep(Duration::from_millis(200)).await;
        let id = two.submit(job("resize", "late", json!(1))).await;
        let taken = asked.await.unwrap().unwrap().text().await.unwrap();
        let taken: Value = serde_json::from_str(&taken).unwrap();
        assert_eq!(taken["claims"][0]["id"], id);
        one.shutdown().await;
    })
    .await;
}
