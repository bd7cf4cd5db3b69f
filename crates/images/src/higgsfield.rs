//! Higgsfield: flat inputs, a status page for each request, and webhooks that no one signs. Such a
//! webhook is accepted by the token in its URL and confirmed by a poll.

use std::time::Duration;

use http::Method;
use http::header::AUTHORIZATION;
use serde_json::Value;
use tidegate_upstream::Secret;

use crate::defaults::{Figure, ProviderDefaults};
use crate::fault::{CallKind, FaultCause, ProviderFault, ThrottleScope, detail_message};
use crate::provider::Provider;
use crate::request::{JobRequest, ProviderRequest, RequestError, below, encode, is_path, trimmed, url_below};
use crate::response::{ProviderReply, ProviderResponse};
use crate::status::{JobProgress, JobStatus, PollStep, ProviderJob, SubmitOutcome, collect_urls};
use crate::webhook::{ReceivedWebhook, Webhook, WebhookError, WebhookKeys, check_token};

/// The documented address. The provider's own clients use `https://api.higgsfield.ai`.
pub const BASE_URL: &str = "https://platform.higgsfield.ai";

/// The adapter. Its keys are `id:secret`.
#[derive(Clone, Debug)]
pub struct Higgsfield {
    base: String,
}

impl Higgsfield {
    /// Creates the adapter for a base URL such as [`BASE_URL`].
    #[must_use]
    pub fn new(base: impl Into<String>) -> Self {
        Self { base: trimmed(base) }
    }

    fn call(&self, method: Method, url: String, key: &Secret) -> Result<ProviderRequest, RequestError> {
        ProviderRequest::new(method, url).with_key(&AUTHORIZATION, "Key ", key)
    }

    fn job_url(&self, job: &ProviderJob, returned: Option<&str>, word: &str) -> String {
        let known = returned.and_then(|url| below(&self.base, url)).map(str::to_owned);
        known.unwrap_or_else(|| format!("{}/requests/{}/{word}", self.base, encode(&job.id)))
    }
}

impl Provider for Higgsfield {
    fn name(&self) -> &str {
        "higgsfield"
    }

    fn defaults(&self, _model: &str) -> ProviderDefaults {
        let source = "Higgsfield's limits vary by plan and are shown in the account's dashboard only";
        ProviderDefaults::new(Figure::unknown(source), Figure::unknown(source), (5, 30))
            // Documented: files are kept for at least seven days.
            .keeping(Duration::from_hours(7 * 24))
    }

    fn submit(&self, job: &JobRequest<'_>, key: &Secret) -> Result<ProviderRequest, RequestError> {
        if !is_path(job.model, 1..=6) || job.model.starts_with("requests/") {
            return Err(RequestError::Model(job.model.to_owned(), "Higgsfield"));
        }
        if !job.input.is_object() {
            return Err(RequestError::input("input", "it must be an object"));
        }
        let mut request = self.call(Method::POST, format!("{}/{}", self.base, job.model), key)?;
        if let Some(webhook) = job.webhook {
            request = request.with_query("hf_webhook", webhook);
        }
        Ok(request.with_json(job.input))
    }

    fn read_submit(&self, job: &JobRequest<'_>, reply: &ProviderReply<'_>) -> SubmitOutcome {
        SubmitOutcome::read(reply, fault, |body| {
            let mut accepted = ProviderJob::new(body.get("request_id")?.as_str()?, job.model);
            accepted.status_url = url_below(&self.base, body, "status_url");
            accepted.cancel_url = url_below(&self.base, body, "cancel_url");
            let status = status(body).unwrap_or(JobStatus::Running(JobProgress::QUEUED));
            Some(SubmitOutcome::of(accepted, status))
        })
    }

    fn poll(&self, job: &ProviderJob, _: PollStep, key: &Secret) -> Result<ProviderRequest, RequestError> {
        self.call(Method::GET, self.job_url(job, job.status_url.as_deref(), "status"), key)
    }

    fn read_poll(
        &self,
        _: &ProviderJob,
        _: PollStep,
        reply: &ProviderReply<'_>,
    ) -> Result<JobStatus, ProviderFault> {
        JobStatus::read(reply, fault, status)
    }

    /// Only a queued request can be canceled; otherwise Higgsfield answers 400.
    fn cancel(&self, job: &ProviderJob, key: &Secret) -> Result<Option<ProviderRequest>, RequestError> {
        self.call(Method::POST, self.job_url(job, job.cancel_url.as_deref(), "cancel"), key).map(Some)
    }

    fn receive(&self, webhook: &Webhook<'_>, keys: &WebhookKeys) -> Result<ReceivedWebhook, WebhookError> {
        check_token(webhook, keys)?;
        let body: Value = serde_json::from_slice(webhook.body).map_err(|_| WebhookError::Unreadable)?;
        let id = body.get("request_id").and_then(Value::as_str).ok_or(WebhookError::Unreadable)?;
        Ok(ReceivedWebhook::Unconfirmed { job_id: Some(id.to_owned()) })
    }
}

fn status(body: &Value) -> Option<JobStatus> {
    let failed = |cause, message: &str| JobStatus::Failed(ProviderFault::new(cause, message));
    Some(match body.get("status")?.as_str()? {
        "queued" => JobStatus::Running(JobProgress::QUEUED),
        "in_progress" => JobStatus::Running(JobProgress::RUNNING),
        "completed" => {
            // Not the URLs of status and cancel, which are at the top.
            let outputs =
                ["images", "image", "video", "videos", "audio"].into_iter().filter_map(|name| body.get(name));
            JobStatus::Succeeded(
                outputs.flat_map(|output| collect_urls(output, |key, _| key == Some("url"))).collect(),
            )
        }
        // Higgsfield refunds both.
        "failed" => {
            let message = body.get("error").and_then(Value::as_str).unwrap_or("the generation failed");
            failed(FaultCause::Provider, message)
        }
        "nsfw" => failed(FaultCause::Content, "the content filter refused it"),
        "canceled" => JobStatus::Canceled,
        _ => return None,
    })
}

fn fault(kind: CallKind, response: &ProviderResponse<'_>) -> ProviderFault {
    let message = detail_message(&response.json()).unwrap_or_else(|| response.describe());
    let cause = match (response.status, kind.cause(response, ThrottleScope::Account)) {
        // Not a missing permission: too few credits.
        (403, FaultCause::Auth) => FaultCause::Credit,
        (_, cause) => cause,
    };
    ProviderFault::new(cause, message)
}
