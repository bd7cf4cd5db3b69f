//! fal's queue: a submit is accepted and waits for a runner, COMPLETED is not yet a success, and
//! webhooks are signed with Ed25519.

mod error;
mod webhook;

use std::time::Duration;

use http::Method;
use http::header::AUTHORIZATION;
use serde_json::Value;
use tidegate_upstream::Secret;

use crate::defaults::{Figure, ProviderDefaults};
use crate::fault::{CallKind, ProviderFault};
use crate::provider::Provider;
use crate::request::{JobRequest, ProviderRequest, RequestError, below, encode, is_path, trimmed, url_below};
use crate::response::{ProviderReply, ProviderResponse};
use crate::status::{JobProgress, JobStatus, PollStep, ProviderJob, SubmitOutcome};
use crate::webhook::jwks::JwkSet;
use crate::webhook::{ReceivedWebhook, Webhook, WebhookError, WebhookKeys};
use error::fault;
use webhook::files;

/// The documented address.
pub const BASE_URL: &str = "https://queue.fal.run";
/// The documented address of the keys that verify webhooks.
pub const JWKS_URL: &str = "https://rest.alpha.fal.ai/.well-known/jwks.json";

/// The adapter.
#[derive(Clone, Debug)]
pub struct Fal {
    base: String,
    jwks_url: String,
}

impl Fal {
    /// Creates the adapter for a base URL such as [`BASE_URL`], and [`JWKS_URL`].
    #[must_use]
    pub fn new(base: impl Into<String>, jwks_url: impl Into<String>) -> Self {
        Self { base: trimmed(base), jwks_url: jwks_url.into() }
    }

    fn call(&self, method: Method, url: String, key: &Secret) -> Result<ProviderRequest, RequestError> {
        ProviderRequest::new(method, url).with_key(&AUTHORIZATION, "Key ", key)
    }

    /// The returned URL; or owner and alias, because these addresses drop the rest of the model.
    fn job_url(&self, job: &ProviderJob, returned: Option<&str>, end: &str) -> String {
        let known = returned.and_then(|url| below(&self.base, url)).map(str::to_owned);
        known.unwrap_or_else(|| {
            let app: Vec<&str> = job.model.split('/').take(2).collect();
            format!("{}/{}/requests/{}{end}", self.base, app.join("/"), encode(&job.id))
        })
    }
}

impl Provider for Fal {
    fn name(&self) -> &str {
        "fal"
    }

    fn defaults(&self, _model: &str) -> ProviderDefaults {
        ProviderDefaults::new(
            // A new account; up to 40 with credits. Only requests in progress count.
            Figure::documented(2, "fal's documentation of concurrency: 2 for a new account, up to 40"),
            Figure::unknown("fal documents no limit on submits a minute"),
            (30, 60),
        )
        // Documented: files are kept for at least seven days.
        .keeping(Duration::from_hours(7 * 24))
    }

    fn submit(&self, job: &JobRequest<'_>, key: &Secret) -> Result<ProviderRequest, RequestError> {
        let is_model = is_path(job.model, 2..=6) && job.model.split('/').all(|part| part != "requests");
        if !is_model {
            return Err(RequestError::Model(job.model.to_owned(), "fal"));
        }
        if !job.input.is_object() {
            return Err(RequestError::input("input", "it must be an object"));
        }
        let mut request = self.call(Method::POST, format!("{}/{}", self.base, job.model), key)?;
        if let Some(webhook) = job.webhook {
            request = request.with_query("fal_webhook", webhook);
        }
        Ok(request.with_json(job.input))
    }

    fn read_submit(&self, job: &JobRequest<'_>, reply: &ProviderReply<'_>) -> SubmitOutcome {
        SubmitOutcome::read(reply, fault, |body| {
            // `gateway_request_id` changes when fal retries; `request_id` does not.
            let mut job = ProviderJob::new(body.get("request_id")?.as_str()?, job.model);
            job.status_url = url_below(&self.base, body, "status_url");
            job.result_url = url_below(&self.base, body, "response_url");
            job.cancel_url = url_below(&self.base, body, "cancel_url");
            let queue_position = body.get("queue_position").and_then(Value::as_u64);
            Some(SubmitOutcome::Accepted {
                job,
                progress: JobProgress { queue_position, ..JobProgress::QUEUED },
            })
        })
    }

    fn poll(&self, job: &ProviderJob, step: PollStep, key: &Secret) -> Result<ProviderRequest, RequestError> {
        let url = match step {
            PollStep::Status => self.job_url(job, job.status_url.as_deref(), "/status"),
            PollStep::Result => self.job_url(job, job.result_url.as_deref(), ""),
        };
        self.call(Method::GET, url, key)
    }

    fn read_poll(
        &self,
        _: &ProviderJob,
        step: PollStep,
        reply: &ProviderReply<'_>,
    ) -> Result<JobStatus, ProviderFault> {
        let response = CallKind::Read.response(reply)?;
        match (step, response.status) {
            (_, 404) => Ok(JobStatus::Missing),
            (PollStep::Status, 200..300) => {
                status(&response.json()).ok_or_else(|| ProviderFault::unreadable(&response))
            }
            (PollStep::Result, 200..300) => Ok(JobStatus::Succeeded(files(&response.json()))),
            (PollStep::Status, _) | (PollStep::Result, 401 | 403 | 408 | 429 | 502) => {
                Err(fault(CallKind::Read, &response))
            }
            // The model's own status.
            (PollStep::Result, _) => result_status(&response),
        }
    }

    fn cancel(&self, job: &ProviderJob, key: &Secret) -> Result<Option<ProviderRequest>, RequestError> {
        self.call(Method::PUT, self.job_url(job, job.cancel_url.as_deref(), "/cancel"), key).map(Some)
    }

    fn webhook_keys(&self, _: &Secret) -> Result<Option<ProviderRequest>, RequestError> {
        Ok(Some(ProviderRequest::new(Method::GET, self.jwks_url.clone())))
    }

    fn read_webhook_keys(&self, body: &[u8]) -> Option<WebhookKeys> {
        JwkSet::parse(body).map(WebhookKeys::Jwks)
    }

    fn receive(&self, webhook: &Webhook<'_>, keys: &WebhookKeys) -> Result<ReceivedWebhook, WebhookError> {
        webhook::receive(webhook, keys)
    }
}

fn status(body: &Value) -> Option<JobStatus> {
    let queue_position = body.get("queue_position").and_then(Value::as_u64);
    Some(match body.get("status")?.as_str()? {
        "IN_QUEUE" => JobStatus::Running(JobProgress { queue_position, ..JobProgress::QUEUED }),
        "IN_PROGRESS" => JobStatus::Running(JobProgress::RUNNING),
        "COMPLETED" => JobStatus::ResultReady,
        _ => return None,
    })
}

/// What the status of a result says about the job.
fn result_status(response: &ProviderResponse<'_>) -> Result<JobStatus, ProviderFault> {
    let fault = fault(CallKind::Read, response);
    if response.status == 400 {
        let message = fault.message.to_lowercase();
        if message.contains("still in progress") {
            return Ok(JobStatus::Running(JobProgress::RUNNING));
        }
        if message.contains("cancelled") || message.contains("canceled") {
            return Ok(JobStatus::Canceled);
        }
    }
    Ok(JobStatus::Failed(fault))
}
