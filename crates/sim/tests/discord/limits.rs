//! Limits: announced and hidden ones, the global one, shared ones, and the ban. The simulator's
//! clock is advanced, not waited for.

use serde_json::json;
use tidegate_sim::DiscordSimOptions;

use crate::rig::{GUILD, Rig, client_from, open};

fn with(limits: &[(&str, u64, u64)]) -> DiscordSimOptions {
    let mut options = open();
    for (name, calls, window_ms) in limits {
        options.limits.set(name, *calls, *window_ms).unwrap();
    }
    options
}

/// LIM-8: each route reports its limit in headers and enforces it, per guild; the hash is the same
/// in every guild.
#[tokio::test]
async fn lim_8_routes_have_buckets_by_guild() {
    let rig = Rig::start(with(&[("role-create", 3, 3_600_000)])).await;
    let mut hashes = Vec::new();
    for guild in [1, 2] {
        for left in ["2", "1", "0"] {
            let told = rig.post(&format!("/guilds/{guild}/roles"), json!({})).await;
            assert_eq!((told.status, told.header("x-ratelimit-remaining")), (200, Some(left)));
            assert_eq!(told.header("x-ratelimit-limit"), Some("3"));
            let after: f64 = told.header("x-ratelimit-reset-after").unwrap().parse().unwrap();
            let reset: f64 = told.header("x-ratelimit-reset").unwrap().parse().unwrap();
            assert!(after > 3_500.0 && after <= 3_600.0, "{after}");
            assert!(reset > 1_700_000_000.0, "{reset}");
            assert_eq!((told.header("x-ratelimit-scope"), told.header("retry-after")), (None, None));
            hashes.push(told.header("x-ratelimit-bucket").unwrap().to_owned());
        }
    }
    hashes.dedup();
    assert!(hashes.len() == 1 && hashes[0].len() == 32, "{hashes:?}");
    let told = rig.post("/guilds/1/roles", json!({})).await;
    assert_eq!((told.status, told.header("x-ratelimit-scope")), (429, Some("user")));
    let body = told.body();
    let (wait, header) = (body["retry_after"].as_f64().unwrap(), told.header("retry-after").unwrap());
    assert_eq!((wait.ceil() as u64).to_string(), header);
    assert_eq!((&body["global"], &body["message"]), (&json!(false), &json!("You are being rate limited.")));
    rig.forward((wait * 1_000.0) as u64 + 1).await;
    assert_eq!(rig.post("/guilds/1/roles", json!({})).await.status, 200, "the wait is enough");
    let stats = rig.sim.stats();
    assert_eq!(stats.throttled_by_route, [("POST /guilds/{guild}/roles".to_owned(), 1)].into());
    assert_eq!((stats.all.throttled, stats.invalid, stats.all.writes), (1, 1, 7));
}

/// LIM-8: some routes count together and show one hash; some show one hash and count separately.
#[tokio::test]
async fn lim_8_a_hash_is_a_hint() {
    let rig = Rig::start(with(&[("role-edit", 2, 3_600_000), ("roles-list", 1, 3_600_000)])).await;
    let role = rig.role(json!({})).await;
    let path = format!("/guilds/{GUILD}/roles/{role}");
    let first = rig.patch(&path, json!({})).await;
    let second = rig.delete(&path).await;
    assert_eq!(
        (first.header("x-ratelimit-remaining"), second.header("x-ratelimit-remaining")),
        (Some("1"), Some("0"))
    );
    assert_eq!(first.header("x-ratelimit-bucket"), second.header("x-ratelimit-bucket"));
    let roles = rig.get(&format!("/guilds/{GUILD}/roles")).await;
    let channels = rig.get(&format!("/guilds/{GUILD}/channels")).await;
    assert_eq!(roles.header("x-ratelimit-bucket"), channels.header("x-ratelimit-bucket"));
    assert_eq!((roles.status, channels.status), (200, 200));
    assert_eq!(rig.get(&format!("/guilds/{GUILD}/roles")).await.status, 429);
    assert_eq!(rig.get("/gateway").await.header("x-ratelimit-bucket"), None, "some routes have no limit");
}

/// LIM-12: the global limit is reported without a bucket, and each bot has its own.
#[tokio::test]
async fn lim_12_the_global_limit() {
    let rig = Rig::start(with(&[("global", 4, 3_600_000)])).await;
    for _ in 0..4 {
        assert_eq!(rig.get("/users/@me").await.status, 200);
    }
    let told = rig.get("/users/@me").await;
    assert_eq!((told.status, told.body()["global"].clone()), (429, json!(true)));
    assert_eq!(
        (told.header("x-ratelimit-global"), told.header("x-ratelimit-scope")),
        (Some("true"), Some("global"))
    );
    assert_eq!((told.header("x-ratelimit-bucket"), told.header("x-ratelimit-limit")), (None, None));
    let other = Rig { token: Some("u"), ..rig };
    assert_eq!(other.get("/users/@me").await.status, 200);
}

