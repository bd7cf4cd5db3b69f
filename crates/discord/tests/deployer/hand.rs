//! Manual changes to managed objects, and how they are repaired.

use serde_json::json;
use tidegate_discord::deploy::Error;
use tidegate_discord::plan::Drift;

use crate::world::{GUILD, Node, SMALL, by_hand, guild, store, wide};

async fn deployed() -> (tidegate_sim::DiscordSim, String, Node) {
    let sim = wide().await;
    let address = sim.addr().to_string();
    let node = Node::open(&address, store("memory:").await).await;
    node.apply(SMALL).await.unwrap();
    (sim, address, node)
}

async fn id_of(address: &str, list: &str, name: &str) -> String {
    let guild = guild(address).await;
    let list = guild[list].as_array().unwrap();
    let found = list.iter().find(|one| one["name"].as_str().is_some_and(|known| known.contains(name)));
    found.unwrap_or_else(|| panic!("{name} is not in {list:?}"))["id"].as_str().unwrap().to_owned()
}

/// OPS-19: objects that were renamed, deleted or edited by hand show up in the plan and are
/// repaired.
#[tokio::test]
async fn ops_19_what_was_changed_by_hand_is_put_right() {
    let (sim, address, node) = deployed().await;
    let (agent, guest) = (id_of(&address, "roles", "agent").await, id_of(&address, "roles", "guest").await);
    let (news, lobby) =
        (id_of(&address, "channels", "-news").await, id_of(&address, "channels", "lobby").await);
    by_hand(&address, "PATCH", &format!("/guilds/{GUILD}/roles/{agent}"), json!({"color": 7})).await;
    by_hand(&address, "DELETE", &format!("/guilds/{GUILD}/roles/{guest}"), json!({})).await;
    by_hand(&address, "PATCH", &format!("/channels/{news}"), json!({"name": "old-news"})).await;
    by_hand(&address, "DELETE", &format!("/channels/{lobby}"), json!({})).await;
    let plan = node.plan(SMALL).await;
    let mut drifts: Vec<_> =
        plan.steps.iter().filter_map(|step| Some((step.target.to_string(), step.drift?))).collect();
    drifts.sort();
    let expected = [
        ("channel lobby", Drift::Deleted),
        ("channel news", Drift::Renamed),
        ("role agent", Drift::Edited),
        ("role guest", Drift::Deleted),
    ];
    assert_eq!(drifts, expected.map(|(what, drift)| (what.to_owned(), drift)), "{plan}");
    let report = node.apply(SMALL).await.unwrap();
    assert_eq!((report.created, report.updated), (2, 2), "{report:?}");
    assert!(node.plan(SMALL).await.is_empty());
    assert_eq!(sim.stats().all.duplicates, 0);
}

/// OPS-20: a deleted message is posted again, an existing one is not.
#[tokio::test]
async fn ops_20_a_deleted_message_is_posted_once() {
    let (sim, address, node) = deployed().await;
    let guild = guild(&address).await;
    let messages = guild["messages"].as_object().unwrap();
    let hours = messages
        .values()
        .flat_map(|list| list.as_array().unwrap())
        .find(|one| one["content"].as_str().unwrap().contains("weekdays"))
        .unwrap();
    let (channel, id) = (hours["channel_id"].as_str().unwrap(), hours["id"].as_str().unwrap());
    by_hand(&address, "DELETE", &format!("/channels/{channel}/messages/{id}"), json!({})).await;
    let trusting = crate::world::wanted(SMALL).with_trust_journal(true);
    let unseen = node.deployer.apply(&trusting, &tidegate_discord::deploy::NoopListener).await.unwrap();
    assert_eq!(unseen.writes(), 0, "the journal is believed about messages: {unseen:?}");
    let plan = node.plan(SMALL).await;
    assert_eq!(plan.writes().count(), 1, "{plan}");
    let report = node.apply(SMALL).await.unwrap();
    assert_eq!(report.created, 1, "{report:?}");
    let edited = SMALL.replace("from 9 to 18", "from 8 to 20");
    let report = node.apply(&edited).await.unwrap();
    assert_eq!((report.created, report.updated), (0, 1), "{report:?}");
    assert_eq!((sim.stats().all.objects["messages"], sim.stats().all.duplicates), (2, 0));
}

