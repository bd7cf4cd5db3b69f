//! Submits a job: one POST for each attempt, with the token of the attempt in the webhook's URL.
//! The claim is durable before, so the token needs no row of its own.

use std::time::Duration;

use tidegate_core::{Blame, Fault, FaultClass, Time, Verdict};
use tidegate_images::{
    FaultCause, JobProgress, JobRequest, OutputFile, ProviderFault, ProviderJob, RequestError, SubmitOutcome,
};
use tidegate_upstream::{Call, Outcome};
use tokio::time::{Instant, sleep};

use super::verdict::failed_submit;
use super::{AttemptMemo, GenerationExecutor, GrantedJob};
use crate::results::GeneratedFiles;
use crate::webhook::webhook_url;

/// How long the files of a response are tried to be stored: no later response has them again.
const STORE_PATIENCE: Duration = Duration::from_secs(120);
/// The pause between those tries.
const STORE_PAUSE: Duration = Duration::from_secs(2);

impl GenerationExecutor {
    /// Submits the job of a generation, once.
    pub(super) async fn submit(&self, granted: GrantedJob<'_>, call: Call<'_>) -> Outcome {
        let GrantedJob { payload, picked } = granted;
        let provider = picked.provider;
        let webhook = webhook_url(self.0.config.public_url.as_deref(), &provider.config.name, call);
        let attempt = format!("{}-{}", call.operation, call.fence.0);
        let job = JobRequest {
            model: &picked.link.model,
            input: &payload.input,
            webhook: webhook.as_deref(),
            attempt: &attempt,
        };
        let request = match provider.adapter.submit(&job, &picked.key.key) {
            Ok(request) => request,
            Err(error) => {
                let fault = unsendable(&error);
                let memo = AttemptMemo::new(picked, call.now, call.now).with_fault(&fault);
                return failed_submit(picked, &fault).with_job(memo.to_note());
            }
        };
        let finished = self.0.client.send(request, provider.config.timeout, call.now).await;
        let memo = AttemptMemo::new(picked, call.now, finished.received_at());
        match provider.adapter.read_submit(&job, &finished.reply()) {
            SubmitOutcome::Accepted { job, progress } => {
                self.accepted(granted, memo, job, progress, provider.poll_after())
            }
            SubmitOutcome::Finished { job, files } => {
                self.finished(granted, call, (memo, finished.received_at()), job, files).await
            }
            SubmitOutcome::Failed(fault) => {
                failed_submit(picked, &fault).with_job(memo.with_fault(&fault).to_note())
            }
            // A later version of the adapters may know more; what it means is not known here.
            _ => Outcome::unanswered(Verdict::Unknown(Fault::new(FaultClass::Transient, "it is not known")))
                .with_blame(Blame::NoOne)
                .with_job(memo.to_note()),
        }
    }

    fn accepted(
        &self,
        granted: GrantedJob<'_>,
        memo: AttemptMemo,
        job: ProviderJob,
        progress: JobProgress,
        poll_after: Duration,
    ) -> Outcome {
        let timeout = granted.picked.provider.config.deadline;
        let verdict = Verdict::Accepted { poll_after: Some(poll_after), timeout };
        let memo = memo.with_percent(progress.percent).with_job(Some(job));
        Outcome::unanswered(verdict).with_job(memo.to_note())
    }

    /// A job that was finished at once. If it can be polled, the next poll copies its files;
    /// otherwise they are in this response only.
    async fn finished(
        &self,
        granted: GrantedJob<'_>,
        call: Call<'_>,
        (memo, now): (AttemptMemo, Time),
        job: Option<ProviderJob>,
        files: Vec<OutputFile>,
    ) -> Outcome {
        if let Some(job) = job {
            return self.accepted(granted, memo, job, JobProgress::RUNNING, Duration::ZERO);
        }
        let started = Instant::now();
        loop {
            match self.0.results.store(granted.picked, call.operation, &files).await {
                Ok(stored) => return completed(granted, &stored).with_job(memo.to_note()),
                Err(error) if error.is_transient && started.elapsed() < STORE_PATIENCE => {
                    tracing::warn!(operation_id = call.operation, %error, "a result is not stored yet");
                    sleep(STORE_PAUSE).await;
                }
                Err(error) => {
                    let message = format!("it was generated at {now}, and its files are not stored: {error}");
                    let fault = Fault::new(FaultClass::Transient, message);
                    let outcome = Outcome::unanswered(Verdict::Rejected(fault));
                    return outcome.with_blame(Blame::NoOne).with_job(memo.to_note());
                }
            }
        }
    }
}

/// The outcome of a generation whose files are stored.
pub(super) fn completed(granted: GrantedJob<'_>, files: &GeneratedFiles) -> Outcome {
    let body = files.encode(&granted.picked.provider.config.name);
    Outcome::unanswered(Verdict::Done).with_body(body)
}

/// Why a request cannot be made.
fn unsendable(error: &RequestError) -> ProviderFault {
    let cause = match error {
        RequestError::Input { .. } => FaultCause::Input,
        RequestError::Credential => FaultCause::Auth,
        _ => FaultCause::Refused,
    };
    ProviderFault::new(cause, error.to_string())
}
