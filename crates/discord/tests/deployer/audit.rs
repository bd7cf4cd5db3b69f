//! The summary in the audit channel comes from the journal: it has what a run did that ended early,
//! and what failed.

use std::sync::Arc;

use tidegate_contract::faulty::{FaultPlan, FaultyStore, InjectedFault, StoreMethod};
use tidegate_discord::Id;
use tidegate_discord::deploy::NoopListener;
use tidegate_sim::discord::quirks::DiscordQuirks;
use tidegate_store::Store;

use crate::foreign::{ForeignNode, ForeignServer, store};
use crate::world::{SMALL, wanted};

/// A template of which the audit channel is left over.
const AUDITED: &str = "prefix: SSO\nchannels:\n  - key: audit\n    name: Audit\n";

/// Makes the audit channel.
async fn make_channel(server: &ForeignServer, node: &ForeignNode) -> Id {
    node.apply(AUDITED).await.unwrap();
    let channels = server.guild()["channels"].as_array().unwrap().clone();
    let audit = channels.iter().find(|channel| channel["name"].as_str().unwrap().contains("audit")).unwrap();
    audit["id"].as_str().unwrap().parse().unwrap()
}

/// Returns the messages of a channel.
fn messages(server: &ForeignServer, channel: Id) -> Vec<String> {
    let guild = server.guild();
    let messages = guild["messages"][channel.to_string()].as_array();
    let messages = messages.map(Vec::as_slice).unwrap_or_default();
    messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// OPS-17: a run that ends between a write and its record loses no line: the next run finds the
/// object and lists it, and what the first one recorded too.
#[tokio::test(start_paused = true)]
async fn ops_17_the_audit_of_a_broken_run_loses_no_line() {
    let server = ForeignServer::with(DiscordQuirks::default());
    let faulty = Arc::new(FaultyStore::new(store(&server), FaultPlan::none()));
    let node = ForeignNode::open(&server, &(Arc::clone(&faulty) as Arc<dyn Store>)).await;
    let channel = make_channel(&server, &node).await;
    let wanted = wanted(SMALL).with_audit_channel(channel);
    // The plan and three writes are recorded.
    faulty.set_plan(FaultPlan::none().at(StoreMethod::WriteJournal, 5, InjectedFault::Fail));
    let error = node.deployer.apply(&wanted, &NoopListener).await.unwrap_err();
    assert!(error.is_transient() && messages(&server, channel).is_empty(), "{error}");
    let report = node.deployer.apply(&wanted, &NoopListener).await.unwrap();
    assert_eq!((report.resumed, report.created, report.adopted), (true, 10, 1), "{report:?}");
    let told = messages(&server, channel).join("\n");
    assert!(told.contains("14 created"), "{told}");
    assert_eq!(told.lines().filter(|line| line.starts_with("create ")).count(), 14, "{told}");
    assert_eq!(told.lines().filter(|line| line.ends_with(", found done")).count(), 1, "{told}");
}

/// OPS-17: a failed step is listed with its reason.
#[tokio::test(start_paused = true)]
async fn ops_17_the_audit_lists_failures() {
    let mut quirks = DiscordQuirks::default();
    quirks.set("refused_types=[2]").unwrap();
    let server = ForeignServer::with(quirks);
    let node = ForeignNode::alone(&server).await;
    let channel = make_channel(&server, &node).await;
    let voice = "prefix: SSO\nchannels:\n  - key: talk\n    name: Talk\n    type: voice\n";
    let wanted = wanted(voice).with_audit_channel(channel);
    node.deployer.apply(&wanted, &NoopListener).await.unwrap_err();
    let told = messages(&server, channel).join("\n");
    assert!(told.contains("1 failed") && told.contains("1 step failed, 0 writes were accepted."), "{told}");
    let line = told.lines().find(|line| line.starts_with("create channel talk: POST /guilds/")).unwrap();
    assert!(line.contains("Channel type 2 is not supported"), "{told}");
}
