//! Channels and overwrites: names, positions, categories, bounds, permissions.

use serde_json::{Value, json};

use crate::rig::{GUILD, Rig, open};

fn channels() -> String {
    format!("/guilds/{GUILD}/channels")
}

/// OPS-13: the names of text and announcement channels are normalized, others are trimmed; the
/// response has the result.
#[tokio::test]
async fn ops_13_names_are_made_as_discord_makes_them() {
    let rig = Rig::start(open()).await;
    for (kind, made) in [
        (0, "〚sso〛-front-desk-〔desk〕"),
        (5, "〚sso〛-front-desk-〔desk〕"),
        (2, "〚SSO〛 Front  Desk! 〔Desk〕"),
        (4, "〚SSO〛 Front  Desk! 〔Desk〕"),
        (13, "〚SSO〛 Front  Desk! 〔Desk〕"),
        (15, "〚SSO〛 Front  Desk! 〔Desk〕"),
    ] {
        let told =
            rig.post(&channels(), json!({"name": " 〚SSO〛 Front  Desk! 〔Desk〕 ", "type": kind})).await;
        assert_eq!((told.status, told.body()["name"].as_str()), (201, Some(made)), "{kind}");
        let again = rig.patch(&format!("/channels/{}", told.id()), json!({"name": made})).await;
        assert_eq!(again.body()["name"], made);
    }
    for (body, field, code) in [
        (json!({}), "name", "BASE_TYPE_REQUIRED"),
        (json!({"name": "?!"}), "name", "BASE_TYPE_BAD_LENGTH"),
        (json!({"name": "a", "type": 3}), "type", "BASE_TYPE_CHOICES"),
        (json!({"name": "a", "topic": "t".repeat(1_025)}), "topic", "BASE_TYPE_MAX_LENGTH"),
        (json!({"name": "a", "parent_id": "77"}), "parent_id", "CHANNEL_PARENT_INVALID"),
        (
            json!({"name": "a", "permission_overwrites": vec![json!({"id": "4242", "type": 0}); 101]}),
            "permission_overwrites",
            "BASE_TYPE_MAX_LENGTH",
        ),
    ] {
        let told = rig.post(&channels(), body).await;
        assert_eq!(told.refusal(), (400, 50_035));
        assert_eq!(told.body()["errors"][field]["_errors"][0]["code"], code);
    }
}

/// A channel is created with everything in one call, changed field by field, and shown when it is
/// removed.
#[tokio::test]
async fn a_channel_is_made_changed_and_removed() {
    let rig = Rig::start(open()).await;
    let role = rig.role(json!({"name": "r"})).await;
    let category = rig.channel(json!({"name": "Cat", "type": 4})).await;
    let overwrites = json!([{"id": role, "type": 0, "allow": "1024", "deny": "2048"}]);
    let body =
        json!({"name": "desk", "topic": "t", "parent_id": category, "permission_overwrites": overwrites});
    let made = rig.post(&channels(), body).await;
    assert_eq!(made.body()["permission_overwrites"], overwrites);
    let path = format!("/channels/{}", made.id());
    let changed =
        rig.patch(&path, json!({"topic": null, "parent_id": null, "type": 5, "nsfw": true})).await.body();
    assert_eq!(
        [&changed["topic"], &changed["parent_id"], &changed["type"], &changed["nsfw"], &changed["name"]],
        [&Value::Null, &Value::Null, &json!(5), &json!(true), &json!("desk")]
    );
    assert_eq!(changed["permission_overwrites"], overwrites);
    assert_eq!(rig.patch(&path, json!({"type": 2})).await.refusal(), (400, 50_024));
    assert_eq!(rig.get(&channels()).await.body().as_array().map(Vec::len), Some(2));
    let gone = rig.delete(&path).await;
    assert_eq!((gone.status, gone.id()), (200, made.id()));
    for told in [rig.get(&path).await, rig.patch(&path, json!({})).await, rig.delete(&path).await] {
        assert_eq!(told.refusal(), (404, 10_003));
    }
}

/// A channel without overwrites has its category's, and follows it until it has its own; without
/// the category it stays.
#[tokio::test]
async fn a_channel_follows_its_category() {
    let rig = Rig::start(open()).await;
    let category = rig
        .channel(json!({"name": "Cat", "type": 4, "permission_overwrites": [{"id": "4242", "type": 0}]}))
        .await;
    let follows = rig.channel(json!({"name": "a", "parent_id": category})).await;
    let own = rig.channel(json!({"name": "b", "parent_id": category, "permission_overwrites": []})).await;
    let put = json!({"type": 0, "allow": "0", "deny": "1024"});
    assert_eq!(rig.put(&format!("/channels/{category}/permissions/4242"), put).await.status, 204);
    let seen = &rig;
    let overwrites = |id: String| async move {
        seen.get(&format!("/channels/{id}")).await.body()["permission_overwrites"].clone()
    };
    assert_eq!(
        overwrites(follows.clone()).await,
        json!([{"id": "4242", "type": 0, "allow": "0", "deny": "1024"}])
    );
    assert_eq!(overwrites(own).await, json!([]));
    rig.delete(&format!("/channels/{category}")).await;
    assert_eq!(rig.get(&format!("/channels/{follows}")).await.body()["parent_id"], Value::Null);
}

