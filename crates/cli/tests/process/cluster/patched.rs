//! A store in which requests were changed while no node used it: what was not accepted is not sent.

use serde_json::{Value, json};

use super::nodes::Nodes;
use super::store::{Store, ask_redis};
use crate::ALONE;
use crate::arrivals::arrivals;

/// Changes the second request wherever a Redis has it, and counts the places.
const PATCH_REDIS: &str = "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do \
    if redis.call('TYPE', k).ok == 'hash' then for _, f in ipairs(redis.call('HKEYS', k)) do \
    local p, c = string.gsub(redis.call('HGET', k, f), 'marker%-1', 'marker-7') \
    if c > 0 then redis.call('HSET', k, f, p) n = n + c end end end end return n";

/// The same in SQL.
const PATCH_POSTGRES: &str = "WITH patched AS (UPDATE tidegate.operations
    SET payload = convert_to(replace(convert_from(payload, 'UTF8'), 'marker-1', 'marker-7'), 'UTF8')
    WHERE convert_from(payload, 'UTF8') LIKE '%marker-1%' RETURNING 1) SELECT count(*) FROM patched";

fn operation(nth: usize) -> Value {
    let request =
        json!({ "method": "POST", "path": "/g", "body": { "id": nth, "note": format!("marker-{nth}") } });
    json!({ "upstream": "wide", "group": "g", "request": request })
}

async fn patched_store(store: Store) {
    let mut nodes = Nodes::start(1, store).await;
    let caller = nodes.doors.at(0);
    caller.post("/v1/groups/g/pause", &[], &json!({ "create": true })).await;
    let mut ids = Vec::new();
    for nth in 0..3 {
        ids.push(caller.submit(&operation(nth)).await.0);
    }
    nodes.stop(0).await;
    let patched = match &mut nodes.store {
        Store::Postgres(postgres) => tokio::task::block_in_place(|| postgres.session().query(PATCH_POSTGRES)),
        store => ask_redis(store.port(), &format!("EVAL \"{PATCH_REDIS}\" 0")).await,
    };
    assert_eq!(patched.trim(), "1", "one request was changed");
    nodes.start_again(0);
    nodes.wait_until_shared_by(&[0]).await;
    let caller = nodes.doors.at(0);
    caller.post("/v1/groups/g/resume", &[], &json!({})).await;
    let mut states = Vec::new();
    for id in &ids {
        states.push(caller.wait_until_ended(id).await);
    }
    assert_eq!(states, ["succeeded", "failed", "succeeded"]);
    let shown = caller.get(&format!("/v1/operations/{}", ids[1])).await;
    assert!(shown.contains("was not sent"), "{shown}");
    assert_eq!(arrivals(&nodes.wide).await["/g"], [0, 2], "what was patched was not sent");
    assert!(nodes.kill(0).contains("damaged"), "the log says so too");
}

/// OPS-8: a request that was patched in Redis or PostgreSQL is not sent; its operation fails and
/// says why, and the others are sent.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_a_request_that_was_patched_in_a_shared_store_is_not_sent() {
    let _alone = ALONE.lock().await;
    for store in [Store::redis(), Store::postgres()].map(|store| tokio::spawn(patched_store(store))) {
        store.await.unwrap();
    }
}