/// LIM-12: all calls can be refused for a while, and a shared limit can be spent by others; that
/// one is not the caller's fault.
#[tokio::test]
async fn lim_12_limits_from_outside() {
    let rig = Rig::start(open()).await;
    rig.post("/_sim/global", json!({"for_ms": 30_000})).await;
    let told = rig.get("/users/@me").await;
    assert_eq!((told.status, told.header("x-ratelimit-scope")), (429, Some("global")));
    let wait: u64 = told.header("retry-after").unwrap().parse().unwrap();
    assert!((25..=30).contains(&wait), "{wait}");
    rig.forward(30_000).await;
    assert_eq!(rig.get("/users/@me").await.status, 200);
    rig.post("/_sim/shared", json!({"limit": "role-create", "for_ms": 1_336_570})).await;
    let told = rig.post(&format!("/guilds/{GUILD}/roles"), json!({})).await;
    assert_eq!((told.status, told.header("x-ratelimit-scope")), (429, Some("shared")));
    assert_eq!(told.body()["message"], "The resource is being rate limited.");
    assert_eq!(told.header("x-ratelimit-remaining"), Some("999999"), "its own limit is not the one");
    assert!(told.body()["retry_after"].as_f64().unwrap() > 1_300.0);
    assert_eq!((rig.sim.stats().invalid, rig.sim.stats().all.throttled), (1, 2));
    assert_eq!(rig.post("/_sim/shared", json!({"limit": "x", "for_ms": 1})).await.status, 400);
}

/// LIM-8: names and topics of a channel, and roles of a guild, have limits that no header
/// announces.
#[tokio::test]
async fn lim_8_hidden_limits() {
    let rig = Rig::start(with(&[("renames", 2, 600_000), ("role-creates", 2, 172_800_000)])).await;
    let channel = format!("/channels/{}", rig.channel(json!({"name": "a"})).await);
    assert_eq!(rig.patch(&channel, json!({"name": "b"})).await.status, 200);
    assert_eq!(rig.patch(&channel, json!({"topic": "b"})).await.status, 200);
    let told = rig.patch(&channel, json!({"name": "c"})).await;
    assert_eq!((told.status, told.header("x-ratelimit-scope")), (429, Some("user")));
    assert_eq!(told.header("x-ratelimit-remaining"), Some("999997"), "the headers say otherwise");
    assert!(told.body()["retry_after"].as_f64().unwrap() > 500.0);
    assert_eq!(
        rig.patch(&channel, json!({"name": "b", "nsfw": true})).await.status,
        200,
        "the name is the same"
    );
    assert_eq!(rig.get(&channel).await.body()["name"], "b");
    rig.forward(600_000).await;
    assert_eq!(rig.patch(&channel, json!({"name": "c"})).await.status, 200);
    let roles = format!("/guilds/{GUILD}/roles");
    for status in [200, 200, 429] {
        assert_eq!(rig.post(&roles, json!({})).await.status, status);
    }
    assert_eq!(rig.post("/guilds/1/roles", json!({})).await.status, 200, "each guild has its own");
    rig.forward(172_800_000).await;
    assert_eq!(rig.post(&roles, json!({})).await.status, 200);
    assert_eq!(rig.sim.stats().throttled_by_scope, [("hidden".to_owned(), 2)].into());
}

/// LIM-25: an address with too many refused calls is banned for long, in HTML and with no header
/// that helps; shared refusals do not count, and other addresses are not affected.
#[tokio::test]
async fn lim_25_the_ban() {
    let rig = Rig::start(with(&[("invalid", 4, 600_000), ("me", 1, 60_000)])).await;
    rig.post("/_sim/shared", json!({"limit": "guild", "for_ms": 60_000})).await;
    for _ in 0..6 {
        assert_eq!(rig.get("/guilds/1").await.status, 429);
    }
    let nobody = Rig { token: None, ..rig };
    assert_eq!((nobody.get("/users/@me").await.status, nobody.get("/users/@me").await.status), (401, 401));
    let rig = Rig { token: Some("t"), ..nobody };
    for status in [200, 429, 429] {
        assert_eq!(rig.get("/users/@me").await.status, status);
    }
    let told = rig.get("/gateway").await;
    assert_eq!((told.status, told.header("content-type")), (429, Some("text/html; charset=UTF-8")));
    assert!(told.text.starts_with("<!DOCTYPE html>") && told.header("x-ratelimit-scope").is_none());
    let wait: u64 = told.header("retry-after").unwrap().parse().unwrap();
    assert!((86_000..=86_400).contains(&wait), "{wait}");
    let rig = Rig { client: client_from(2), ..rig };
    assert_eq!(rig.get("/gateway").await.status, 200);
    let rig = Rig { client: client_from(1), ..rig };
    rig.forward(86_400_000).await;
    assert_eq!(rig.get("/gateway").await.status, 200);
    let stats = rig.sim.stats();
    assert_eq!((stats.invalid, stats.bans, stats.banned), (4, 1, 1));
}

/// A caller without a user agent is refused.
#[tokio::test]
async fn a_caller_says_what_it_is() {
    let rig = Rig::start(open()).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let told = client.get(format!("http://{}/api/v10/gateway", rig.sim.addr())).send().await.unwrap();
    assert_eq!(told.status(), 403);
    assert_eq!(told.text().await.unwrap(), r#"{"code":40333,"message":"internal network error"}"#);
}
