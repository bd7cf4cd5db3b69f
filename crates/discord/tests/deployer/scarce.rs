//! Servers on which something is scarce: room, changes of a name, calls on a route, responses.

use std::time::Duration;

use tidegate_discord::deploy::{Error, FOUND_DONE, NoopListener};
use tidegate_sim::DiscordSimOptions;
use tidegate_sim::discord::quirks::DiscordQuirks;

use crate::foreign::{ForeignNode, ForeignServer, store};
use crate::timed::TimedListener;
use crate::world::{SMALL, wanted};

pub(crate) fn channels(keys: impl IntoIterator<Item = String>) -> String {
    keys.into_iter().fold("channels:\n".to_owned(), |text, key| {
        format!("{text}  - key: {key}\n    name: {key}\n    topic: about {key}\n")
    })
}

fn named(keys: &[&str]) -> String {
    channels(keys.iter().map(|key| (*key).to_owned()))
}

/// OPS-19: where a server has less room than Discord, `prune` makes room for what is new; and while
/// a step has failed, removals are held back for that reason and no other.
#[tokio::test(start_paused = true)]
async fn ops_19_prune_makes_room_on_a_smaller_server() {
    let mut options = DiscordSimOptions::default();
    options.limits.channels_max = 3;
    let server = ForeignServer::new(&options);
    let node = ForeignNode::alone(&server).await;
    node.apply(&named(&["a", "b", "c"])).await.unwrap();
    let other = wanted(&named(&["d", "e", "f"])).with_prune(true);
    let report = node.deployer.apply(&other, &NoopListener).await.unwrap();
    assert_eq!((report.created, report.removed), (3, 3), "{report:?}");
    let more = wanted(&named(&["d", "g", "h", "i"])).with_prune(true);
    let error = node.deployer.apply(&more, &NoopListener).await.unwrap_err();
    let Error::Incomplete { failures, .. } = &error else { panic!("{error}") };
    assert_eq!((failures.len(), failures[0].status()), (1, Some(400)), "it has room for three: {error}");
    server.world().quirks = DiscordQuirks { refused_types: vec![2], ..DiscordQuirks::default() };
    let voice = wanted("channels:\n  - key: v\n    name: V\n    type: voice\n").with_prune(true);
    let text = node.deployer.apply(&voice, &NoopListener).await.unwrap_err().to_string();
    let held = "\nremove channel d: not tried, because nothing is removed while a step has failed";
    assert!(text.contains(held), "{text}");
}

/// OPS-19, OPS-21: a change of a topic that has to wait for ten minutes holds up no other step.
#[tokio::test(start_paused = true)]
async fn ops_21_a_long_wait_holds_up_no_other_step() {
    let server = ForeignServer::with(DiscordQuirks::default());
    let node = ForeignNode::alone(&server).await;
    let template = named(&["talk", "news"]);
    node.apply(&template).await.unwrap();
    for topic in ["one", "two"] {
        node.apply(&template.replace("about talk", topic)).await.unwrap();
    }
    let last = template.replace("about talk", "three").replace("about news", "new");
    let listener = TimedListener::new();
    let report = node.deployer.apply(&wanted(&last), &listener).await.unwrap();
    assert_eq!(report.updated, 2, "{report:?}");
    assert!(listener.applied_at("channel news") < Duration::from_secs(30), "{:?}", listener.applied);
    assert!(listener.applied_at("channel talk") > Duration::from_secs(300), "{:?}", listener.applied);
}

/// OPS-17, OPS-23: what was created by a call whose response was lost is counted as found, and the
/// journal says so.
#[tokio::test(start_paused = true)]
async fn ops_17_objects_found_after_a_lost_response_are_counted() {
    let options = DiscordSimOptions { cut_rate: 0.25, seed: 7, ..DiscordSimOptions::default() };
    let server = ForeignServer::new(&options);
    let store = store(&server);
    let node = ForeignNode::open(&server, &store).await;
    let report = node.apply(SMALL).await.unwrap();
    assert!(report.found > 0 && report.created + report.found == 14, "{report:?}");
    let steps = store.deployment_steps(&report.deployment).await.unwrap();
    let found = steps.iter().filter(|step| step.note.as_deref() == Some(FOUND_DONE));
    let found: Vec<_> = found.map(|step| (&*step.action, step.operation.is_some())).collect();
    assert_eq!(found, vec![("create", false); report.found]);
}
