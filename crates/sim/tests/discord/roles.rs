//! Roles: shapes, positions, permissions, hierarchy, bounds.

use reqwest::Method;
use serde_json::{Value, json};

use crate::rig::{GUILD, Rig, open};

async fn places(rig: &Rig) -> Vec<(u64, String)> {
    let roles = rig.get(&format!("/guilds/{GUILD}/roles")).await.body();
    let mut places: Vec<_> = roles
        .as_array()
        .unwrap()
        .iter()
        .map(|role| (role["position"].as_u64().unwrap(), role["name"].as_str().unwrap().to_owned()))
        .collect();
    places.sort();
    places
}

fn names(places: &[(u64, String)]) -> Vec<&str> {
    places.iter().map(|(_, name)| name.as_str()).filter(|name| !name.starts_with("bot-")).collect()
}

/// A guild exists once it is first named: @everyone, and the bot's own role on top.
#[tokio::test]
async fn a_guild_is_made_on_first_sight() {
    let rig = Rig::start(open()).await;
    let guild = rig.get(&format!("/guilds/{GUILD}")).await;
    assert_eq!((guild.status, guild.body()["id"].as_str()), (200, Some("4242")));
    let roles = guild.body()["roles"].clone();
    let me = rig.get("/users/@me").await.body();
    assert_eq!((&roles[0]["id"], &roles[0]["name"]), (&json!("4242"), &json!("@everyone")));
    assert_eq!((&roles[1]["managed"], &roles[1]["tags"]["bot_id"]), (&json!(true), &me["id"]));
    let me = me["id"].as_str().unwrap();
    let member = rig.get(&format!("/guilds/{GUILD}/members/{me}")).await.body();
    assert_eq!(member["roles"], json!([roles[1]["id"]]));
    assert_eq!(rig.get(&format!("/guilds/{GUILD}/members/5")).await.refusal(), (404, 10_007));
    assert_eq!(rig.get("/gateway/bot").await.body()["shards"], 1);
}

/// A role is created, shown, edited and removed; omitted permissions are @everyone's at first, and
/// kept later.
#[tokio::test]
async fn a_role_is_made_changed_and_removed() {
    let rig = Rig::start(open()).await;
    let everyone = rig.get(&format!("/guilds/{GUILD}/roles")).await.body()[0]["permissions"].clone();
    let made = rig.post(&format!("/guilds/{GUILD}/roles"), json!({})).await;
    assert_eq!(
        (made.status, &made.body()["name"], &made.body()["permissions"]),
        (200, &json!("new role"), &everyone)
    );
    let path = format!("/guilds/{GUILD}/roles/{}", made.id());
    let changed =
        rig.patch(&path, json!({"name": " 〚SSO〛 Desk 〔Desk〕 ", "permissions": "0", "color": 255})).await;
    assert_eq!(changed.body()["name"], "〚SSO〛 Desk 〔Desk〕");
    assert_eq!(rig.patch(&path, json!({"hoist": true})).await.body()["color"], 255);
    assert_eq!(rig.get(&path).await.body()["hoist"], true);
    let channel =
        rig.channel(json!({"name": "a", "permission_overwrites": [{"id": made.id(), "type": 0}]})).await;
    assert_eq!(rig.delete(&path).await.status, 204);
    assert_eq!(rig.get(&format!("/channels/{channel}")).await.body()["permission_overwrites"], json!([]));
    for told in [rig.get(&path).await, rig.patch(&path, json!({})).await, rig.delete(&path).await] {
        assert_eq!(told.refusal(), (404, 10_011));
    }
}

/// A new role enters at the bottom; one call puts all in order.
#[tokio::test]
async fn roles_come_in_at_the_bottom_and_are_put_in_order() {
    let rig = Rig::start(open()).await;
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(rig.role(json!({"name": name})).await);
    }
    let before = places(&rig).await;
    assert_eq!(names(&before), ["@everyone", "c", "b", "a"]);
    assert_eq!(before[4].0, 4, "the bot's role is above");
    let order =
        json!([{"id": ids[0], "position": 1}, {"id": ids[1], "position": 2}, {"id": ids[2], "position": 3}]);
    let told = rig.patch(&format!("/guilds/{GUILD}/roles"), order).await;
    assert_eq!((told.status, told.body().as_array().map(Vec::len)), (200, Some(5)));
    assert_eq!(names(&places(&rig).await), ["@everyone", "a", "b", "c"]);
    let strange = rig.patch(&format!("/guilds/{GUILD}/roles"), json!([{"id": "5", "position": 1}])).await;
    assert_eq!(strange.refusal(), (404, 10_011));
    let wrong = rig.patch(&format!("/guilds/{GUILD}/roles"), json!([{"position": -1}])).await;
    assert_eq!(wrong.refusal(), (400, 50_035));
    assert_eq!(wrong.body()["errors"]["0"]["id"]["_errors"][0]["code"], "BASE_TYPE_REQUIRED");
}

