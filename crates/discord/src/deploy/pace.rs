//! How long the rest of a run takes, at the limits that are known by then.

use std::time::Duration;

use super::error::Result;
use super::progress::ProgressEvent;
use super::run::DeploymentRun;
use crate::plan::{self, PlanStep};

impl DeploymentRun<'_> {
    /// Reports how long the rest of the steps will take.
    pub(super) async fn report_rest(&self, rest: &[&PlanStep]) -> Result<()> {
        let limits = self.deployer.known_limits(self.wanted).await?;
        let calls = rest.iter().filter_map(|step| step.call.as_ref());
        let left = Duration::from_millis(plan::duration_ms(calls, &limits));
        self.listener.on_event(&ProgressEvent::Expecting { left });
        Ok(())
    }
}
