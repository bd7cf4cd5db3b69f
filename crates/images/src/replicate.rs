//! Replicate: predictions over HTTP, webhooks by Standard Webhooks, and a list by time in which a
//! lost submit can be found.

mod prediction;

use std::time::Duration;

use http::Method;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};
use tidegate_core::Time;
use tidegate_upstream::Secret;

use crate::defaults::{Figure, ProviderDefaults};
use crate::fault::{CallKind, FaultCause, ProviderFault, ThrottleScope};
use crate::provider::Provider;
use crate::request::{JobRequest, ProviderRequest, RequestError, below, encode, is_path, trimmed, url_below};
use crate::response::{ProviderReply, ProviderResponse};
use crate::status::{JobProgress, JobStatus, LookUpOutcome, PollStep, ProviderJob, SubmitOutcome};
use crate::webhook::standard::{self, StandardSecret};
use crate::webhook::{ReceivedWebhook, Webhook, WebhookError, WebhookKeys, WebhookReport};
use prediction::{is_made_by, is_of_another, status};

/// The documented address.
pub const BASE_URL: &str = "https://api.replicate.com/v1";

/// The adapter.
#[derive(Clone, Debug)]
pub struct Replicate {
    base: String,
}

impl Replicate {
    /// Creates the adapter for a base URL such as [`BASE_URL`].
    #[must_use]
    pub fn new(base: impl Into<String>) -> Self {
        Self { base: trimmed(base) }
    }

    fn call(&self, method: Method, path: &str, key: &Secret) -> Result<ProviderRequest, RequestError> {
        self.call_url(method, format!("{}{path}", self.base), key)
    }

    fn call_url(&self, method: Method, url: String, key: &Secret) -> Result<ProviderRequest, RequestError> {
        ProviderRequest::new(method, url).with_key(&AUTHORIZATION, "Bearer ", key)
    }

    fn job(&self, prediction: &Value, model: &str) -> Option<ProviderJob> {
        let url = |name: &str| url_below(&self.base, prediction.get("urls")?, name);
        let mut job = ProviderJob::new(prediction.get("id")?.as_str()?, model);
        (job.status_url, job.cancel_url) = (url("get"), url("cancel"));
        Some(job)
    }
}

/// The path of a submit, and the version where the path does not name the model.
fn submit_path(model: &str) -> Option<(String, Option<&str>)> {
    let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hash(model) {
        return Some(("/predictions".into(), Some(model)));
    }
    if let Some((name, version)) = model.split_once(':') {
        let is_version = is_path(name, 2..=2) && is_path(version, 1..=1);
        return is_version.then(|| ("/predictions".into(), Some(model)));
    }
    match model.strip_prefix("deployments/") {
        Some(name) if is_path(name, 2..=2) => Some((format!("/deployments/{name}/predictions"), None)),
        None if is_path(model, 2..=2) => Some((format!("/models/{model}/predictions"), None)),
        _ => None,
    }
}

impl Provider for Replicate {
    fn name(&self) -> &str {
        "replicate"
    }

    fn defaults(&self, _model: &str) -> ProviderDefaults {
        ProviderDefaults::new(
            Figure::unknown("Replicate documents no limit on predictions at once"),
            // 3,000 a minute for everything else; less with little credit.
            Figure::documented(600, "Replicate's documentation of rate limits: 600 predictions a minute"),
            (15, 30),
        )
        // Documented: inputs and outputs of the API are deleted after an hour.
        .keeping(Duration::from_hours(1))
    }

    fn submit(&self, job: &JobRequest<'_>, key: &Secret) -> Result<ProviderRequest, RequestError> {
        let unknown = || RequestError::Model(job.model.to_owned(), "Replicate");
        let (path, version) = submit_path(job.model).ok_or_else(unknown)?;
        if !job.input.is_object() {
            return Err(RequestError::input("input", "it must be an object"));
        }
        let mut body = json!({ "input": job.input });
        if let Some(version) = version {
            body["version"] = version.into();
        }
        if let Some(webhook) = job.webhook {
            body["webhook"] = webhook.into();
            body["webhook_events_filter"] = json!(["completed"]);
        }
        Ok(self.call(Method::POST, &path, key)?.with_json(&body))
    }

    fn read_submit(&self, job: &JobRequest<'_>, reply: &ProviderReply<'_>) -> SubmitOutcome {
        SubmitOutcome::read(reply, fault, |prediction| {
            let status = status(prediction).unwrap_or(JobStatus::Running(JobProgress::QUEUED));
            Some(SubmitOutcome::of(self.job(prediction, job.model)?, status))
        })
    }

    fn poll(&self, job: &ProviderJob, _: PollStep, key: &Secret) -> Result<ProviderRequest, RequestError> {
        match job.status_url.as_deref().and_then(|url| below(&self.base, url)) {
            Some(url) => self.call_url(Method::GET, url.to_owned(), key),
            None => self.call(Method::GET, &format!("/predictions/{}", encode(&job.id)), key),
        }
    }

