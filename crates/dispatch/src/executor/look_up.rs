//! Looks for the job of a submit whose outcome is unknown, where the provider lists its jobs by
//! time. Only a single match is adopted: of two, one may belong to another generation.

use std::time::Duration;

use tidegate_core::{OperationId, Time};
use tidegate_images::{FaultCause, JobRequest, LookUpOutcome, ProviderFault, ProviderJob};
use tidegate_upstream::Call;

use super::{AttemptMemo, GenerationExecutor, GrantedJob};
use crate::webhook::webhook_url;

/// Most pages of a list that are read.
const PAGES_MAX: usize = 5;
/// How far the provider's clock may be from ours.
const SKEW: Duration = Duration::from_secs(5);

/// How long after its submit a job is in the list at the latest.
const LISTED_WITHIN: Duration = Duration::from_secs(120);

/// Why the job of a submit is not known.
pub(super) enum MissingJob {
    /// A webhook or a later look-up may tell.
    Unresolved(ProviderFault),
    /// Nothing ever will: the provider has no list, and no webhook can come.
    Untraceable(ProviderFault),
    /// The submit created none.
    NotCreated(ProviderFault),
}

impl GenerationExecutor {
    /// Finds the job of a submit; otherwise why it is not known.
    pub(super) async fn look_up(
        &self,
        granted: GrantedJob<'_>,
        call: Call<'_>,
        memo: &AttemptMemo,
        since: Time,
    ) -> Result<ProviderJob, MissingJob> {
        let GrantedJob { payload, picked } = granted;
        let fault = |message: &str| {
            let message = format!("what its submit did is not known, and {message}");
            ProviderFault::new(FaultCause::Unknown, message)
        };
        let unknown = |message: &str| MissingJob::Unresolved(fault(message));
        let accepted_at = call.operation.parse().ok().map(accepted_at).unwrap_or_default();
        let after = memo.sent_at().unwrap_or(accepted_at).before(SKEW);
        let before = memo.answered_at().unwrap_or(call.now).after(SKEW);
        let request = picked.provider.adapter.look_up(after, before, &picked.key.key);
        let Ok(Some(mut request)) = request else {
            return Err(match self.has_webhook(granted, call) {
                true => unknown("only a webhook can tell"),
                false => MissingJob::Untraceable(fault("neither a webhook nor a look-up can tell")),
            });
        };
        let model = memo.model(picked);
        let job = JobRequest { model, input: &payload.input, webhook: None, attempt: "" };
        let mut found: Vec<ProviderJob> = Vec::new();
        // Without the model that was submitted, no listed job is certainly another's.
        let (mut is_whole, mut is_excluded) = (false, !model.is_empty());
        for _ in 0..PAGES_MAX {
            let asked = request.clone();
            let finished = self.0.client.send(asked, picked.provider.config.timeout, call.now).await;
            match picked.provider.adapter.read_look_up(&job, &finished.reply()) {
                LookUpOutcome::Failed(fault) => return Err(MissingJob::Unresolved(fault)),
                LookUpOutcome::Page { jobs, is_conclusive, next } => {
                    found.extend(jobs.into_iter().map(|(job, _)| job));
                    is_excluded &= is_conclusive;
                    is_whole = next.is_none();
                    let Some(next) = next else { break };
                    request.url = next;
                }
            }
        }
        let is_late = call.now.since(memo.answered_at().unwrap_or(since)) > LISTED_WITHIN;
        match found.len() {
            0 if is_late && is_whole && is_excluded => {
                let message = "its submit created no job: the provider lists none";
                Err(MissingJob::NotCreated(ProviderFault::new(FaultCause::NotSent, message)))
            }
            0 => Err(unknown("the provider lists no such job")),
            1 => found.pop().ok_or_else(|| unknown("its job is not listed")),
            many => Err(unknown(&format!("the provider lists {many} such jobs"))),
        }
    }

    /// Whether the end of the job can be reported to us.
    fn has_webhook(&self, granted: GrantedJob<'_>, call: Call<'_>) -> bool {
        let provider = granted.picked.provider;
        let url = webhook_url(self.0.config.public_url.as_deref(), &provider.config.name, call);
        url.is_some() && provider.adapter.has_webhook(&granted.picked.link.model)
    }
}

fn accepted_at(id: OperationId) -> Time {
    Time::from_millis(id.accepted_at_millis())
}
