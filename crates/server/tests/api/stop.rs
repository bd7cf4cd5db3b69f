//! Shutdown: streams and waits end, nothing more is accepted, accepted operations are kept.

use std::time::Duration;

use reqwest::Method;
use tidegate_server::Server;
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{World, config, operation, read, within};

/// OPS-8: operations accepted before a graceful shutdown are there after the next start, and are
/// executed once.
#[tokio::test]
async fn ops_8_an_orderly_stop_keeps_what_was_accepted() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let mut config = config(&sim, "");
        config.store_url = format!("file:{}", dir.path().display());
        let server = Server::start(config.clone()).await.unwrap();
        let mut world = World { server, sim, client: reqwest::Client::new() };
        world.post("/v1/groups/g/pause", r#"{"create":true}"#).await;
        let id = world.submit(operation("g")).await;
        let mut stream = world.request(Method::GET, "/v1/events").send().await.unwrap();
        let waiting =
            tokio::spawn(world.request(Method::GET, &format!("/v1/operations/{id}?wait_ms=50000")).send());
        let addr = world.server.addr;
        world.server.shutdown().await;
        while stream.chunk().await.is_ok_and(|piece| piece.is_some()) {}
        let _ = waiting.await.unwrap();
        assert!(tokio::net::TcpStream::connect(addr).await.is_err(), "it still listens");
        world.server = Server::start(config).await.unwrap();
        world.client = reqwest::Client::new();
        assert_eq!(world.get(&format!("/v1/operations/{id}")).await.json["state"], "waiting");
        world.post("/v1/groups/g/resume", "").await;
        assert_eq!(world.wait_until_ended(&id).await["state"], "succeeded");
        assert_eq!(world.sim.stats().writes, 1);
    })
    .await;
}

/// While it drains, the server still responds: not ready, accepting nothing, showing everything.
#[tokio::test]
async fn a_draining_server_still_answers() {
    within(async {
        let slow = HttpSimOptions { latency: Duration::from_secs(6), ..HttpSimOptions::default() };
        let world = World::with("", slow).await;
        let id = world.submit(operation("g")).await;
        while world.sim.stats().calls == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let World { server, sim, client } = world;
        let base = format!("http://{}", server.addr);
        let stopping = tokio::spawn(server.shutdown());
        let ready = loop {
            let ready = client.get(format!("{base}/readyz")).send().await.unwrap().status();
            if ready != 200 {
                break ready;
            }
        };
        assert_eq!(ready, 503);
        let body = operation("g").to_string();
        let submit = client.post(format!("{base}/v1/operations")).header("content-type", "application/json");
        read(submit.body(body).send().await.unwrap()).await.refused(503, "TG0018", None);
        let seen = read(client.get(format!("{base}/v1/operations/{id}")).send().await.unwrap()).await;
        assert_eq!(seen.json["state"], "running", "{seen:?}");
        stopping.await.unwrap();
        assert_eq!(sim.stats().writes, 1);
    })
    .await;
}

/// A second server on one directory is refused with its own code.
#[tokio::test]
async fn a_directory_has_one_server() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let mut config = config(&sim, "");
        config.store_url = format!("file:{}", dir.path().display());
        let first = Server::start(config.clone()).await.unwrap();
        let error = Server::start(config).await.err().unwrap();
        assert_eq!(error.code.to_string(), "TG0022", "{error}");
        first.shutdown().await;
    })
    .await;
}

/// A server that is shutting down accepts nothing and says when to retry.
#[tokio::test]
async fn what_stops_accepts_nothing_and_says_when_to_come_back() {
    within(async {
        let world = World::new().await;
        world.server.drain().await;
        let request = world.request(Method::POST, "/v1/operations").body(operation("g").to_string());
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["retry-after"], "1");
        read(response).await.refused(503, "TG0018", None);
        assert_eq!(world.get("/readyz").await.status, 503);
        assert_eq!(world.get("/healthz").await.status, 200);
        let batch = serde_json::json!({ "operations": [operation("g")] });
        let request = world.request(Method::POST, "/v1/operations/batch").body(batch.to_string());
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["retry-after"], "1");
        read(response).await.refused(503, "TG0018", None);
        assert_eq!(world.sim.stats().calls, 0);
    })
    .await;
}
