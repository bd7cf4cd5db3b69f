//! Applies calls to a simulated provider: its rate limit, its faults, its jobs and its bill. The
//! same calls at the same times from the same seed have the same results.

use serde::Serialize;
use tidegate_core::Time;
use tidegate_core::fingerprint::Fingerprint;

use super::ProviderSimOptions;
use super::api::{ProviderApi, ProviderRefusal};
use super::jobs::{Job, JobEnd, JobState, JobTable, NewJob};
use super::webhook::{WebhookFaults, WebhookPlan};
use crate::effect_history::EffectHistory;
use crate::rng::SeededRng;
use crate::stats::Stats;
use crate::token_bucket::TokenBucket;

/// A prompt with this in it ends with a fault of the provider.
pub const FAULT_MARK: &str = "[fail]";
/// A prompt with this in it is refused for its content.
pub const CONTENT_MARK: &str = "[nsfw]";

/// What became of webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WebhookStats {
    /// Messages that were sent, repeated and forged ones included.
    pub sent: u64,
    /// Messages that got a 2xx.
    pub answered: u64,
    /// Ends that were never reported.
    pub lost: u64,
    /// Messages with a wrong signature.
    pub forged: u64,
}

/// The counts of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProviderStats {
    /// The counts that all simulators have.
    #[serde(flatten)]
    pub all: Stats,
    /// What became of webhooks.
    pub webhooks: WebhookStats,
}

/// A submit that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedSubmit {
    /// The number of its job.
    pub number: u64,
    /// Whether the connection is cut instead of a response.
    pub is_cut: bool,
    /// Whether its webhook comes before the response.
    pub is_early: bool,
}

/// The state of a provider.
#[derive(Debug)]
pub struct ProviderSimState {
    stats: Stats,
    /// What became of webhooks.
    pub webhooks: WebhookStats,
    /// The jobs.
    pub jobs: JobTable,
    history: EffectHistory,
    rate: TokenBucket,
    rng: SeededRng,
    fail_rate: f64,
    cut_rate: f64,
    job_fail_rate: f64,
    faults: WebhookFaults,
}

impl ProviderSimState {
    /// Creates a fresh state.
    #[must_use]
    pub fn new(options: &ProviderSimOptions) -> Self {
        Self {
            stats: Stats::default(),
            webhooks: WebhookStats::default(),
            jobs: JobTable::new(options.max_concurrent, options.takes),
            history: EffectHistory::default(),
            rate: TokenBucket::new(options.burst, options.rpm as f64 / 60.0),
            rng: SeededRng::new(options.seed),
            fail_rate: options.fail_rate,
            cut_rate: options.cut_rate,
            job_fail_rate: options.job_fail_rate,
            faults: options.webhook_faults,
        }
    }

    /// Changes the share of submits that fail.
    pub const fn set_fail_rate(&mut self, rate: f64) {
        self.fail_rate = rate;
    }

    /// Counts a call.
    pub const fn count_call(&mut self) {
        self.stats.calls += 1;
    }

    /// Accepts a submit, or refuses it without effect. Bring jobs to `now` first.
    ///
    /// # Errors
    /// When it exceeds a limit, or fails.
    pub fn submit(
        &mut self,
        api: &dyn ProviderApi,
        spec: NewJob,
        now: Time,
    ) -> Result<AcceptedSubmit, ProviderRefusal> {
        if let Some(wait) = self.rate.take(now).wait {
            return Err(self.count_throttled(ProviderRefusal::Throttled(wait)));
        }
        if spec.is_synchronous && !self.jobs.has_free_slot() {
            return Err(self.count_throttled(ProviderRefusal::Busy));
        }
        // All are drawn each time, so that one rate does not shift what the others hit.
        let (fails, is_cut) = (self.rng.happens(self.fail_rate), self.rng.happens(self.cut_rate));
        let (job_fails, is_early) =
            (self.rng.happens(self.job_fail_rate), self.rng.happens(self.faults.early));
        let random = (u128::from(self.rng.next()) << 64) | u128::from(self.rng.next());
        if fails {
            return Err(ProviderRefusal::Failed);
        }
        let is_early = is_early && spec.webhook.is_some();
        self.stats.writes += 1;
        self.stats.billed += 1;
        self.stats.duplicates += u64::from(self.history.record(&spec.model, &spec.input.to_string()));
        let end = planned_end(&spec, job_fails);
        let number = self.jobs.accept(api.job_id(&spec, random), spec, end, now);
        Ok(AcceptedSubmit { number, is_cut, is_early })
    }

    /// Draws how the end of a job is reported.
    pub fn plan_webhook(&mut self) -> WebhookPlan {
        let plan = self.faults.draw(&mut self.rng);
        self.webhooks.lost += u64::from(plan.is_lost);
        plan
    }

    /// Returns the counts.
    #[must_use]
    pub fn stats(&self) -> ProviderStats {
        let mut all = self.stats.clone();
        for job in self.jobs.newest_first() {
            *all.objects.entry(state_name(job.state).to_owned()).or_default() += 1;
        }
        ProviderStats { all, webhooks: self.webhooks }
    }

    fn count_throttled(&mut self, refusal: ProviderRefusal) -> ProviderRefusal {
        self.stats.throttled += 1;
        self.stats.overstepped += 1;
        refusal
    }
}

/// The number that a job's picture is drawn from: the same prompt, the same picture.
#[must_use]
pub fn picture_seed(job: &Job) -> u64 {
    Fingerprint::of("sim picture").part(job.spec.prompt.as_bytes()).short() as u64
}

/// The name of a state, in counts.
#[must_use]
pub const fn state_name(state: JobState) -> &'static str {
    match state {
        JobState::Queued => "queued",
        JobState::Running => "running",
        JobState::Ended(JobEnd::Success) => "succeeded",
        JobState::Ended(_) => "failed",
        JobState::Canceled => "canceled",
    }
}

fn planned_end(spec: &NewJob, fails: bool) -> JobEnd {
    if spec.prompt.is_empty() {
        JobEnd::Invalid
    } else if spec.prompt.contains(CONTENT_MARK) {
        JobEnd::Content
    } else if fails || spec.prompt.contains(FAULT_MARK) {
        JobEnd::Fault
    } else {
        JobEnd::Success
    }
}
