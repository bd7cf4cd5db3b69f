//! The load of the demo: operations in waves for a few dozen groups, sent as any client would,
//! readers of customers that the slow API owns, and a simulated operator who now and then resolves
//! calls that were cut.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::rng::SeededRng;

use crate::client::{Client, RemoteArgs, encode_segment};
use crate::error::CliError;
use crate::output::text;

const TICK: Duration = Duration::from_millis(250);
/// Operations per tick, over one wave of ten seconds: first more than the limit allows, then less.
const WAVE: [u64; 40] = [
    5, 10, 15, 20, 30, 40, 50, 50, 50, 50, 50, 40, 40, 30, 30, 20, 20, 15, 15, 12, 12, 12, 12, 12, 12, 12,
    12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12,
];
const TICKS_PER_MINUTE: u64 = 240;
/// The operator looks every two seconds.
const TICKS_PER_LOOK: u64 = 8;
/// A new customer is wanted every two seconds, by so many readers at once.
const TICKS_PER_CUSTOMER: u64 = 8;
const READERS: u64 = 25;

/// Sends operations until it is dropped.
pub(crate) async fn run(server: SocketAddr) {
    let remote = RemoteArgs { server: format!("http://{server}"), token_env: String::new() };
    let Ok(client) = Client::new(&remote) else { return };
    let (mut chance, mut operator) = (SeededRng::new(1), Operator::default());
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for tick in 0_u64.. {
        ticks.tick().await;
        let wave = WAVE[usize::try_from(tick).unwrap_or_default() % WAVE.len()];
        let operations: Vec<_> = (0..wave).map(|index| operation(&mut chance, tick, index)).collect();
        if let Err(trouble) =
            client.post("/v1/operations/batch", &json!({ "operations": operations }), "operations").await
        {
            tracing::warn!(error = trouble.message, "the demo's load was not accepted");
        }
        if tick.is_multiple_of(TICKS_PER_CUSTOMER) {
            let customer = tick / TICKS_PER_CUSTOMER;
            for _ in 0..READERS {
                tokio::spawn(read_customer(client.clone(), customer));
            }
        }
        let acted = operator.act(&client, tick).await;
        if let Err(trouble) = acted {
            tracing::debug!(error = trouble.message, "the demo's operator could not act");
        }
    }
}

fn operation(chance: &mut SeededRng, tick: u64, index: u64) -> Value {
    let slow = chance.happens(0.04);
    let group = if slow {
        format!("report:{}", chance.next() % 8)
    } else {
        format!("shop:{:02}", chance.next() % 32)
    };
    let number = format!("{tick}-{index}");
    // Most calls carry a key that makes them safe to repeat; the rest show what happens without
    // one.
    let headers = if chance.happens(0.8) { json!({ "idempotency-key": number }) } else { json!({}) };
    json!({
        "kind": "http",
        "upstream": if slow { "slow" } else { "echo" },
        "group": group,
        "request": { "method": "POST", "path": "/orders", "headers": headers, "body": { "order": number } },
        "max_attempts": 4,
    })
}

/// Reads a customer, for which the slow API is asked once.
async fn read_customer(client: Client, number: u64) {
    let path = format!("/v1/entities/customer/c-{number}?wait_ms=5000");
    if let Err(trouble) = client.get(&path, "entity_id").await {
        tracing::debug!(error = trouble.message, "the demo's reader got no customer");
    }
}

/// The simulated operator.
#[derive(Default)]
struct Operator {
    /// The held operations, each with the tick at which it was first seen.
    held: BTreeMap<String, u64>,
}

impl Operator {
    /// Pauses a group for the first minute, and resolves what no one else has resolved in half a
    /// minute.
    async fn act(&mut self, client: &Client, tick: u64) -> Result<(), CliError> {
        if tick == 0 {
            let body = json!({ "by": "anna", "reason": "price fix", "create": true });
            client.post("/v1/groups/shop%3A01/pause", &body, "group").await?;
        }
        if tick == TICKS_PER_MINUTE {
            client.post("/v1/groups/shop%3A01/resume", &json!({}), "group").await?;
        }
        if tick.is_multiple_of(TICKS_PER_LOOK) {
            let held = client.get("/v1/groups?state=held&limit=200", "groups").await?;
            let held =
                held["groups"].as_array().into_iter().flatten().map(|group| text(&group["head"], "id"));
            let since = |id: &String| self.held.get(id).copied().unwrap_or(tick);
            self.held = held.map(|id| (since(&id), id)).map(|(since, id)| (id, since)).collect();
            for (id, _) in self.held.iter().filter(|(_, since)| tick - **since >= TICKS_PER_MINUTE / 2) {
                let body = json!({ "as": "succeeded", "reason": "The demo decides after half a minute." });
                client.post(&format!("/v1/operations/{}/resolve", encode_segment(id)), &body, "id").await?;
            }
        }
        Ok(())
    }
}
