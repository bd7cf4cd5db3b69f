//! Limits that an operation opens by itself, because no configuration can list them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate::{Engine, Executors};
use tidegate_core::fact::LimitShape;
use tidegate_core::operation::MICRO;
use tidegate_core::{Charge, Fault, FaultClass, State, Verdict};
use tidegate_upstream::{Call, CallFuture, CallRequirements, FieldRefusal, Outcome, Upstream};

use super::scripted_upstream::{drip, memory, operation};

const LONG: Duration = Duration::from_secs(3_600);

/// Names its limit anew at each check, as a dialect does that has learned another bucket since. The
/// first call fails.
#[derive(Default)]
struct RenamingUpstream {
    checks: AtomicUsize,
    calls: AtomicUsize,
}

impl Upstream for RenamingUpstream {
    fn check(&self, _: &[u8], _: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        let name: Arc<str> = format!("route {}", self.checks.fetch_add(1, Ordering::Relaxed)).into();
        let shape = LimitShape::Window { limit: 5 * MICRO, period: Duration::from_secs(1) };
        let charges = vec![Charge::tokens(Arc::clone(&name), 1)];
        Ok(CallRequirements::new(charges).with_opens(vec![(name, shape)]))
    }

    fn carry<'a>(&'a self, _: Call<'a>) -> CallFuture<'a> {
        let is_first = self.calls.fetch_add(1, Ordering::Relaxed) == 0;
        let fault = Fault::new(FaultClass::Forbidden, "403");
        let verdict = if is_first { Verdict::Rejected(fault) } else { Verdict::Done };
        Box::pin(async move { Outcome::unanswered(verdict) })
    }
}

/// OPS-9: a rerun opens the limits it charges, as the first run did: the first ones may be gone.
#[tokio::test(start_paused = true)]
async fn ops_9_a_rerun_opens_its_limits() {
    let upstream = Arc::new(RenamingUpstream::default()) as Arc<dyn Upstream>;
    let executors = Executors::from([("test".into(), upstream)]);
    let engine = Engine::builder(memory()).executors(executors).open().await.unwrap();
    let id = engine.submit(operation("g", "call")).await.unwrap().id;
    assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Failed);
    engine.rerun(id).await.unwrap();
    assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
}

/// LIM-10: what is saved of limits is what there is: those that operations open come to it, and one
/// that the configuration no longer has goes after the next start.
#[tokio::test(start_paused = true)]
async fn lim_10_what_is_saved_of_limits_that_are_gone_is_removed() {
    let store = memory();
    let open = async |configured: &[&str]| {
        let upstream = Arc::new(RenamingUpstream::default()) as Arc<dyn Upstream>;
        let executors = Executors::from([("test".into(), upstream)]);
        let limits = configured.iter().map(|name| (Arc::from(*name), drip(5, 5)));
        Engine::builder(Arc::clone(&store)).executors(executors).limits(limits).open().await.unwrap()
    };
    let saved = async || {
        tokio::time::sleep(Duration::from_secs(11)).await;
        let found = store.costs().unwrap().limit_snapshots(0).await.unwrap();
        found.iter().map(|one| one.name.to_string()).collect::<Vec<_>>()
    };
    let engine = open(&["kept", "unlisted"]).await;
    let there = async |engine: &Engine| {
        let limits = engine.limits().await.unwrap();
        let mut names: Vec<_> = limits.iter().map(|view| view.name.to_string()).collect();
        names.sort_unstable();
        names
    };
    for _ in 0..6 {
        let id = engine.submit(operation("g", "call")).await.unwrap().id;
        engine.wait(id, LONG).await.unwrap();
        assert_eq!(saved().await, there(&engine).await);
    }
    assert_eq!(there(&engine).await.len(), 8, "two are configured, and six were opened");
    engine.drain().await;
    drop(engine);
    let engine = open(&["kept"]).await;
    let saved = saved().await;
    assert_eq!(saved, there(&engine).await);
    assert!(!saved.contains(&"unlisted".to_owned()), "{saved:?}");
}
