//! Servers that differ from Discord: every run ends, says what the server said, and writes no more
//! than it has to.

use std::time::Duration;

use tidegate_core::FaultClass;
use tidegate_core::journal::StepState;
use tidegate_discord::deploy::{Error, FailureCause, StepFailure, group};
use tidegate_discord::plan::{Action, StepTarget};
use tidegate_sim::DiscordSimOptions;
use tidegate_sim::discord::quirks::{BROKEN, DiscordQuirks};
use tokio::time::Instant;

use crate::foreign::{ForeignNode, ForeignServer, store};
use crate::world::{GUILD, SMALL};

fn quirks(names: &[&str]) -> DiscordQuirks {
    let mut quirks = DiscordQuirks::default();
    names.iter().for_each(|name| quirks.set(name).unwrap());
    quirks
}

fn failures(error: &Error) -> &[StepFailure] {
    let Error::Incomplete { failures, .. } = error else { panic!("{error}") };
    failures
}

/// LIM-12, OPS-21: a 429 is believed: one that asks for three seconds where 48 hours are assumed
/// ends after three seconds.
#[tokio::test(start_paused = true)]
async fn lim_12_an_assumed_window_ends_when_the_server_says() {
    let mut options = DiscordSimOptions::default();
    options.limits.set("role-creates", 2, 3_000).unwrap();
    let server = ForeignServer::new(&options);
    let node = ForeignNode::alone(&server).await;
    let begun = Instant::now();
    let report = node.apply(SMALL).await.unwrap();
    assert_eq!(report.created, 14, "{report:?}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(server.world().stats().throttled_by_scope["hidden"], 1);
}

/// LIM-12, OPS-21: a 429 that asks for longer than the bucket's reset closes the whole bucket: it
/// is not tried again sooner.
#[tokio::test(start_paused = true)]
async fn lim_12_a_wait_longer_than_the_reset_closes_the_bucket() {
    // Its headers promise more calls than it allows, so that there is a 429.
    let quirks = quirks(&["longer_wait_ms=20000", "false_headers"]);
    let mut options = DiscordSimOptions { quirks, ..DiscordSimOptions::default() };
    options.limits.set("channel-create", 3, 2_000).unwrap();
    let server = ForeignServer::new(&options);
    let node = ForeignNode::alone(&server).await;
    let report = node.apply(SMALL).await.unwrap();
    assert_eq!(report.created, 14, "{report:?}");
    let stats = server.world().stats();
    assert!(stats.all.throttled <= 4, "{stats:?}");
}

/// OPS-19: a stopped run leaves nothing that blocks: a plan does not wait for what it left in the
/// queue, and neither does the next run.
#[tokio::test(start_paused = true)]
async fn ops_19_a_stopped_run_leaves_nothing_that_blocks() {
    let mut options = DiscordSimOptions::default();
    options.limits.set("role-creates", 1, 48 * 3_600_000).unwrap();
    let server = ForeignServer::new(&options);
    let store = store(&server);
    let node = ForeignNode::open(&server, &store).await;
    let stopped = tokio::time::timeout(Duration::from_secs(60), node.apply(SMALL)).await;
    assert!(stopped.is_err(), "it waits for two days");
    let (begun, planned) = (Instant::now(), node.plan(SMALL).await);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(!planned.plan.is_empty());
    node.engine.drain().await;
    let node = ForeignNode::open(&server, &store).await;
    let begun = Instant::now();
    node.plan(SMALL).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let waiting = node.engine.group(&group(GUILD)).await;
    let left = waiting.map(|(_, _, line)| line.len()).unwrap_or_default();
    assert_eq!(left, 0, "what was not sent is withdrawn");
    // A template without roles needs none of the quota.
    let roleless = "prefix: SSO\nchannels:\n  - key: desk\n    name: Desk\n";
    let begun = Instant::now();
    node.apply(roleless).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

/// OPS-19: a server without the routes that order objects gets everything else, and the error names
/// the route.
#[tokio::test(start_paused = true)]
async fn ops_19_a_server_without_orders_gets_the_rest() {
    let server = ForeignServer::with(quirks(&["no_orders"]));
    let node = ForeignNode::alone(&server).await;
    node.apply(SMALL).await.unwrap();
    let turned = SMALL.replace("key: lead", "key: tmp").replace("key: guest", "key: lead");
    let turned = turned.replace("key: tmp", "key: guest").replace("Agents are here", "We are here");
    let before = server.world().stats().all.writes;
    let error = node.apply(&turned).await.unwrap_err();
    let [failure] = failures(&error) else { panic!("{error}") };
    assert_eq!((&failure.target, failure.action), (&StepTarget::RoleOrder, Action::Order));
    let route = format!("PATCH /guilds/{GUILD}/roles was answered 404");
    assert!(failure.message.contains(&route), "{error}");
    assert_eq!(server.world().stats().all.writes - before, 3, "two roles and a message are changed");
}

/// OPS-19: a field that the server accepts and does not keep is named, after two writes to each
/// object at most; the rest is applied.
#[tokio::test(start_paused = true)]
async fn ops_19_what_does_not_stick_is_named_and_the_run_ends() {
    let server = ForeignServer::with(quirks(&["forget_overwrites"]));
    let node = ForeignNode::alone(&server).await;
    let error = node.apply(SMALL).await.unwrap_err();
    let failed = failures(&error);
    assert_eq!(failed.len(), 4, "a category and three channels have overwrites: {error}");
    for failure in failed {
        assert_eq!(failure.cause, FailureCause::NotKept, "{error}");
        assert!(failure.message.contains("overwrites is none instead of "), "{error}");
    }
    let stats = server.world().stats();
    assert_eq!((stats.all.writes, stats.all.duplicates), (14 + 4, 0), "{stats:?}");
    let plan = node.plan(SMALL).await.plan;
    assert!(plan.writes().all(|step| step.drift.is_none()), "no one edited it by hand: {plan}");
}

/// OPS-17: a step that is planned, applied, planned again and fails is all of that in the events,
/// with the reason, while its state is only the last.
#[tokio::test(start_paused = true)]
async fn ops_17_a_failure_is_an_event_with_its_reason() {
    let server = ForeignServer::with(quirks(&["forget_overwrites"]));
    let store = store(&server);
    let node = ForeignNode::open(&server, &store).await;
    node.apply(SMALL).await.unwrap_err();
    let deployment = store.deployments(None, 1).await.unwrap().remove(0);
    let events = store.deployment_events(&deployment.id).await.unwrap().events;
    let steps = store.deployment_steps(&deployment.id).await.unwrap();
    let failed = steps.iter().find(|step| step.state == StepState::Failed).unwrap();
    let of_step = events.iter().filter(|event| (&event.kind, &event.key) == (&failed.kind, &failed.key));
    let of_step: Vec<_> = of_step.collect();
    let happened: Vec<_> =
        of_step.iter().map(|event| format!("{} {}", event.action, event.state.as_str())).collect();
    let wanted = ["create planned", "create applied", "update planned", "update applied"];
    assert_eq!(happened[..4], wanted, "{happened:?}");
    assert_eq!(happened[4..], ["update planned", "update failed"], "{happened:?}");
    assert_eq!(of_step.last(), Some(&failed));
    assert!(failed.note.as_deref().unwrap().contains("did not stick"), "{failed:?}");
    assert!(deployment.round <= 5, "OPS-19: {} plans", deployment.round);
}

/// OPS-10, OPS-19: a 500 with a reason is shown with its reason and its route; it uses up no
/// renames, and what does not depend on it is applied.
#[tokio::test(start_paused = true)]
async fn ops_10_a_failing_edit_is_told_with_its_reason() {
    let server = ForeignServer::with(DiscordQuirks::default());
    let node = ForeignNode::alone(&server).await;
    node.apply(SMALL).await.unwrap();
    server.world().quirks = quirks(&["broken_edits"]);
    let renamed = SMALL.replace("name: Your", "name: Bright").replace("key: guest", "key: visitor");
    let begun = Instant::now();
    let error = node.apply(&renamed).await.unwrap_err();
    let [failure] = failures(&error) else { panic!("{error}") };
    assert_eq!(failure.cause, FailureCause::Fault(FaultClass::Transient));
    assert!(failure.message.contains(BROKEN) && failure.message.starts_with("PATCH /channels/"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
    let limits = node.engine.limits().await.unwrap();
    let renames = limits.iter().find(|limit| limit.name.contains("/renames ")).unwrap();
    assert_eq!(renames.level, 2_000_000, "both are left");
    let roles = server.guild()["roles"].to_string();
    assert!(roles.contains("〔visitor〕"), "the new role does not depend on it");
}

/// OPS-19: a create that the server refuses fails alone: what depends on it is named as not tried,
/// and the rest is applied.
#[tokio::test(start_paused = true)]
async fn ops_19_a_refused_type_fails_alone() {
    let server = ForeignServer::with(quirks(&["refused_types=[5,4]"]));
    let node = ForeignNode::alone(&server).await;
    let error = node.apply(SMALL).await.unwrap_err();
    let Error::Incomplete { failures, blocked, applied } = &error else { panic!("{error}") };
    assert_eq!((failures.len(), *applied), (2, 4), "two categories; four roles were created: {error}");
    assert!(error.to_string().contains("Channel type 4 is not supported"), "{error}");
    assert!(blocked.len() >= 8, "six channels and two messages are in them: {error}");
    assert!(error.to_string().contains("channel intake: not tried, because it needs the category front"));
    assert_eq!(server.world().stats().all.objects["roles"], 6);
}

/// OPS-19: headers that always promise more calls do not keep a deployment from its end.
#[tokio::test(start_paused = true)]
async fn ops_19_false_headers_are_survived() {
    let mut options =
        DiscordSimOptions { quirks: quirks(&["false_headers"]), ..DiscordSimOptions::default() };
    options.limits.set("routes", 2, 4_000).unwrap();
    let server = ForeignServer::new(&options);
    let node = ForeignNode::alone(&server).await;
    assert_eq!(node.apply(SMALL).await.unwrap().created, 14);
    let stats = server.world().stats();
    assert_eq!((stats.all.duplicates, stats.bans), (0, 0), "{stats:?}");
    assert_eq!(node.apply(SMALL).await.unwrap().writes(), 0);
}
