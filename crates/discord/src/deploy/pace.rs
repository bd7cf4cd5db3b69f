//! How long the rest of a run takes. Discord does not say how long the windows of its limits are,
//! so a run learns that from their ends, while it uses them.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_core::fact::LimitShape;
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;
use tidegate_core::{LimitName, Time};

use super::error::Result;
use super::known_limits;
use super::progress::ProgressEvent;
use super::run::DeploymentRun;
use crate::plan::{self, PlanStep, PlannedCall, Rate};

/// The windows of routes, as far as this run has seen them.
#[derive(Debug, Default)]
pub(super) struct RoutePace(BTreeMap<(&'static str, &'static str), Rate>);

impl RoutePace {
    /// Learns from the limit of a route after a call on it: the longest time until its window ends
    /// is closest to the whole window.
    fn observe(&mut self, all: &[LimitView], upstream: &str, call: &PlannedCall, now: Time) {
        let route = (call.route.method().as_str(), call.route.template());
        let name: std::sync::Arc<str> = LimitName::new(upstream, &format!("{} {} ", route.0, route.1)).into();
        for view in all.iter().filter(|view| view.name.starts_with(&*name)) {
            let (LimitShape::Window { limit, .. }, Some(reset_at)) = (view.shape, view.reset_at) else {
                continue;
            };
            let calls = u32::try_from(limit / MICRO).unwrap_or(u32::MAX);
            let per_ms = u64::try_from(reset_at.since(now).as_millis()).unwrap_or(u64::MAX);
            let known = self.0.entry(route).or_insert(Rate { calls, per_ms });
            (known.calls, known.per_ms) = (calls, known.per_ms.max(per_ms));
        }
        self.0.retain(|_, rate| rate.calls > 0 && rate.per_ms > 0);
    }
}

impl DeploymentRun<'_> {
    /// Reports how long the rest of the steps will take, after one of them or before the first.
    pub(super) async fn report_rest(&mut self, done: Option<&PlanStep>, rest: &[&PlanStep]) -> Result<()> {
        let (engine, upstream) = (self.deployer.engine(), self.wanted.upstream.as_str());
        let all = engine.limits().await?;
        if let Some(call) = done.and_then(|step| step.call.as_ref()) {
            self.pace.observe(&all, upstream, call, engine.now());
        }
        let mut limits = known_limits::read(&all, upstream, self.wanted.guild);
        limits.routes.clone_from(&self.pace.0);
        let calls = rest.iter().filter_map(|step| step.call.as_ref());
        let left = Duration::from_millis(plan::duration_ms(calls, &limits));
        self.listener.on_event(&ProgressEvent::Expecting { left });
        Ok(())
    }
}
