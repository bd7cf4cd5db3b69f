//! The trait that one provider implements: build requests, read responses, verify webhooks. All of
//! it is pure: the caller has the HTTP client, the clock and the secrets.

use std::fmt;

use tidegate_core::Time;
use tidegate_upstream::Secret;

use crate::defaults::ProviderDefaults;
use crate::fault::ProviderFault;
use crate::request::{JobRequest, ProviderRequest, RequestError};
use crate::response::ProviderReply;
use crate::status::{JobStatus, LookUpOutcome, PollStep, ProviderJob, SubmitOutcome};
use crate::webhook::{ReceivedWebhook, Webhook, WebhookError, WebhookKeys};

/// A provider of images or videos.
pub trait Provider: fmt::Debug + Send + Sync {
    /// The stable name.
    fn name(&self) -> &str;

    /// The limits to begin with for a model, each with its source.
    fn defaults(&self, model: &str) -> ProviderDefaults;

    /// Builds the request that submits a job.
    ///
    /// # Errors
    /// When the job cannot be sent to this provider.
    fn submit(&self, job: &JobRequest<'_>, key: &Secret) -> Result<ProviderRequest, RequestError>;

    /// Reads the response to a submit.
    fn read_submit(&self, job: &JobRequest<'_>, reply: &ProviderReply<'_>) -> SubmitOutcome;

    /// Builds the request that polls a job.
    ///
    /// # Errors
    /// When the credential cannot be sent.
    fn poll(&self, job: &ProviderJob, step: PollStep, key: &Secret) -> Result<ProviderRequest, RequestError>;

    /// Reads the response to a poll.
    ///
    /// # Errors
    /// When the poll found out nothing: the job continues.
    fn read_poll(
        &self,
        job: &ProviderJob,
        step: PollStep,
        reply: &ProviderReply<'_>,
    ) -> Result<JobStatus, ProviderFault>;

    /// Builds the request that cancels a job; `None` when the provider has none. Whether it took
    /// effect is seen by the next poll.
    ///
    /// # Errors
    /// When the credential cannot be sent.
    fn cancel(&self, job: &ProviderJob, key: &Secret) -> Result<Option<ProviderRequest>, RequestError>;

    /// Builds the request that lists the jobs of a period, to look for a submit whose response was
    /// lost; `None` when the provider has no such list.
    ///
    /// # Errors
    /// When the credential cannot be sent.
    fn look_up(
        &self,
        after: Time,
        before: Time,
        key: &Secret,
    ) -> Result<Option<ProviderRequest>, RequestError> {
        let _ = (after, before, key);
        Ok(None)
    }

    /// Reads such a list: which of its jobs this submit may have made.
    fn read_look_up(&self, job: &JobRequest<'_>, reply: &ProviderReply<'_>) -> LookUpOutcome {
        let _ = (job, reply);
        LookUpOutcome::Page { jobs: Vec::new(), is_conclusive: false, next: None }
    }

    /// Builds the request for what verifies webhooks; `None` when that is configured.
    ///
    /// # Errors
    /// When the credential cannot be sent.
    fn webhook_keys(&self, key: &Secret) -> Result<Option<ProviderRequest>, RequestError> {
        let _ = key;
        Ok(None)
    }

    /// Reads the response to it; `None` when it holds no key.
    fn read_webhook_keys(&self, body: &[u8]) -> Option<WebhookKeys> {
        let _ = body;
        None
    }

    /// Whether a job of this model can be reported by webhook, if its submit names a URL.
    fn has_webhook(&self, model: &str) -> bool {
        let _ = model;
        true
    }

    /// Verifies a webhook and reads it.
    ///
    /// # Errors
    /// When it is forged, stale or not a webhook of this provider.
    fn receive(&self, webhook: &Webhook<'_>, keys: &WebhookKeys) -> Result<ReceivedWebhook, WebhookError>;
}