/// Roles at or above the bot's own are out of its reach, for administrators too.
#[tokio::test]
async fn hierarchy_holds() {
    let rig = Rig::start(open()).await;
    let low = rig.role(json!({"name": "low"})).await;
    let roles = rig.get(&format!("/guilds/{GUILD}/roles")).await.body();
    let own = roles.as_array().unwrap().iter().find(|role| role["managed"] == true).unwrap()["id"].clone();
    let at = |id: &str| format!("/guilds/{GUILD}/roles/{id}");
    assert_eq!(rig.patch(&at(own.as_str().unwrap()), json!({"name": "x"})).await.refusal(), (403, 50_013));
    assert_eq!(rig.delete(&at(own.as_str().unwrap())).await.refusal(), (400, 50_028));
    assert_eq!(rig.delete(&at("4242")).await.refusal(), (400, 50_028));
    let up = rig.patch(&format!("/guilds/{GUILD}/roles"), json!([{"id": low, "position": 2}])).await;
    assert_eq!(up.refusal(), (403, 50_013));
    rig.post(&format!("/_sim/guilds/{GUILD}"), json!({"bot_position": 1})).await;
    assert_eq!(rig.patch(&at(&low), json!({"name": "x"})).await.refusal(), (403, 50_013));
    assert_eq!(rig.patch(&at("4242"), json!({"permissions": "0"})).await.status, 200);
}

/// A bot grants only what it holds, and needs the permission to manage roles.
#[tokio::test]
async fn permissions_hold() {
    let rig = Rig::start(open()).await;
    rig.permit(1 << 28).await;
    let make = |permissions: u64| json!({"name": "r", "permissions": permissions.to_string()});
    let path = format!("/guilds/{GUILD}/roles");
    assert_eq!(rig.post(&path, make(1 << 28)).await.status, 200);
    assert_eq!(rig.post(&path, make(1 << 4)).await.refusal(), (403, 50_013));
    rig.permit(0).await;
    assert_eq!(rig.post(&path, make(0)).await.refusal(), (403, 50_013));
    assert_eq!(
        rig.post(&format!("/guilds/{GUILD}/channels"), json!({"name": "c"})).await.refusal(),
        (403, 50_013)
    );
}

/// OPS-19: a guild holds 250 roles besides @everyone, and names have 1 to 100 characters.
#[tokio::test]
async fn ops_19_bounds_of_roles() {
    let rig = Rig::start(open()).await;
    let path = format!("/guilds/{GUILD}/roles");
    for _ in 0..249 {
        assert_eq!(rig.post(&path, json!({"name": "x"})).await.status, 200);
    }
    let full = rig.post(&path, json!({"name": "x"})).await;
    assert_eq!(full.refusal(), (400, 30_005));
    assert_eq!(full.body()["message"], "Maximum number of guild roles reached (250)");
    for name in [json!(""), json!("  "), json!("ж".repeat(101)), json!(5)] {
        let told = rig.post(&path, json!({ "name": name })).await;
        assert_eq!(told.refusal(), (400, 50_035), "{name}");
    }
    let body: Value = rig.post(&path, json!({"name": "", "permissions": "all"})).await.body();
    assert_eq!(
        body,
        json!({"code": 50_035, "message": "Invalid Form Body", "errors": {
            "name": {"_errors": [{"code": "BASE_TYPE_BAD_LENGTH", "message": "Must be between 1 and 100 in length."}]},
            "permissions": {"_errors": [{"code": "NUMBER_TYPE_COERCE", "message": "Value \"all\" is not int."}]},
        }})
    );
}

/// Unknown routes and versions, and bodies that are not JSON.
#[tokio::test]
async fn unknown_routes_versions_and_bodies() {
    let rig = Rig::start(open()).await;
    assert_eq!(
        rig.post("/guilds", json!({"name": "x"})).await.body(),
        json!({"message": "404: Not Found", "code": 0})
    );
    assert_eq!(rig.put(&format!("/guilds/{GUILD}/roles"), json!({})).await.status, 405);
    assert_eq!(rig.get("/guilds/x/roles").await.refusal(), (400, 50_035));
    assert_eq!(rig.get("/channels/7").await.refusal(), (404, 10_003));
    let url = |path: &str| format!("http://{}{path}", rig.sim.addr());
    let old = rig.client.get(url("/api/v9/users/@me")).header("authorization", "Bot t").send().await.unwrap();
    assert_eq!(old.status(), 400);
    let bad =
        rig.client.post(url(&format!("/api/v10/guilds/{GUILD}/roles"))).header("authorization", "Bot t");
    let bad = bad.body("{").send().await.unwrap().text().await.unwrap();
    assert_eq!(bad, r#"{"code":50109,"message":"The request body contains invalid JSON."}"#);
    let nobody = Rig { token: None, ..rig };
    let told = nobody.try_call(Method::GET, "/users/@me", None).await.unwrap();
    assert_eq!((told.status, told.text.as_str()), (401, r#"{"code":0,"message":"401: Unauthorized"}"#));
    assert_eq!(nobody.get("/gateway").await.status, 200);
}
