//! The control interface: counts, duplicates, limits, and manual changes of guilds.

use serde_json::json;

use crate::rig::{GUILD, Rig, open};

/// OPS-19: objects can be renamed, edited and removed by hand, past all limits and permissions;
/// that is no write of the caller's.
#[tokio::test]
async fn ops_19_guilds_are_changed_by_hand() {
    let mut options = open();
    options.limits.set("renames", 1, 600_000).unwrap();
    let rig = Rig::start(options).await;
    let (role, channel) = (rig.role(json!({"name": "r"})).await, rig.channel(json!({"name": "c"})).await);
    rig.permit(0).await;
    for n in 0..3 {
        let told = rig
            .patch(&format!("/_sim/hand/channels/{channel}"), json!({"name": format!("By Hand {n}")}))
            .await;
        assert_eq!((told.status, told.body()["name"].clone()), (200, json!(format!("by-hand-{n}"))));
    }
    assert_eq!(rig.delete(&format!("/_sim/hand/guilds/{GUILD}/roles/{role}")).await.status, 204);
    let made = rig.post(&format!("/_sim/hand/guilds/{GUILD}/roles"), json!({"name": "theirs"})).await;
    assert_eq!(made.status, 200);
    assert_eq!(rig.delete("/_sim/hand/channels/5").await.refusal(), (404, 10_003));
    let dump = rig.get(&format!("/_sim/guilds/{GUILD}")).await.body();
    assert_eq!(dump["channels"][0]["name"], "by-hand-2");
    assert_eq!((dump["roles"].as_array().map(Vec::len), dump["id"].clone()), (Some(3), json!("4242")));
    assert_eq!(rig.sim.stats().all.writes, 2);
    let log = rig.get("/_sim/log?after=1").await.body();
    let (by_bot, by_hand) = (&log["writes"][0], &log["writes"][1]);
    assert_eq!(
        (&by_bot["id"], &by_bot["reason"], &by_bot["by_hand"]),
        (&json!(channel), &json!("set up"), &json!(false))
    );
    assert_eq!((&by_hand["route"], &by_hand["by_hand"]), (&json!("PATCH /channels/{channel}"), &json!(true)));
}

/// OPS-15: duplicate objects are reported with their ids.
#[tokio::test]
async fn ops_15_duplicates_are_told() {
    let rig = Rig::start(open()).await;
    let mut ids = Vec::new();
    for name in ["〚SSO〛 Desk 〔desk〕", "〚SSO〛 Front desk 〔desk〕", "〚SSO〛 Other 〔other〕"]
    {
        ids.push(rig.role(json!({ "name": name })).await);
    }
    for kind in [0, 0, 2] {
        rig.channel(json!({"name": "talk-desk", "type": kind})).await;
    }
    let channel = rig.channel(json!({"name": "alone"})).await;
    for _ in 0..2 {
        rig.post(&format!("/channels/{channel}/messages"), json!({"content": "rules"})).await;
    }
    let stats = rig.get("/_sim/stats").await.body();
    assert_eq!(stats, serde_json::to_value(rig.sim.stats()).unwrap());
    assert_eq!(stats["duplicates"], 3);
    assert_eq!(stats["duplicates_by_key"]["guild 4242 role 〚SSO〛〔desk〕"], json!(ids[..2]));
    assert!(!stats.to_string().contains("rules"), "the text of a message is not reported");
    assert_eq!(stats["objects"], json!({"roles": 5, "channels": 4, "messages": 2, "overwrites": 0}));
    assert_eq!(stats["guilds"]["4242"], json!({"roles": 5, "channels": 4, "messages": 2, "overwrites": 0}));
    assert_eq!((&stats["calls"], &stats["writes"]), (&json!(9), &json!(9)));
}

/// Limits are reported and changed while calls run; invalid figures are refused.
#[tokio::test]
async fn limits_are_changed_while_calls_run() {
    let rig = Rig::start(open()).await;
    let figures = json!({"role-create": {"calls": 1, "window_ms": 60_000}});
    let told = rig.post("/_sim/limits", json!({"figures": figures, "channels_max": 1})).await.body();
    assert_eq!((&told["figures"]["role-create"]["calls"], &told["channels_max"]), (&json!(1), &json!(1)));
    assert_eq!(rig.get("/_sim/limits").await.body(), told);
    rig.role(json!({})).await;
    assert_eq!(rig.post(&format!("/guilds/{GUILD}/roles"), json!({})).await.status, 429);
    rig.post("/_sim/reset", json!({})).await;
    rig.role(json!({})).await;
    rig.channel(json!({"name": "a"})).await;
    assert_eq!(
        rig.post(&format!("/guilds/{GUILD}/channels"), json!({"name": "b"})).await.refusal(),
        (400, 30_013)
    );
    let own = format!("/_sim/guilds/{GUILD}");
    for (path, body) in [
        ("/_sim/limits", json!({"figures": {"x": {"calls": 1, "window_ms": 1}}})),
        ("/_sim/limits", json!({"x": 1})),
        ("/_sim/stop", json!({"write": 0, "when": "after"})),
        ("/_sim/stop", json!({"write": 1, "when": "later"})),
        (own.as_str(), json!({"bot_permissions": "x"})),
    ] {
        assert_eq!(rig.post(path, body).await.status, 400, "{path}");
    }
    assert_eq!(rig.get("/_sim/guilds/77").await.status, 404);
    assert_eq!(rig.get("/_sim/what").await.status, 404);
}
