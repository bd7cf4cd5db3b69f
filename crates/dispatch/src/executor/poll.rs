//! Polls a job: the net below its webhook, and what confirms it. Passes on a cancel, and copies the
//! files of a finished job; a copy that failed is retried by the next poll, and nothing is
//! submitted again. A job whose success a signed webhook reported is not asked about: its files are
//! copied.

use std::time::Duration;

use tidegate_core::{Blame, Fault, FaultClass, Verdict};
use tidegate_images::{FaultCause, JobProgress, JobStatus, OutputFile, PollStep, ProviderFault, ProviderJob};
use tidegate_upstream::{AcceptedJob, Call, Outcome};

use super::look_up::MissingJob;
use super::submit::completed;
use super::verdict::failed_job;
use super::{AttemptMemo, GenerationExecutor, GrantedJob};

/// How often a job is looked at whose provider is not configured.
pub(super) const UNCONFIGURED_EVERY: Duration = Duration::from_secs(60);
/// For how long after its submit a job may be missing from the provider's own lists.
const MISSING_PATIENCE: Duration = Duration::from_secs(60);
/// How soon a copy that failed is tried again.
const COPY_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// A job that is polled.
#[derive(Clone, Copy)]
struct PolledJob<'a> {
    granted: GrantedJob<'a>,
    call: Call<'a>,
    accepted: AcceptedJob<'a>,
    job: &'a ProviderJob,
}

impl GenerationExecutor {
    /// Asks once how a job stands.
    pub(super) async fn poll_once(
        &self,
        granted: GrantedJob<'_>,
        call: Call<'_>,
        accepted: AcceptedJob<'_>,
    ) -> Outcome {
        let memo = AttemptMemo::decode(accepted.memo);
        let known = memo.job.clone().or_else(|| {
            let id = accepted.external_id?;
            Some(ProviderJob::new(id, memo.model(granted.picked)))
        });
        let (job, memo) = match known {
            Some(job) => (job, memo),
            None if accepted.cancel_requested => {
                return Outcome::unanswered(Verdict::Canceled { may_have_happened: true });
            }
            None => match self.look_up(granted, call, &memo, accepted.since).await {
                Ok(job) => (job.clone(), memo.with_job(Some(job))),
                Err(missing) => return self.without_job(granted, memo, &missing),
            },
        };
        let polled = PolledJob { granted, call, accepted, job: &job };
        if accepted.cancel_requested {
            return self.pass_on_cancel(polled).await;
        }
        if !memo.reported.is_empty() {
            return self.copy_reported(polled, memo).await;
        }
        match self.status(polled).await {
            Ok(status) => self.settle(polled, memo, status).await,
            Err(fault) => {
                let outcome = self.not_found_out(granted, &fault);
                // What a look-up found is kept, whatever the poll said.
                if accepted.external_id.is_none() { outcome.with_job(memo.to_note()) } else { outcome }
            }
        }
    }

    /// A submit of which no job is known. One that nothing can resolve ends the generation: its
    /// slot is not kept for news that cannot come. After one that created no job the next
    /// alternative is used.
    fn without_job(&self, granted: GrantedJob<'_>, memo: AttemptMemo, missing: &MissingJob) -> Outcome {
        match missing {
            MissingJob::Unresolved(fault) => self.not_found_out(granted, fault),
            MissingJob::Untraceable(fault) => {
                let memo = memo.with_cost_of(granted.picked).with_doubt(fault);
                let verdict = Verdict::Rejected(Fault::from(fault));
                Outcome::unanswered(verdict).with_blame(Blame::NoOne).with_job(memo.to_note())
            }
            MissingJob::NotCreated(fault) => {
                let memo = memo.with_fault(fault);
                let verdict = Verdict::Retry { after: None, fault: Fault::from(fault) };
                Outcome::unanswered(verdict).with_blame(Blame::NoOne).with_job(memo.to_note())
            }
        }
    }

    /// A poll that found out nothing: the job continues, and is polled again.
    fn not_found_out(&self, granted: GrantedJob<'_>, fault: &ProviderFault) -> Outcome {
        let every = match fault.cause {
            FaultCause::Throttled { after, .. } => after,
            _ => None,
        };
        let every = every.unwrap_or_default().max(granted.picked.provider.poll_every());
        let verdict = Verdict::PollFailed { every, fault: Fault::from(fault) };
        Outcome::unanswered(verdict).with_blame(Blame::NoOne)
    }

    async fn status(&self, polled: PolledJob<'_>) -> Result<JobStatus, ProviderFault> {
        match self.ask(polled, PollStep::Status).await? {
            JobStatus::ResultReady => self.ask(polled, PollStep::Result).await,
            status => Ok(status),
        }
    }

