//! The audit log: it is in the store, so a restart keeps it, and it is read page by page.

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tidegate_server::Server;
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{World, config_on, operation, within};

async fn world_on(store: &str) -> World {
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let server = Server::start(config_on(store, &sim, "")).await.unwrap();
    World { server, sim, client: Client::new() }
}

async fn page(world: &World, path: &str) -> String {
    world.request(Method::GET, path).send().await.unwrap().text().await.unwrap()
}

/// Reads the whole log in pages of this size; returns what was commanded, newest first.
async fn commands(world: &World, limit: usize) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let log = world.get(&format!("/v1/audit?limit={limit}&cursor={cursor}")).await.json;
        let entries = log["entries"].as_array().unwrap();
        assert!(entries.len() <= limit, "{log}");
        let told = |entry: &Value| format!("{} {}", entry["action"], entry["subject"]).replace('"', "");
        found.extend(entries.iter().map(told));
        match log["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return found,
        }
    }
}

/// OPS-8: who did what survives a restart, page by page, with the node and without secrets.
#[tokio::test]
async fn ops_8_the_audit_log_survives_a_restart() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let store = format!("file:{}", dir.path().display());
        let world = world_on(&store).await;
        let groups: Vec<String> = (0..51).map(|number| format!("shop:{number}")).collect();
        for group in &groups {
            let body = json!({ "create": true, "by": "ben", "reason": "template fix" });
            let target = format!("/v1/groups/{}/pause", group.replace(':', "%3A"));
            assert_eq!(world.post(&target, body).await.status, 200, "{group}");
        }
        let keyed = world.request(Method::POST, "/v1/operations").header("idempotency-key", "hunter2-key");
        assert_eq!(keyed.body(operation("g").to_string()).send().await.unwrap().status(), 202);
        assert_eq!(world.post("/v1/keys/hunter2-key/expire", "").await.status, 200);
        world.post("/v1/keys/unknown-key/expire", "").await.refused(404, "TG0024", Some("key"));
        let before = world.get("/v1/audit").await.json;
        world.server.shutdown().await;
        let world = world_on(&store).await;
        assert_eq!(world.get("/v1/audit").await.json, before, "a restart changes nothing");
        let first = &before["entries"][0];
        assert_eq!(json!([first["kind"], first["status"]]), json!(["keys", 404]));
        let paused = &before["entries"][2];
        let told = ["by", "action", "kind", "subject", "reason", "status"].map(|field| paused[field].clone());
        assert_eq!(json!(told), json!(["ben", "pause", "groups", "shop:50", "template fix", 200]));
        assert!(paused["node"].as_str().is_some_and(|node| !node.is_empty()), "{paused}");
        assert!(!before.to_string().contains("-key"), "a key is named by its hash: {before}");
        assert_eq!(world.post("/v1/groups/shop%3A7/resume", "").await.status, 200);
        let all = commands(&world, 200).await;
        assert_eq!((all.len(), &*all[0], &*all[53]), (54, "resume shop:7", "pause shop:0"));
        assert_eq!(commands(&world, 7).await, all);
        let html = page(&world, "/audit").await;
        assert!(html.contains("shop%3A50") && !html.contains("\"/groups/shop%3A0\""), "{html}");
        let older = html.split("href=\"").find(|part| part.starts_with("/audit?cursor=")).unwrap();
        let html = page(&world, older.split('"').next().unwrap()).await;
        assert!(html.contains("\"/groups/shop%3A0\"") && !html.contains("/audit?cursor="), "{html}");
        world.get("/v1/audit?cursor=made-up").await.refused(400, "TG0014", Some("cursor"));
        world.get("/v1/audit?state=x").await.refused(400, "TG0001", Some("state"));
    })
    .await;
}

/// Submits an operation that fails, and returns its id once it has.
async fn failed(world: &World, group: &str) -> String {
    let mut failing = operation(group);
    failing["max_attempts"] = 1.into();
    let id = world.submit(failing).await;
    assert_eq!(world.wait_until_ended(&id).await["state"], "failed");
    id
}

/// OPS-9: who decided about several operations at once, when and why, is found from any of them.
#[tokio::test]
async fn ops_9_a_decision_about_several_is_found_from_one() {
    within(async {
        let world = World::with("", HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() }).await;
        let ids = [failed(&world, "a").await, failed(&world, "b").await];
        let other = failed(&world, "c").await;
        let about = |id: &str| format!("/v1/audit?operation={id}");
        assert_eq!(world.get(&about(&ids[0])).await.json["entries"], json!([]));
        for group in ["a", "b"] {
            world.post(&format!("/v1/groups/{group}/pause"), json!({ "by": "bert" })).await;
        }
        world.post("/v1/groups/a/rerun", json!({ "reason": "the shop is back" })).await;
        world.post("/v1/operations/rerun", json!({ "group": "b", "reason": "as with a" })).await;
        let both =
            world.post("/v1/operations/cancel", json!({ "kind": "http", "reason": "wrong price" })).await;
        assert_eq!(both.json["changed"], 2, "{both:?}");
        for (id, first) in ids.iter().zip(["the shop is back", "as with a"]) {
            let log = world.get(&about(id)).await.json;
            let entries = log["entries"].as_array().unwrap();
            let reasons: Vec<_> = entries.iter().map(|entry| entry["reason"].as_str().unwrap()).collect();
            assert_eq!(reasons, ["wrong price", first], "{log}");
            let html = page(&world, &format!("/operations/{id}")).await;
            assert!(html.contains("Who decided about it") && html.contains("wrong price"), "{html}");
            let html = page(&world, &format!("/audit?operation={id}")).await;
            assert!(html.contains(first) && !html.contains("bert"), "{html}");
            assert!(html.contains(&format!("/operations/{}", ids[0])), "each has a link: {html}");
        }
        let html = page(&world, &format!("/operations/{other}")).await;
        assert!(!html.contains("Who decided about it"), "no one did: {html}");
        let one = world.get(&format!("{}&limit=1", about(&ids[0]))).await;
        let next = one.text("next_cursor");
        let rest = world.get(&format!("{}&limit=1&cursor={next}", about(&ids[0]))).await.json;
        assert_eq!(rest["entries"][0]["reason"], "the shop is back", "{rest}");
        world.get(&format!("/v1/audit?cursor={next}")).await.refused(400, "TG0014", Some("cursor"));
        world.get("/v1/audit?operation=x").await.refused(400, "TG0001", Some("operation"));
    })
    .await;
}