/// OPS-14: two objects with one key stop the deployment, with both ids; nothing is written. With
/// the journal, which knows the managed one, the other one is left alone.
#[tokio::test]
async fn ops_14_two_with_one_key_stop_it() {
    let (sim, address, node) = deployed().await;
    let agent = id_of(&address, "roles", "agent").await;
    let path = format!("/guilds/{GUILD}/roles");
    let twin = by_hand(&address, "POST", &path, json!({"name": "〚SSO〛 Copy 〔agent〕"})).await;
    let twin = twin["id"].as_str().unwrap();
    let writes = sim.stats().all.writes;
    let fresh = Node::open(&address, store("memory:").await).await;
    let error = fresh.apply(&SMALL.replace("Support agent", "Helper")).await.unwrap_err();
    assert!(matches!(error, Error::Conflicts(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains(&agent) && text.contains(twin), "{text}");
    assert_eq!(sim.stats().all.writes, writes);
    let report = node.apply(&SMALL.replace("Support agent", "Helper")).await.unwrap();
    assert_eq!((report.updated, report.writes()), (1, 1), "{report:?}");
    let guild = guild(&address).await;
    let name = |id: &str| {
        let roles = guild["roles"].as_array().unwrap();
        roles.iter().find(|role| role["id"] == id).unwrap()["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(name(twin), "〚SSO〛 Copy 〔agent〕");
    assert!(name(&agent).contains("Helper"), "{}", name(&agent));
}

/// OPS-19: objects that left the template are reported, and removed only on request; unmanaged
/// objects stay.
#[tokio::test]
async fn ops_19_only_who_prunes_loses_something() {
    let (sim, address, node) = deployed().await;
    by_hand(&address, "POST", &format!("/guilds/{GUILD}/channels"), json!({"name": "ours"})).await;
    let without = SMALL.replace("  - key: guest\n    name: Guest\n", "");
    assert_ne!(without, SMALL);
    let report = node.apply(&without).await.unwrap();
    assert_eq!((report.removed, report.leftovers), (0, 1), "{report:?}");
    let mut wanted = crate::world::wanted(&without);
    wanted.prune = true;
    let report = node.deployer.apply(&wanted, &tidegate_discord::deploy::NoopListener).await.unwrap();
    assert_eq!((report.removed, report.writes()), (1, 1), "{report:?}");
    id_of(&address, "channels", "ours").await;
    assert_eq!(sim.stats().all.duplicates, 0);
}

/// OPS-19: a wrong order is repaired in one call for all roles and one for all channels.
#[tokio::test]
async fn ops_19_orders_take_one_call_each() {
    let (sim, address, node) = deployed().await;
    let swapped = SMALL.replace("  - key: guest\n    name: Guest\n", "");
    let swapped =
        swapped.replace("roles: # the highest first\n", "roles:\n  - key: guest\n    name: Guest\n");
    let lobby = id_of(&address, "channels", "lobby").await;
    let news = id_of(&address, "channels", "-news").await;
    let places = json!([{"id": lobby, "position": 0}, {"id": news, "position": 40}]);
    by_hand(&address, "PATCH", &format!("/guilds/{GUILD}/channels"), places).await;
    let before = sim.stats().all.writes;
    let report = node.apply(&swapped).await.unwrap();
    assert_eq!((report.moved, report.writes()), (2, 2), "{report:?}");
    assert_eq!(sim.stats().all.writes - before, 2);
    assert!(node.plan(&swapped).await.is_empty());
}

async fn message_of(address: &str, says: &str) -> (String, String) {
    let guild = guild(address).await;
    let all = guild["messages"].as_object().unwrap().clone();
    let mut all = all.values().flat_map(|list| list.as_array().unwrap());
    let found = all.find(|one| one["content"].as_str().unwrap().contains(says)).unwrap();
    (found["channel_id"].as_str().unwrap().to_owned(), found["id"].as_str().unwrap().to_owned())
}

/// OPS-20: a message that was edited by hand is in the plan, and the deployment that follows
/// repairs it.
#[tokio::test]
async fn ops_20_an_edited_message_is_put_right() {
    let (sim, address, node) = deployed().await;
    let (channel, id) = message_of(&address, "weekdays").await;
    let path = format!("/channels/{channel}/messages/{id}");
    by_hand(&address, "PATCH", &path, json!({"content": "edited, and the marker is gone"})).await;
    assert_eq!(node.plan(SMALL).await.writes().count(), 1);
    let report = node.apply(SMALL).await.unwrap();
    assert_eq!((report.created, report.updated), (0, 1), "{report:?}");
    assert!(node.plan(SMALL).await.is_empty());
    assert_eq!(sim.stats().all.objects["messages"], 2);
}

/// OPS-20: a run notices by itself that a message was deleted or edited by hand, unless it is told
/// to believe the journal.
#[tokio::test]
async fn ops_20_apply_notices_a_deleted_message() {
    let (sim, address, node) = deployed().await;
    let (channel, id) = message_of(&address, "weekdays").await;
    by_hand(&address, "DELETE", &format!("/channels/{channel}/messages/{id}"), json!({})).await;
    let (channel, id) = message_of(&address, "Welcome").await;
    let path = format!("/channels/{channel}/messages/{id}");
    by_hand(&address, "PATCH", &path, json!({"content": "edited, and the marker is gone"})).await;
    let trusting = crate::world::wanted(SMALL).with_trust_journal(true);
    let trusting = node.deployer.apply(&trusting, &tidegate_discord::deploy::NoopListener).await.unwrap();
    assert_eq!(trusting.writes(), 0, "{trusting:?}");
    let report = node.apply(SMALL).await.unwrap();
    assert_eq!((report.created, report.updated), (1, 1), "{report:?}");
    assert_eq!(sim.stats().all.objects["messages"], 2);
}

/// OPS-20: a message below a thousand others is edited in place, and not posted a second time.
#[tokio::test]
async fn ops_20_a_buried_message_is_edited() {
    let (sim, address, node) = deployed().await;
    let (channel, _) = message_of(&address, "weekdays").await;
    for n in 0..1_005 {
        let body = json!({"content": format!("chat {n}")});
        by_hand(&address, "POST", &format!("/channels/{channel}/messages"), body).await;
    }
    let edited = SMALL.replace("from 9 to 18", "from 8 to 20");
    let report = node.apply(&edited).await.unwrap();
    assert_eq!((report.created, report.updated), (0, 1), "{report:?}");
    assert!(node.plan(&edited).await.is_empty());
    let fresh = Node::open(&address, store("memory:").await).await;
    let report = fresh.apply(&edited).await.unwrap();
    assert_eq!((report.writes(), report.adopted), (0, 14), "found without a journal too: {report:?}");
    assert_eq!(sim.stats().all.objects["messages"], 2 + 1_005);
}