    async fn ask(&self, polled: PolledJob<'_>, step: PollStep) -> Result<JobStatus, ProviderFault> {
        let PolledJob { granted, call, job, .. } = polled;
        let (provider, key) = (granted.picked.provider, granted.picked.key);
        let request = provider.adapter.poll(job, step, &key.key);
        let request = request.map_err(|error| ProviderFault::new(FaultCause::Refused, error.to_string()))?;
        let finished = self.0.client.send(request, provider.config.timeout, call.now).await;
        provider.adapter.read_poll(job, step, &finished.reply())
    }

    async fn settle(&self, polled: PolledJob<'_>, memo: AttemptMemo, status: JobStatus) -> Outcome {
        let PolledJob { granted, call, accepted, .. } = polled;
        let picked = granted.picked;
        match status {
            JobStatus::Succeeded(files) => self.copy(polled, &memo, &files).await,
            JobStatus::Failed(fault) => {
                failed_job(picked, &fault).with_job(memo.with_fault(&fault).to_note())
            }
            JobStatus::Canceled => {
                let fault = ProviderFault::new(FaultCause::Unexplained, "the job was canceled there");
                failed_job(picked, &fault).with_job(memo.with_fault(&fault).to_note())
            }
            JobStatus::Missing if call.now.since(accepted.since) > MISSING_PATIENCE => {
                let fault = ProviderFault::new(FaultCause::Unexplained, "it does not know the job any more");
                failed_job(picked, &fault).with_job(memo.with_fault(&fault).to_note())
            }
            JobStatus::Running(progress) => self.still_running(polled, memo, progress),
            _ => self.still_running(polled, memo, JobProgress::RUNNING),
        }
    }

    fn still_running(&self, polled: PolledJob<'_>, memo: AttemptMemo, progress: JobProgress) -> Outcome {
        let provider = polled.granted.picked.provider;
        let poll_after = Some(provider.poll_every());
        let verdict = Verdict::Accepted { poll_after, timeout: provider.config.deadline };
        // A row is written only for news.
        let is_news = polled.accepted.external_id.is_none() || progress.percent != memo.percent;
        let memo = memo.with_percent(progress.percent);
        Outcome::unanswered(verdict).with_job(is_news.then(|| memo.to_note()))
    }

    /// Copies the files of a finished job to our own storage. Only then it is completed.
    async fn copy(&self, polled: PolledJob<'_>, memo: &AttemptMemo, files: &[OutputFile]) -> Outcome {
        let PolledJob { granted, call, .. } = polled;
        match self.0.results.store(granted.picked, call.operation, files).await {
            Ok(stored) => completed(granted, &stored).with_job(memo.to_note()),
            Err(error) if error.is_transient => {
                let fault =
                    Fault::new(FaultClass::Transient, format!("its files are not stored yet: {error}"));
                let verdict = Verdict::PollFailed { every: COPY_AGAIN_AFTER, fault };
                Outcome::unanswered(verdict).with_blame(Blame::NoOne)
            }
            Err(error) => {
                let reason = format!("its files cannot be stored: {error}");
                let note = memo.clone().with_reason(&reason).to_note();
                let fault = Fault::new(FaultClass::Validation, reason);
                Outcome::unanswered(Verdict::Rejected(fault)).with_blame(Blame::NoOne).with_job(note)
            }
        }
    }

    /// Copies the files that a signed webhook reported. If that fails the next poll asks for the
    /// job, because the addresses may have changed.
    async fn copy_reported(&self, polled: PolledJob<'_>, mut memo: AttemptMemo) -> Outcome {
        let files = std::mem::take(&mut memo.reported).into_iter().map(OutputFile::Url);
        let outcome = self.copy(polled, &memo, &files.collect::<Vec<_>>()).await;
        if outcome.job.is_some() { outcome } else { outcome.with_job(memo.to_note()) }
    }

    /// Asks the provider to stop a job. The generation is canceled as soon as the provider has the
    /// request, whatever it makes of it: not every provider can stop a job that runs.
    async fn pass_on_cancel(&self, polled: PolledJob<'_>) -> Outcome {
        let PolledJob { granted, call, job, .. } = polled;
        let (provider, key) = (granted.picked.provider, granted.picked.key);
        if let Ok(Some(request)) = provider.adapter.cancel(job, &key.key) {
            let finished = self.0.client.send(request, provider.config.timeout, call.now).await;
            if let Err(reason) = finished.answered() {
                let fault = ProviderFault::new(FaultCause::Provider, format!("the cancel: {reason}"));
                return self.not_found_out(granted, &fault);
            }
        }
        Outcome::unanswered(Verdict::Canceled { may_have_happened: true })
    }
}
