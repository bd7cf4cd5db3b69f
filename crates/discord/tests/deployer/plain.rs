//! A deployment into an empty guild, and a second run.

use tidegate_core::journal::{DeploymentStage, StepState};
use tidegate_discord::deploy::group;

use crate::world::{GUILD, Node, SMALL, guild, store, wide};

/// OPS-18, OPS-19: the first run creates everything once, each object in one call; the second one
/// writes nothing, and reads the two lists and the channel that has messages.
#[tokio::test]
async fn ops_18_a_second_run_writes_nothing() {
    let sim = wide().await;
    let node = Node::open(&sim.addr().to_string(), store("memory:").await).await;
    let plan = node.plan(SMALL).await;
    assert_eq!(plan.writes().count(), 16, "{plan}");
    assert_eq!(sim.stats().all.writes, 0, "a plan changes nothing");
    let first = node.apply(SMALL).await.unwrap();
    assert_eq!((first.created, first.moved, first.updated, first.rounds), (14, 0, 0, 2), "{first:?}");
    let stats = sim.stats();
    assert_eq!((stats.all.writes, stats.all.throttled, stats.all.duplicates), (14, 0, 0), "{stats:?}");
    let before = stats.all.calls;
    let second = node.apply(SMALL).await.unwrap();
    let stats = sim.stats();
    assert_eq!((second.writes(), stats.all.writes, stats.all.calls - before), (0, 14, 4), "{second:?}");
    assert!(node.plan(SMALL).await.is_empty());
}

