//! Fault scenarios: failing or cut responses, a global 429, missing permissions.

use serde_json::json;
use tidegate::Submission;
use tidegate_core::State;
use tidegate_discord::deploy::{Error, NoopListener, group};
use tidegate_sim::DiscordSimOptions;
use tidegate_upstream::{Envelope, HttpRequest, Method};

use crate::world::{GUILD, Node, SMALL, ask, guild, ms, sim, store, wanted, wide};

/// OPS-14, OPS-20, OPS-23: despite failures and cut responses the guild ends up right, without
/// duplicates.
#[tokio::test]
async fn ops_14_no_answer_may_be_lost_and_nothing_is_made_twice() {
    for seed in tidegate_contract::rng::seeds(4) {
        let options =
            DiscordSimOptions { fail_rate: 0.1, cut_rate: 0.1, seed, ..DiscordSimOptions::default() };
        let sim = sim(options).await;
        let node = Node::open(&sim.addr().to_string(), store("memory:").await).await;
        let report = node.apply(SMALL).await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let stats = sim.stats();
        assert_eq!(stats.all.duplicates, 0, "seed {seed}: {:?}", stats.duplicates_by_key);
        assert_eq!((stats.all.objects["messages"], stats.guilds.len()), (2, 1), "seed {seed}: {report:?}");
        assert!(node.plan(SMALL).await.is_empty(), "seed {seed}");
    }
}

/// LIM-12, OPS-21: every call waits out a global 429, and no attempt is spent on it.
#[tokio::test]
async fn lim_12_a_global_429_is_waited_out() {
    let sim = wide().await;
    let address = sim.addr().to_string();
    let node = Node::open(&address, store("memory:").await).await;
    ask(&address, reqwest::Method::POST, "/global", Some(json!({"for_ms": 2_500}))).await;
    let begun = tokio::time::Instant::now();
    node.apply(SMALL).await.unwrap();
    assert!(begun.elapsed() >= ms(2_400));
    let stats = sim.stats();
    assert_eq!((stats.all.throttled, stats.all.duplicates, stats.all.writes), (1, 0, 14), "{stats:?}");
}

/// OPS-10, OPS-19: missing permissions stop the deployment before the first write, and the error
/// names all of them; once they are granted, the next run applies everything.
#[tokio::test]
async fn ops_10_a_missing_permission_is_told() {
    let sim = wide().await;
    let address = sim.addr().to_string();
    let node = Node::open(&address, store("memory:").await).await;
    node.plan(SMALL).await;
    let only = |bits: &str| json!({"bot_permissions": bits});
    ask(&address, reqwest::Method::POST, &format!("/guilds/{GUILD}"), Some(only("1024"))).await;
    let error = node.apply(SMALL).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Conflicts(_)), "{text}");
    for permission in ["MANAGE_ROLES", "MANAGE_CHANNELS", "KICK_MEMBERS"] {
        assert!(text.contains(&format!("the bot lacks {permission}, which ")), "{text}");
    }
    assert!(!text.contains("hunter2"));
    assert_eq!(sim.stats().all.writes, 0);
    let skipping = wanted(SMALL).with_skip_preflight(true);
    let error = node.deployer.apply(&skipping, &NoopListener).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Incomplete { .. }) && text.contains("it needs Manage Roles"), "{text}");
    ask(&address, reqwest::Method::POST, &format!("/guilds/{GUILD}"), Some(only("8"))).await;
    let report = node.apply(SMALL).await.unwrap();
    assert_eq!(report.created, 14, "{report:?}");
}

/// OPS-17: the audit channel gets one summary of what was done.
#[tokio::test]
async fn ops_17_the_audit_channel_is_told() {
    let sim = wide().await;
    let address = sim.addr().to_string();
    let path = format!("/guilds/{GUILD}/channels");
    let channel = crate::world::by_hand(&address, "POST", &path, json!({"name": "audit"})).await;
    let node = Node::open(&address, store("memory:").await).await;
    let mut wanted = wanted(SMALL);
    wanted.audit_channel = Some(channel["id"].as_str().unwrap().parse().unwrap());
    let report = node.deployer.apply(&wanted, &NoopListener).await.unwrap();
    node.deployer.apply(&wanted, &NoopListener).await.unwrap();
    let guild = guild(&address).await;
    let told = guild["messages"][channel["id"].as_str().unwrap()].as_array().unwrap();
    let told: Vec<_> = told.iter().map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(&report.deployment) && told[0].contains("create role agent ("), "{told:?}");
}

/// OPS-23: a step that an earlier run left held for an operator does not block the guild: it is
/// looked for like any other.
#[tokio::test]
async fn ops_23_a_held_step_is_looked_for() {
    let sim = wide().await;
    let address = sim.addr().to_string();
    let node = Node::open(&address, store("memory:").await).await;
    let cut = json!({"write": 1, "when": "after", "how": "cut"});
    ask(&address, reqwest::Method::POST, "/stop", Some(cut)).await;
    let mut request = HttpRequest::new(Method::Post, format!("/guilds/{GUILD}/roles"));
    request.body = serde_json::from_value(json!({"name": "〚SSO〛 Old 〔agent〕"})).unwrap();
    let envelope = Envelope { upstream: "discord".into(), request, proxied: None, completion: None };
    let submission =
        Submission::new("RoleEnsure", group(GUILD), envelope.encode().unwrap()).with_max_attempts(1);
    let held = node.engine.submit(submission).await.unwrap().id;
    for _ in 0..500 {
        if node.engine.get(held).await.unwrap().state == State::Unknown {
            break;
        }
        tokio::time::sleep(ms(10)).await;
    }
    assert_eq!(node.engine.get(held).await.unwrap().state, State::Unknown);
    let report = node.apply(SMALL).await.unwrap();
    assert_eq!((report.created, report.updated, report.adopted), (13, 1, 1), "{report:?}");
    assert_eq!(sim.stats().all.duplicates, 0);
}

/// OPS-19: a plan does not send what an interrupted run left in the queue: a plan changes nothing.
#[tokio::test]
async fn ops_19_a_plan_sends_nothing_that_was_left() {
    let sim = wide().await;
    let (address, folder) = (sim.addr().to_string(), tempfile::tempdir().unwrap());
    let url = format!("file:{}", folder.path().display());
    let node = Node::open(&address, store(&url).await).await;
    node.plan(SMALL).await;
    ask(&address, reqwest::Method::POST, "/global", Some(json!({"for_ms": 1_500}))).await;
    let stopped = tokio::time::timeout(ms(700), node.apply(SMALL)).await;
    assert!(stopped.is_err(), "it waits for the 429 to end");
    node.engine.drain().await;
    drop(node);
    let left = sim.stats().all.writes;
    tokio::time::sleep(ms(1_500)).await;
    let node = Node::open(&address, store(&url).await).await;
    node.plan(SMALL).await;
    assert_eq!(sim.stats().all.writes, left);
    let report = node.apply(SMALL).await.unwrap();
    assert_eq!((report.created, sim.stats().all.duplicates), (14, 0), "{report:?}");
}
