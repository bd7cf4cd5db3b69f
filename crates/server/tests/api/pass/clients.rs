//! LIM-28: many concurrent clients, of which none ever sees a 429.

use reqwest::Method;
use serde_json::{Value, json};
use tidegate_sim::HttpSimOptions;

use super::ProxySetup;
use super::upstream::ScriptedReply;
use crate::support::{World, answer, within};

const CLIENTS: u64 = 32;
const LIMIT: &str = "[[upstream.limit]]\nname = \"requests\"\ncapacity = 5\nrefill_per_s = 40\n";

/// What a busy machine may hold back, and then send at once: the calls of half a second.
const HELD_BACK: u64 = 20;

fn strict() -> HttpSimOptions {
    HttpSimOptions { capacity: 5 + HELD_BACK, refill_per_s: Some(40.0), ..HttpSimOptions::default() }
}

/// LIM-28, LIM-6: 32 concurrent clients, each with two calls, in their own groups and in one,
/// together with queued operations: every response is the right one, and the limit is never
/// exceeded.
#[tokio::test]
async fn lim_28_lim_6_no_429_reaches_any_of_many_clients() {
    within(async {
        let world = World::with(LIMIT, strict()).await;
        let client = |n: u64| {
            let world = &world;
            async move {
                for call in 0..2 {
                    let id = format!("{n}-{call}");
                    let mut request =
                        world.request(Method::POST, &format!("/proxy/echo/clients/{n}?call={call}"));
                    if n.is_multiple_of(2) {
                        request = request.header("x-tidegate-group", format!("client-{n}"));
                    }
                    let request = request.header("content-type", "application/json");
                    let response = request.body(json!({ "id": id }).to_string()).send().await.unwrap();
                    assert_eq!(response.status(), 200, "{response:?}");
                    assert!(response.headers().contains_key("x-ratelimit-remaining"), "all of its headers");
                    let echo: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
                    assert_eq!((&echo["id"], &echo["path"]), (&json!(id), &json!(format!("/clients/{n}"))));
                }
            }
        };
        let queued = async {
            for n in 0..16 {
                let operation = json!({
                    "upstream": "echo", "group": format!("queue-{n}"),
                    "request": { "method": "POST", "path": "/queue", "body": { "id": n } },
                });
                world.submit(operation).await;
            }
        };
        tokio::join!(futures_util::future::join_all((0..CLIENTS).map(client)), queued);
        while world.get("/v1/operations?state=succeeded&limit=200").await.json["operations"]
            .as_array()
            .unwrap()
            .len()
            < 80
        {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let stats = world.sim.stats();
        assert_eq!((stats.calls, stats.writes), (80, 80));
        assert_eq!((stats.throttled, stats.overstepped, stats.duplicates), (0, 0, 0), "{stats:?}");
    })
    .await;
}

/// LIM-28, LIM-26: calls without a group share limits but no order: all of them are in flight at
/// once, while those of one group run one by one.
#[tokio::test]
async fn lim_28_lim_26_calls_without_a_group_run_side_by_side() {
    within(async {
        let good = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        let door = ProxySetup::new("", vec![ScriptedReply::Hold(good.to_vec()); 33]).await;
        let ask = |group: Option<&str>| {
            let mut request = door.request(Method::GET, "/proxy/up/x");
            if let Some(group) = group {
                request = request.header("x-tidegate-group", group);
            }
            tokio::spawn(request.send())
        };
        let mut calls: Vec<_> = (0..CLIENTS).map(|_| ask(None)).collect();
        door.upstream.wait_for_requests(32).await;
        calls.extend([ask(Some("g")), ask(Some("g"))]);
        door.upstream.wait_for_requests(33).await;
        while door.get("/v1/groups/g").await.json["depth"] != 2 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(door.upstream.requests().len(), 33, "the second of the group waits for the first");
        door.upstream.go.add_permits(33);
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().status(), 200);
        }
        assert_eq!(door.upstream.requests().len(), 34);
    })
    .await;
}

/// LIM-28, LIM-12: even if the limit is unknown, a 429 never reaches the client.
#[tokio::test]
async fn lim_28_a_limit_that_nobody_told_us_of_is_kept_from_clients() {
    within(async {
        let world =
            World::with("", HttpSimOptions { capacity: 2, refill_per_s: Some(50.0), ..strict() }).await;
        let client = |n: u64| {
            let request = world.request(Method::GET, &format!("/proxy/echo/{n}"));
            answer(request.header("x-tidegate-group", format!("client-{n}")))
        };
        let answers = futures_util::future::join_all((0..4).map(client)).await;
        assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
        assert!(world.sim.stats().throttled > 0, "there was something to be kept from them");
    })
    .await;
}
