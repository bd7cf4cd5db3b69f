//! Messages: nonces, edits, pages, refusals.

use serde_json::{Value, json};

use crate::rig::{GUILD, Rig, open};

/// OPS-20: with `enforce_nonce`, a nonce is one message for some minutes; a removed one is not
/// posted again.
#[tokio::test]
async fn ops_20_a_nonce_is_one_message() {
    let rig = Rig::start(open()).await;
    let channel = rig.channel(json!({"name": "a"})).await;
    let path = format!("/channels/{channel}/messages");
    let body = |content: &str| json!({"content": content, "nonce": "n-1", "enforce_nonce": true});
    let first = rig.post(&path, body("one")).await;
    assert_eq!((first.status, &first.body()["nonce"]), (200, &json!("n-1")));
    let again = rig.post(&path, body("two")).await;
    assert_eq!((again.id(), again.body()["content"].clone()), (first.id(), json!("one")));
    let loose = rig.post(&path, json!({"content": "three", "nonce": "n-1"})).await;
    assert_ne!(loose.id(), first.id(), "only when it is enforced");
    assert_eq!(rig.sim.stats().all.writes, 3, "the channel and two messages");
    rig.forward(180_000).await;
    let later = rig.post(&path, body("four")).await;
    assert_eq!(later.body()["content"], "four");
    assert_eq!(rig.delete(&format!("{path}/{}", later.id())).await.status, 204);
    assert_eq!(rig.post(&path, body("five")).await.refusal(), (404, 10_008));
}

/// A message is posted, listed, edited and removed, by those who may.
#[tokio::test]
async fn messages_are_listed_changed_and_removed() {
    let rig = Rig::start(open()).await;
    let channel = rig.channel(json!({"name": "a"})).await;
    let path = format!("/channels/{channel}/messages");
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(rig.post(&path, json!({"content": n.to_string()})).await.id());
    }
    let listed = |query: String| {
        let (rig, path) = (&rig, &path);
        async move {
            let told = rig.get(&format!("{path}{query}")).await.body();
            let contents =
                told.as_array().unwrap().iter().map(|one| one["content"].as_str().unwrap().to_owned());
            contents.collect::<Vec<_>>().join("")
        }
    };
    assert_eq!(listed(String::new()).await, "43210");
    assert_eq!(listed("?limit=2".to_owned()).await, "43");
    assert_eq!(listed(format!("?before={}", ids[2])).await, "10");
    assert_eq!(listed(format!("?after={}&limit=2", ids[1])).await, "32");
    assert_eq!(rig.get(&format!("{path}?limit=101")).await.refusal(), (400, 50_035));
    let one = format!("{path}/{}", ids[0]);
    let changed = rig.patch(&one, json!({"content": "x"})).await.body();
    assert!(changed["content"] == "x" && changed["edited_timestamp"].is_string(), "{changed}");
    assert_eq!(rig.get(&one).await.body(), changed);
    let theirs = rig.post(&format!("/_sim/hand{path}"), json!({"content": "by hand"})).await.id();
    let theirs = format!("{path}/{theirs}");
    assert_eq!(rig.patch(&theirs, json!({"content": "x"})).await.refusal(), (403, 50_005));
    for path in [&one, &theirs] {
        assert_eq!(rig.delete(path).await.status, 204);
        assert_eq!(rig.get(path).await.refusal(), (404, 10_008));
    }
}

/// Messages that are refused.
#[tokio::test]
async fn messages_are_refused_by_code() {
    let rig = Rig::start(open()).await;
    let text = rig.channel(json!({"name": "a"})).await;
    let category = rig.channel(json!({"name": "A", "type": 4})).await;
    let post = |channel: String, body: Value| {
        let rig = &rig;
        async move { rig.post(&format!("/channels/{channel}/messages"), body).await.refusal() }
    };
    assert_eq!(post(text.clone(), json!({})).await, (400, 50_006));
    assert_eq!(post(text.clone(), json!({"content": "x".repeat(2_001)})).await, (400, 50_035));
    assert_eq!(post(text.clone(), json!({"content": "x".repeat(2_000)})).await, (200, 0));
    assert_eq!(post(text.clone(), json!({"embeds": [{"title": "t"}]})).await, (200, 0));
    assert_eq!(post(category, json!({"content": "x"})).await, (400, 50_008));
    assert_eq!(post("5".to_owned(), json!({"content": "x"})).await, (404, 10_003));
    let mute = json!({"type": 0, "deny": (1_u64 << 11).to_string()});
    rig.put(&format!("/channels/{text}/permissions/{GUILD}"), mute).await;
    rig.permit(0).await;
    assert_eq!(post(text.clone(), json!({"content": "x"})).await, (403, 50_013));
    let hide = json!({"type": 0, "deny": (1_u64 << 10).to_string()});
    rig.put(&format!("/_sim/hand/channels/{text}/permissions/{GUILD}"), hide).await;
    assert_eq!(post(text, json!({"content": "x"})).await, (403, 50_001));
}