/// Overwrites are created, replaced and removed one by one.
#[tokio::test]
async fn overwrites_are_put_and_removed() {
    let rig = Rig::start(open()).await;
    let channel = rig.channel(json!({"name": "a"})).await;
    let path = format!("/channels/{channel}/permissions");
    for allow in ["1024", "2048"] {
        assert_eq!(rig.put(&format!("{path}/4242"), json!({"type": 0, "allow": allow})).await.status, 204);
    }
    assert_eq!(rig.put(&format!("{path}/99"), json!({"type": 1, "deny": "1"})).await.status, 204);
    assert_eq!(rig.put(&format!("{path}/99"), json!({"type": 0})).await.refusal(), (404, 10_009));
    assert_eq!(rig.put(&format!("{path}/4242"), json!({})).await.refusal(), (400, 50_035));
    let shown = rig.get(&format!("/channels/{channel}")).await.body()["permission_overwrites"].clone();
    assert_eq!(
        shown,
        json!([{"id": "4242", "type": 0, "allow": "2048", "deny": "0"}, {"id": "99", "type": 1, "allow": "0", "deny": "1"}])
    );
    assert_eq!(rig.delete(&format!("{path}/99")).await.status, 204);
    assert_eq!(rig.delete(&format!("{path}/99")).await.refusal(), (404, 10_009));
    let strange =
        rig.post(&channels(), json!({"name": "b", "permission_overwrites": [{"id": "5", "type": 0}]})).await;
    assert_eq!(strange.refusal(), (400, 50_028));
}

/// A bot cannot grant in a channel what it does not hold, and cannot change what it cannot see.
#[tokio::test]
async fn overwrites_need_what_they_give() {
    let rig = Rig::start(open()).await;
    let hidden = rig
        .channel(json!({"name": "a", "permission_overwrites": [{"id": "4242", "type": 0, "deny": "1024"}]}))
        .await;
    let shown = rig.channel(json!({"name": "b"})).await;
    let (channels_and_roles, kick) = ((1_u64 << 28) | (1 << 4), 2);
    rig.permit(channels_and_roles).await;
    assert_eq!(
        rig.patch(&format!("/channels/{hidden}"), json!({"name": "x"})).await.refusal(),
        (403, 50_001)
    );
    for (allow, status) in [(1_u64 << 10, 204), (kick, 403), (1 << 28, 403)] {
        let body = json!({"type": 0, "allow": allow.to_string()});
        let told = rig.put(&format!("/channels/{shown}/permissions/4242"), body).await;
        assert_eq!(told.status, status, "{allow}");
    }
}

/// OPS-19: 50 channels in a category, 500 in a guild.
#[tokio::test]
async fn ops_19_bounds_of_channels() {
    let rig = Rig::start(open()).await;
    let mut made = 0;
    let mut last = String::new();
    for category in 0..10 {
        if made == 500 {
            break;
        }
        last = rig.channel(json!({"name": format!("Cat {category}"), "type": 4})).await;
        made += 1;
        for n in 0..if category < 9 { 50 } else { 40 } {
            rig.channel(json!({"name": format!("c{n}"), "type": 2, "parent_id": last})).await;
            made += 1;
        }
        if category == 0 {
            let full = rig.post(&channels(), json!({"name": "x", "parent_id": last})).await;
            let told = full.body()["errors"]["parent_id"]["_errors"][0].clone();
            let message = "Maximum number of channels in category reached (50)";
            assert_eq!(told, json!({"code": "CHANNEL_PARENT_MAX_CHANNELS", "message": message}));
        }
    }
    assert_eq!(made, 500);
    let full = rig.post(&channels(), json!({"name": "x", "parent_id": last})).await;
    assert_eq!(full.refusal(), (400, 30_013));
}

/// Positions are set in one call, in which at most one channel moves to another category.
#[tokio::test]
async fn channels_are_put_in_order() {
    let rig = Rig::start(open()).await;
    let category = rig
        .channel(json!({"name": "Cat", "type": 4, "permission_overwrites": [{"id": "4242", "type": 0}]}))
        .await;
    let (a, b) = (rig.channel(json!({"name": "a"})).await, rig.channel(json!({"name": "b"})).await);
    let seen = &rig;
    let at = |id: String| async move { seen.get(&format!("/channels/{id}")).await.body() };
    assert_eq!(
        (at(a.clone()).await["position"].clone(), at(b.clone()).await["position"].clone()),
        (json!(0), json!(1))
    );
    let both = json!([{"id": a, "parent_id": category}, {"id": b, "parent_id": category}]);
    assert_eq!(rig.patch(&channels(), both).await.refusal(), (400, 40_009));
    let one = json!([{"id": a, "position": 1, "parent_id": category, "lock_permissions": true}, {"id": b, "position": 0}]);
    let told = rig.patch(&channels(), one).await;
    assert_eq!((told.status, told.text.as_str()), (204, ""));
    let a = at(a).await;
    assert_eq!([&a["position"], &a["parent_id"]], [&json!(1), &json!(category)]);
    assert_eq!(a["permission_overwrites"].as_array().map(Vec::len), Some(1));
    assert_eq!(at(b).await["position"], 0);
}

/// A guild without the community features has no announcement, stage and forum channels.
#[tokio::test]
async fn channels_of_a_community_need_one() {
    let mut options = open();
    options.quirks.set("no_community").unwrap();
    let rig = Rig::start(options).await;
    for (kind, status) in [(0, 201), (2, 201), (4, 201), (5, 400), (13, 400), (15, 400)] {
        let told = rig.post(&channels(), json!({"name": "a", "type": kind})).await;
        assert_eq!(told.status, status, "{kind}: {}", told.text);
    }
}
