//! Runs that are refused before anything is applied: a plan that no longer holds, and a token that
//! Discord does not know.

use std::time::Duration;

use tidegate_core::journal::DeploymentStage;
use tidegate_discord::deploy::{Error, NoopListener};
use tidegate_sim::discord::quirks::DiscordQuirks;
use tokio::time::Instant;

use crate::foreign::{ForeignNode, ForeignServer, store};
use crate::world::{SMALL, wanted};

/// OPS-17, OPS-19: a plan that was agreed to and no longer holds is no deployment: the journal
/// stays as it was, and so does an interrupted deployment. One that holds is in the journal.
#[tokio::test(start_paused = true)]
async fn ops_17_a_refused_plan_is_no_deployment() {
    let server = ForeignServer::with(DiscordQuirks::default());
    let store = store(&server);
    let node = ForeignNode::open(&server, &store).await;
    let agreed = wanted(SMALL).with_plan_digest(node.plan(SMALL).await.plan.digest());
    let report = node.deployer.apply(&agreed, &NoopListener).await.unwrap();
    let done = store.deployments(None, 10).await.unwrap();
    assert_eq!((done.len(), &*done[0].id, done[0].stage), (1, &*report.deployment, DeploymentStage::Done));
    let error = node.deployer.apply(&agreed, &NoopListener).await.unwrap_err();
    assert!(matches!(error, Error::Changed), "{error}");
    assert_eq!(store.deployments(None, 10).await.unwrap(), done);
    let other = wanted(&SMALL.replace("Agents are here", "We are here"));
    let stopped = tokio::time::timeout(Duration::from_millis(30), node.deployer.apply(&other, &NoopListener));
    assert!(stopped.await.is_err());
    let interrupted = store.deployments(None, 10).await.unwrap();
    assert_eq!((interrupted.len(), interrupted[0].stage), (2, DeploymentStage::Running));
    let error = node.deployer.apply(&agreed, &NoopListener).await.unwrap_err();
    assert!(matches!(error, Error::Changed), "{error}");
    assert_eq!(store.deployments(None, 10).await.unwrap(), interrupted);
}

/// OPS-10, OPS-19: a token that Discord does not know is named as the reason, by the first run and
/// by the next ones, which do not wait for minutes to find out.
#[tokio::test(start_paused = true)]
async fn ops_10_a_refused_token_is_named_at_once() {
    let server = ForeignServer::with(DiscordQuirks::default());
    let node = ForeignNode::alone(&server).await;
    server.answer_always(401, r#"{"message": "401: Unauthorized", "code": 0}"#);
    let (request, begun) = (wanted(SMALL), Instant::now());
    for nth in 0..3 {
        let planned = node.deployer.plan(&request, &request.read().unwrap(), &NoopListener).await;
        let error = planned.unwrap_err();
        assert!(matches!(error, Error::TokenRefused { .. }), "{nth}: {error}");
        let text = error.to_string();
        assert!(text.contains("was answered 401 Unauthorized") && text.contains("for 15 min"), "{text}");
    }
    let error = node.apply(SMALL).await.unwrap_err();
    assert!(matches!(error, Error::TokenRefused { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}
