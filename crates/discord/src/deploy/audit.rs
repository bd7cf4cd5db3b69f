//! The summary of a deployment for the guild's audit channel: a few messages at the end, because
//! one per step would take longer than the steps.

use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::journal::{DeploymentStep, StepState};
use tidegate_upstream::{HttpRequest, Method};

use super::error::{Error, Result};
use super::journal_writer::FOUND_DONE;
use super::queue::{OperationOutcome, json_body};
use super::run::DeploymentRun;
use crate::Id;
use crate::bounds::{MESSAGE_MAX, length};

/// Messages per deployment; lines that do not fit are only counted.
const PAGES_MAX: usize = 10;
/// Bytes of a line.
const LINE_MAX: usize = 400;

/// The lines of a deployment, from its journal, so that a run that was killed loses none.
#[derive(Debug)]
struct AuditLog {
    lines: Vec<String>,
    counts: [(usize, &'static str); 5],
}

impl AuditLog {
    fn new(steps: Vec<DeploymentStep>) -> Self {
        let done = |step: DeploymentStep| {
            let is_found = step.note.as_deref() == Some(FOUND_DONE);
            // What was never sent changed nothing.
            let is_done = step.state == StepState::Failed || step.operation.is_some() || is_found;
            is_done.then_some((step, is_found))
        };
        let mut steps: Vec<_> = steps.into_iter().filter_map(done).collect();
        steps.sort_by_key(|(step, _)| (step.at, step.nth));
        let count = |is_counted: &dyn Fn(&DeploymentStep) -> bool| {
            steps.iter().filter(|(step, _)| is_counted(step)).count()
        };
        let applied =
            |action: &str| count(&|step| step.state == StepState::Applied && *step.action == *action);
        let counts = [
            (applied("create"), "created"),
            (applied("update"), "updated"),
            (applied("order"), "moved"),
            (applied("remove"), "removed"),
            (count(&|step| step.state == StepState::Failed), "failed"),
        ];
        Self { lines: steps.iter().map(|(step, is_found)| line(step, *is_found)).collect(), counts }
    }

    /// Splits the lines into messages, none longer than Discord accepts. Returns none when nothing
    /// was done.
    fn pages(self, deployment: &str, failure: Option<&str>) -> Vec<String> {
        if self.lines.is_empty() && failure.is_none() {
            return Vec::new();
        }
        let how = failure.map_or_else(|| "is done".to_owned(), |failure| format!("failed: {failure}"));
        let mut head = format!("Deployment {deployment} {how}");
        head.truncate(head.floor_char_boundary(MESSAGE_MAX / 4));
        let counts: Vec<_> = self.counts.iter().map(|(count, what)| format!("{count} {what}")).collect();
        head.push_str(&format!("\n{}", counts.join(", ")));
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

fn line(step: &DeploymentStep, is_found: bool) -> String {
    let DeploymentStep { kind, key, action, .. } = step;
    let id = step.foreign_id.as_ref().map_or_else(String::new, |id| format!(" ({id})"));
    let mut line = format!("{action} {kind} {key}{id}");
    if is_found {
        line.push_str(", found done");
    }
    if step.state == StepState::Failed {
        line.push_str(&format!(": {}", step.note.as_deref().unwrap_or("failed")));
    }
    line.truncate(line.floor_char_boundary(LINE_MAX));
    line
}

impl DeploymentRun<'_> {
    /// Posts to the audit channel, if there is one. A failure to post does not fail the deployment.
    pub(super) async fn post_audit(&self, failure: Option<&str>) {
        let Some(channel) = self.wanted.audit_channel else { return };
        if let Err(error) = self.try_post_audit(channel, failure).await {
            tracing::warn!(deployment = self.writer.id(), %error, "posting to the audit channel failed");
        }
    }

    async fn try_post_audit(&self, channel: Id, failure: Option<&str>) -> Result<()> {
        let log = AuditLog::new(self.writer.steps().await?);
        for (nth, page) in log.pages(self.writer.id(), failure).into_iter().enumerate() {
            self.post(channel, nth, &page).await?;
        }
        Ok(())
    }

    /// Posts a page once, also when a run that was killed has posted it before.
    async fn post(&self, channel: Id, nth: usize, content: &str) -> Result<()> {
        let (id, guild) = (self.writer.id(), self.wanted.guild);
        let mark = Fingerprint::of("discord audit").part(id.as_bytes()).part(nth.to_string().as_bytes());
        let mark = hex(&mark.part(content.as_bytes()).finish()[..12]);
        let message = serde_json::json!({
            "content": content,
            "allowed_mentions": {"parse": []},
            "nonce": mark,
            "enforce_nonce": true,
        });
        let mut request = HttpRequest::new(Method::Post, format!("/channels/{channel}/messages"));
        request.body = json_body(Some(&message))?;
        let key = format!("guild:{guild}/deploy:{id}/audit/{nth}/{mark}");
        match self.queue().submit_and_wait("MessageEnsure", request, Some(key)).await?.1 {
            OperationOutcome::Failed(fault) => Err(Error::ReadFailed(fault)),
            _ => Ok(()),
        }
    }
}