    fn read_poll(
        &self,
        _: &ProviderJob,
        _: PollStep,
        reply: &ProviderReply<'_>,
    ) -> Result<JobStatus, ProviderFault> {
        JobStatus::read(reply, fault, status)
    }

    fn cancel(&self, job: &ProviderJob, key: &Secret) -> Result<Option<ProviderRequest>, RequestError> {
        let request = match job.cancel_url.as_deref().and_then(|url| below(&self.base, url)) {
            Some(url) => self.call_url(Method::POST, url.to_owned(), key),
            None => self.call(Method::POST, &format!("/predictions/{}/cancel", encode(&job.id)), key),
        };
        request.map(Some)
    }

    fn look_up(
        &self,
        after: Time,
        before: Time,
        key: &Secret,
    ) -> Result<Option<ProviderRequest>, RequestError> {
        let request = self.call(Method::GET, "/predictions", key)?;
        let (after, before) = (after.to_string(), before.to_string());
        Ok(Some(request.with_query("created_after", &after).with_query("created_before", &before)))
    }

    fn read_look_up(&self, job: &JobRequest<'_>, reply: &ProviderReply<'_>) -> LookUpOutcome {
        let response = match CallKind::Read.response(reply) {
            Ok(response) if response.is_success() => response,
            Ok(response) => return LookUpOutcome::Failed(fault(CallKind::Read, &response)),
            Err(fault) => return LookUpOutcome::Failed(fault),
        };
        let page = response.json();
        let Some(results) = page.get("results").and_then(Value::as_array) else {
            return LookUpOutcome::Failed(ProviderFault::unreadable(&response));
        };
        let jobs: Vec<_> = results
            .iter()
            .filter(|prediction| is_made_by(prediction, job))
            .filter_map(|prediction| Some((self.job(prediction, job.model)?, status(prediction)?)))
            .collect();
        let others = results.iter().filter(|prediction| is_of_another(prediction, job)).count();
        let address = page.get("next").and_then(Value::as_str);
        let next = address.and_then(|url| below(&self.base, url)).map(str::to_owned);
        let is_conclusive = jobs.len() + others == results.len() && address.is_some() == next.is_some();
        LookUpOutcome::Page { jobs, is_conclusive, next }
    }

    fn webhook_keys(&self, key: &Secret) -> Result<Option<ProviderRequest>, RequestError> {
        self.call(Method::GET, "/webhooks/default/secret", key).map(Some)
    }

    fn read_webhook_keys(&self, body: &[u8]) -> Option<WebhookKeys> {
        let body: Value = serde_json::from_slice(body).ok()?;
        let secret = StandardSecret::parse(body.get("key")?.as_str()?).ok()?;
        Some(WebhookKeys::Standard(vec![secret]))
    }

    fn receive(&self, webhook: &Webhook<'_>, keys: &WebhookKeys) -> Result<ReceivedWebhook, WebhookError> {
        let delivery_id = standard::verify(webhook, keys)?;
        let prediction: Value = serde_json::from_slice(webhook.body).map_err(|_| WebhookError::Unreadable)?;
        let id = prediction.get("id").and_then(Value::as_str);
        let (Some(id), Some(status)) = (id, status(&prediction)) else {
            return Err(WebhookError::Unreadable);
        };
        Ok(ReceivedWebhook::Signed(WebhookReport {
            delivery_id: Some(delivery_id.to_owned()),
            job_id: Some(id.to_owned()),
            status,
        }))
    }
}

fn fault(kind: CallKind, response: &ProviderResponse<'_>) -> ProviderFault {
    let body = response.json();
    let detail = body.get("detail").and_then(Value::as_str).map(str::trim);
    let message = detail.map_or_else(|| response.describe(), str::to_owned);
    let has_low_credit = message.contains("in credit");
    let scope = if has_low_credit { ThrottleScope::Account } else { ThrottleScope::Key };
    let cause = match kind.cause(response, scope) {
        FaultCause::Throttled { after, scope } => {
            let seconds = body.get("retry_after").and_then(Value::as_f64).filter(|s| (0.0..1e6).contains(s));
            let wait = seconds.map(Duration::from_secs_f64).or_else(|| resets_in(&message));
            FaultCause::Throttled { after: wait.max(after), scope }
        }
        cause => cause,
    };
    ProviderFault::new(cause, message)
}

/// Reads "resets in ~30s".
fn resets_in(message: &str) -> Option<Duration> {
    let (_, rest) = message.split_once('~')?;
    let (digits, _) = rest.split_once('s')?;
    digits.parse().ok().filter(|seconds| *seconds < 1_000_000).map(Duration::from_secs)
}