/// OPS-13: the guild matches the template, under names that contain the keys, with an audit reason
/// on every write.
#[tokio::test]
async fn ops_13_the_guild_is_what_the_template_says() {
    let sim = wide().await;
    let address = sim.addr().to_string();
    let node = Node::open(&address, store("memory:").await).await;
    let report = node.apply(SMALL).await.unwrap();
    let guild = guild(&address).await;
    let names = |list: &str| -> Vec<String> {
        let list = guild[list].as_array().unwrap();
        list.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let roles = names("roles");
    assert!(roles.contains(&"〚SSO〛 Support agent 〔agent〕".to_owned()), "{roles:?}");
    let channels = names("channels");
    assert!(channels.contains(&"latest-news".to_owned()), "{channels:?}");
    assert!(channels.contains(&"〚SSO〛 Front desk 〔front〕".to_owned()), "{channels:?}");
    let log = crate::world::ask(&address, reqwest::Method::GET, "/log", None).await;
    let log = log["writes"].as_array().or(log.as_array()).unwrap().clone();
    let reason = format!("Tidegate {}: ", report.deployment);
    assert!(
        log.iter().all(|write| write["reason"].as_str().is_some_and(|told| told.starts_with(&reason))),
        "{log:?}"
    );
}

/// OPS-17: every step is in the journal with its object's id, its fingerprint and the operation
/// that executed it, whose key is the step's (OPS-3).
#[tokio::test]
async fn ops_17_every_step_is_in_the_journal() {
    let sim = wide().await;
    let node = Node::open(&sim.addr().to_string(), store("memory:").await).await;
    let report = node.apply(SMALL).await.unwrap();
    let deployment = node.store.deployment(&report.deployment).await.unwrap().unwrap();
    assert_eq!((deployment.stage, &*deployment.scope), (DeploymentStage::Done, &*group(GUILD)));
    let steps = node.store.deployment_steps(&report.deployment).await.unwrap();
    assert_eq!(steps.len(), 16, "with the two orders, which turned out right by themselves");
    assert!(steps.iter().all(|step| step.state == StepState::Applied), "{steps:?}");
    let agent = steps.iter().find(|step| &*step.key == "agent").unwrap();
    assert!(agent.foreign_id.is_some());
    let operation = agent.operation.as_ref().unwrap().parse().unwrap();
    let view = node.engine.get(operation).await.unwrap();
    let key = format!("guild:{GUILD}/deploy:{}/RoleEnsure/agent/{}", report.deployment, agent.fingerprint);
    assert_eq!(view.dedupe_key.as_deref(), Some(key.as_str()));
    assert_eq!((view.kind.as_ref(), view.group.as_ref()), ("RoleEnsure", group(GUILD).as_str()));
    assert_eq!(view.deployment_id.as_deref(), Some(report.deployment.as_str()));
    assert_eq!(node.store.mapped_objects(&group(GUILD)).await.unwrap().len(), 14);
}

/// OPS-17: the journal keeps each step's planned and applied as events, in the order in which they
/// happened; a second run has its own.
#[tokio::test]
async fn ops_17_planned_and_applied_are_events() {
    let sim = wide().await;
    let node = Node::open(&sim.addr().to_string(), store("memory:").await).await;
    let report = node.apply(SMALL).await.unwrap();
    let found = node.store.deployment_events(&report.deployment).await.unwrap();
    assert_eq!((found.dropped, found.events.len()), (0, 32), "16 steps, each planned and then applied");
    let (planned, applied) = found.events.split_at(16);
    assert!(planned.iter().all(|event| event.state == StepState::Planned), "{planned:?}");
    assert!(applied.iter().all(|event| event.state == StepState::Applied), "{applied:?}");
    assert!(found.events.is_sorted_by_key(|event| event.at), "{:?}", found.events);
    let steps = node.store.deployment_steps(&report.deployment).await.unwrap();
    assert!(steps.iter().all(|step| applied.contains(step)), "{applied:?}");
    let again = node.apply(SMALL).await.unwrap();
    let second = node.store.deployment_events(&again.deployment).await.unwrap();
    assert!(second.events.iter().all(|event| &*event.action == "skip"), "{second:?}");
    assert_eq!(node.store.deployment_events(&report.deployment).await.unwrap(), found);
}

/// OPS-14: without a journal everything is found by name and adopted, and nothing is written.
#[tokio::test]
async fn ops_14_a_lost_journal_costs_no_write() {
    let sim = wide().await;
    let address = sim.addr().to_string();
    Node::open(&address, store("memory:").await).await.apply(SMALL).await.unwrap();
    let fresh = Node::open(&address, store("memory:").await).await;
    let report = fresh.apply(SMALL).await.unwrap();
    assert_eq!((report.writes(), report.adopted, sim.stats().all.writes), (0, 14, 14), "{report:?}");
    assert_eq!(fresh.store.mapped_objects(&group(GUILD)).await.unwrap().len(), 14);
    let before = sim.stats().all.calls;
    let trusting = crate::world::wanted(SMALL).with_trust_journal(true);
    fresh.deployer.apply(&trusting, &tidegate_discord::deploy::NoopListener).await.unwrap();
    assert_eq!(sim.stats().all.calls - before, 2, "what was found again is known from then on");
}

/// OPS-26: a plan knows the usage of the hidden quotas, also by an earlier process.
#[tokio::test]
async fn ops_26_a_plan_counts_with_what_was_used() {
    let sim = wide().await;
    let (address, folder) = (sim.addr().to_string(), tempfile::tempdir().unwrap());
    let url = format!("file:{}", folder.path().display());
    let node = Node::open(&address, store(&url).await).await;
    node.apply(SMALL).await.unwrap();
    node.engine.drain().await;
    drop(node);
    let node = Node::open(&address, store(&url).await).await;
    let wanted = crate::world::wanted(&SMALL.replace("key: guest", "key: visitor"));
    let template = wanted.read().unwrap();
    let planned =
        node.deployer.plan(&wanted, &template, &tidegate_discord::deploy::NoopListener).await.unwrap();
    let estimate = planned.plan.estimate(&planned.limits);
    assert_eq!((planned.limits.role_creates_used, estimate.role_creates_left), (4, 245), "{estimate:?}");
}

/// OPS-26: a plan knows which channels were renamed too often to be renamed at once, and how long
/// that takes.
#[tokio::test]
async fn ops_26_a_plan_counts_the_renames_that_were_used() {
    let sim = wide().await;
    let node = Node::open(&sim.addr().to_string(), store("memory:").await).await;
    node.apply(SMALL).await.unwrap();
    for name in ["Newest", "Freshest"] {
        node.apply(&SMALL.replace("name: Latest", &format!("name: {name}"))).await.unwrap();
    }
    let wanted = crate::world::wanted(SMALL);
    let template = wanted.read().unwrap();
    let planned =
        node.deployer.plan(&wanted, &template, &tidegate_discord::deploy::NoopListener).await.unwrap();
    let estimate = planned.plan.estimate(&planned.limits);
    let used: Vec<_> = planned.limits.renames_used.values().collect();
    assert_eq!((used, estimate.renames_held.len()), (vec![&2], 1), "{estimate:?}");
    assert!(estimate.time_ms >= 600_000, "{estimate:?}");
}
