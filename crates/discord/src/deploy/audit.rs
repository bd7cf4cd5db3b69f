//! The summary of a deployment for the guild's audit channel: a few messages at the end, because
//! one per step would take longer than the steps.

use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_upstream::{HttpRequest, Method};

use super::error::{Error, Result};
use super::queue::{OperationOutcome, json_body};
use super::report::DeployReport;
use super::run::DeploymentRun;
use crate::Id;
use crate::bounds::{MESSAGE_MAX, length};
use crate::plan::PlanStep;

/// Messages per deployment; lines that do not fit are only counted.
const PAGES_MAX: usize = 10;

/// The collected lines.
#[derive(Debug, Default)]
pub(super) struct AuditLog {
    lines: Vec<String>,
}

impl AuditLog {
    pub(super) fn add(&mut self, step: &PlanStep, id: Option<Id>) {
        let id = id.map_or_else(String::new, |id| format!(" ({id})"));
        self.lines.push(format!("{} {}{id}", step.action.as_str(), step.target));
    }

    /// Splits the lines into messages, none longer than Discord accepts. Returns none when nothing
    /// was done.
    pub(super) fn pages(self, deployment: &str, report: &DeployReport, failure: Option<&str>) -> Vec<String> {
        if self.lines.is_empty() && failure.is_none() {
            return Vec::new();
        }
        let DeployReport { created, updated, moved, removed, .. } = report;
        let how = failure.map_or_else(|| "is done".to_owned(), |failure| format!("failed: {failure}"));
        let mut head = format!("Deployment {deployment} {how}");
        head.truncate(head.floor_char_boundary(MESSAGE_MAX / 4));
        head.push_str(&format!("\n{created} created, {updated} updated, {moved} moved, {removed} removed"));
        let mut pages = vec![head];
        let mut untold = 0_usize;
        for line in &self.lines {
            let room = PAGES_MAX - pages.len();
            match pages.last_mut() {
                Some(page) if length(page) + length(line) < MESSAGE_MAX - 40 => {
                    page.push('\n');
                    page.push_str(line);
                }
                _ if room > 0 => pages.push(line.clone()),
                _ => untold += 1,
            }
        }
        if untold > 0
            && let Some(last) = pages.last_mut()
        {
            last.push_str(&format!("\nand {untold} more"));
        }
        pages
    }
}

impl DeploymentRun<'_> {
    /// Posts to the audit channel, if there is one. A failure to post does not fail the deployment.
    pub(super) async fn post_audit(&mut self, failure: Option<&str>) {
        let Some(channel) = self.wanted.audit_channel else { return };
        let pages = std::mem::take(&mut self.audit).pages(self.writer.id(), &self.report, failure);
        for (nth, page) in pages.into_iter().enumerate() {
            if let Err(error) = self.post(channel, nth, &page).await {
                tracing::warn!(deployment = self.writer.id(), %error, "posting to the audit channel failed");
                return;
            }
        }
    }

    async fn post(&self, channel: Id, nth: usize, content: &str) -> Result<()> {
        let (id, guild) = (self.writer.round_id(), self.wanted.guild);
        let nonce = Fingerprint::of("discord audit").part(id.as_bytes()).part(nth.to_string().as_bytes());
        let message = serde_json::json!({
            "content": content,
            "allowed_mentions": {"parse": []},
            "nonce": hex(&nonce.finish()[..12]),
            "enforce_nonce": true,
        });
        let mut request = HttpRequest::new(Method::Post, format!("/channels/{channel}/messages"));
        request.body = json_body(Some(&message))?;
        let key = format!("guild:{guild}/deploy:{id}/audit/{nth}");
        match self.queue().submit_and_wait("MessageEnsure", request, Some(key)).await?.1 {
            OperationOutcome::Failed(fault) => Err(Error::ReadFailed(fault)),
            _ => Ok(()),
        }
    }
}
