//! Receives a webhook: token first, then the signature, then the job it names. A message that
//! stands has the job polled at once. Only one whose signature covers its body is believed: if it
//! has the files of a success, these are copied, and the provider is not asked again.

use std::sync::Arc;

use http::HeaderMap;
use tidegate_core::{Fence, OperationId, Time};
use tidegate_images::{JobStatus, OutputFile, ProviderJob, ReceivedWebhook, Webhook, WebhookError};

use super::split_token;
use crate::executor::AttemptMemo;
use crate::generations::Generations;
use crate::payload::GenerationPayload;
use crate::provider_set::PickedProvider;

/// What became of a webhook that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookReceipt {
    /// Its job is polled now.
    Polling,
    /// Its attempt has ended, or another one is current: nothing changed.
    Stale,
}

/// Why a webhook was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookRefusal {
    /// There is no such provider.
    #[error("there is no such provider")]
    UnknownProvider,
    /// The token is not one of ours, or of another attempt's provider.
    #[error("the token is not valid")]
    BadToken,
    /// It does not prove to be from the provider, or names another job.
    #[error("{0}")]
    Refused(WebhookError),
    /// It cannot be verified now; the provider should send it again.
    #[error("{0}")]
    Unavailable(String),
}

impl From<tidegate::Error> for WebhookRefusal {
    fn from(error: tidegate::Error) -> Self {
        match error.kind {
            tidegate::ErrorKind::Unauthorized => Self::BadToken,
            _ => Self::Unavailable(error.message),
        }
    }
}

/// A webhook as it came, and the attempt that its token names.
struct NamedWebhook<'a> {
    webhook: Webhook<'a>,
    token: &'a str,
    id: OperationId,
    fence: Fence,
}

/// What a webhook says, as far as it is believed.
struct JobNews {
    job_id: Option<String>,
    /// The addresses of all files, if the job succeeded and the signature covers them.
    files: Vec<String>,
}

/// The addresses of the files of a success, if each file has one.
fn complete_files(status: JobStatus) -> Vec<String> {
    let JobStatus::Succeeded(files) = status else { return Vec::new() };
    let address = |file| match file {
        OutputFile::Url(url) => Some(url),
        OutputFile::Inline { .. } => None,
    };
    files.into_iter().map(address).collect::<Option<_>>().unwrap_or_default()
}

impl Generations {
    /// Receives a webhook of a provider, by the token in its URL.
    ///
    /// # Errors
    /// When it is forged, stale, about another job, or cannot be verified now.
    pub async fn receive(
        &self,
        provider: &str,
        token: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<WebhookReceipt, WebhookRefusal> {
        let provider = self.state.providers.get(provider).ok_or(WebhookRefusal::UnknownProvider)?;
        let (id, completion) = split_token(token).ok_or(WebhookRefusal::BadToken)?;
        let fence = self.engine.attempt_of_token(id, completion)?;
        let current = self.engine.current_attempt(id).await?.filter(|current| current.fence == fence);
        let Some(current) = current else { return Ok(WebhookReceipt::Stale) };
        let received_at = self.engine.now();
        let webhook = Webhook { headers, body, token: Some(token), received_at };
        let named = NamedWebhook { webhook, token, id, fence };
        let Some(payload) = self.engine.payload(id).await? else { return Ok(WebhookReceipt::Stale) };
        let payload = GenerationPayload::decode(&payload).map_err(|_| WebhookRefusal::BadToken)?;
        let models = self.state.models();
        let model = models.get(&payload.model).map(|model| &model.config);
        let alternative: Arc<str> = current.alternative.unwrap_or_default();
        let picked = self.state.providers.picked_by_job(model, &alternative);
        // Another provider of the chain must not speak about this one's job.
        let is_own = |picked: &PickedProvider<'_>| picked.provider.config.name == provider.config.name;
        let picked = picked.filter(is_own).ok_or(WebhookRefusal::BadToken)?;
        let news = self.verify(picked, &named).await?;
        self.poll_reported(picked, &named, news).await
    }

    /// Verifies a webhook, and returns what is believed of it.
    async fn verify(
        &self,
        picked: PickedProvider<'_>,
        named: &NamedWebhook<'_>,
    ) -> Result<JobNews, WebhookRefusal> {
        let (provider, key, now) = (picked.provider, picked.key, named.webhook.received_at);
        let calling = (&*provider.adapter, &*self.state.client);
        let keys = || provider.webhook_keys.keys(calling, key, named.token, now);
        let found = keys().await.map_err(WebhookRefusal::Unavailable)?;
        let mut received = provider.adapter.receive(&named.webhook, &found);
        if received == Err(WebhookError::Forged) && provider.webhook_keys.refresh(key, now).await {
            let found = keys().await.map_err(WebhookRefusal::Unavailable)?;
            received = provider.adapter.receive(&named.webhook, &found);
        }
        Ok(match received.map_err(WebhookRefusal::Refused)? {
            ReceivedWebhook::Signed(report) => {
                JobNews { job_id: report.job_id, files: complete_files(report.status) }
            }
            ReceivedWebhook::Unconfirmed { job_id } => JobNews { job_id, files: Vec::new() },
        })
    }

    /// Has the job polled. When the response to its submit is not known, the message says which job
    /// it is.
    async fn poll_reported(
        &self,
        picked: PickedProvider<'_>,
        named: &NamedWebhook<'_>,
        JobNews { job_id, files }: JobNews,
    ) -> Result<WebhookReceipt, WebhookRefusal> {
        let attempts = self.engine.attempts(named.id).await?;
        let attempt = attempts.into_iter().find(|attempt| attempt.fence == named.fence);
        let known = attempt.as_ref().and_then(|attempt| attempt.external_id.clone());
        let now: Time = named.webhook.received_at;
        let memo = attempt.map(|attempt| AttemptMemo::decode(&attempt.memo));
        let memo = memo.unwrap_or_else(|| AttemptMemo::new(picked, now, now));
        let note = match (known, job_id) {
            (Some(known), Some(named)) if *known != *named => {
                return Err(WebhookRefusal::Refused(WebhookError::OtherJob));
            }
            (None, Some(job_id)) => {
                let job = ProviderJob::new(job_id, memo.model(picked));
                Some(memo.with_job(Some(job)).with_reported(files).to_note())
            }
            // A repeat has no news.
            (Some(_), Some(_)) if !files.is_empty() && memo.reported.is_empty() => {
                Some(memo.with_reported(files).to_note())
            }
            _ => None,
        };
        let timeout = picked.provider.config.deadline;
        let is_polled = self.engine.poll_attempt(named.id, named.fence, note, timeout).await?;
        Ok(if is_polled { WebhookReceipt::Polling } else { WebhookReceipt::Stale })
    }
}
