//! Google's Gemini API: Gemini and Imagen answer with the picture itself, Veo starts a long-running
//! operation. Only a success of Veo is reported by webhook, so polls stay necessary.

mod body;
mod error;
mod output;
mod pacific;

use http::{HeaderName, Method};
use serde_json::Value;
use tidegate_upstream::Secret;

use crate::defaults::{Figure, ProviderDefaults};
use crate::fault::ProviderFault;
use crate::provider::Provider;
use crate::request::{JobRequest, ProviderRequest, RequestError, is_path, trimmed};
use crate::response::{ProviderReply, ProviderResponse};
use crate::status::{JobStatus, OutputFile, PollStep, ProviderJob, SubmitOutcome};
use crate::webhook::jwks::JwkSet;
use crate::webhook::{
    ReceivedWebhook, Webhook, WebhookError, WebhookKeys, WebhookReport, check_timestamp, header, standard,
};

/// The documented address.
pub const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";
/// The address of the keys that verify webhooks of single requests.
pub const JWKS_URL: &str = "https://generativelanguage.googleapis.com/.well-known/jwks.json";

const API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// How a model is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GoogleMethod {
    GenerateContent,
    Predict,
    PredictLongRunning,
}

impl GoogleMethod {
    /// The model's name and its method: named after a colon, or known by the family.
    fn of(model: &str) -> Option<(&str, Self)> {
        let (name, method) = match model.split_once(':') {
            Some((name, "generateContent")) => (name, Self::GenerateContent),
            Some((name, "predict")) => (name, Self::Predict),
            Some((name, "predictLongRunning")) => (name, Self::PredictLongRunning),
            None if model.starts_with("gemini-") => (model, Self::GenerateContent),
            None if model.starts_with("imagen-") => (model, Self::Predict),
            None if model.starts_with("veo-") => (model, Self::PredictLongRunning),
            _ => return None,
        };
        is_path(name, 1..=1).then_some((name, method))
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::GenerateContent => "generateContent",
            Self::Predict => "predict",
            Self::PredictLongRunning => "predictLongRunning",
        }
    }
}

/// The adapter.
#[derive(Clone, Debug)]
pub struct Google {
    base: String,
    jwks_url: String,
}

impl Google {
    /// Creates the adapter for a base URL such as [`BASE_URL`], and [`JWKS_URL`].
    #[must_use]
    pub fn new(base: impl Into<String>, jwks_url: impl Into<String>) -> Self {
        Self { base: trimmed(base), jwks_url: jwks_url.into() }
    }
}

impl Provider for Google {
    fn name(&self) -> &str {
        "google"
    }

    fn defaults(&self, model: &str) -> ProviderDefaults {
        let source = "Google shows the limits of a project in AI Studio only";
        let concurrent = Figure::unknown("Google documents no limit on calls at once");
        match GoogleMethod::of(model) {
            Some((_, GoogleMethod::GenerateContent)) => ProviderDefaults::new(
                concurrent,
                Figure::documented(
                    10,
                    "Google's documentation of 2025: 10 a minute for images in the free tier; a project's own limits are in AI Studio",
                ),
                (10, 20),
            ),
            _ => ProviderDefaults::new(concurrent, Figure::unknown(source), (10, 20)),
        }
    }

    fn submit(&self, job: &JobRequest<'_>, key: &Secret) -> Result<ProviderRequest, RequestError> {
        let unknown = || RequestError::Model(job.model.to_owned(), "Google");
        let (name, method) = GoogleMethod::of(job.model).ok_or_else(unknown)?;
        let url = format!("{}/models/{name}:{}", self.base, method.as_str());
        let request = ProviderRequest::new(Method::POST, url).with_key(&API_KEY, "", key)?;
        Ok(request.with_json(&body::submit_body(method, job)?))
    }

    fn read_submit(&self, job: &JobRequest<'_>, reply: &ProviderReply<'_>) -> SubmitOutcome {
        let method = GoogleMethod::of(job.model).map(|(_, method)| method);
        let is_synchronous = method != Some(GoogleMethod::PredictLongRunning);
        let fault = |kind, response: &ProviderResponse<'_>| error::fault(kind, is_synchronous, response);
        SubmitOutcome::read(reply, fault, |body| {
            let status = match method {
                Some(GoogleMethod::GenerateContent) => output::generated_content(body)?,
                Some(GoogleMethod::Predict) => output::predicted(body)?,
                Some(GoogleMethod::PredictLongRunning) | None => {
                    let name = body.get("name")?.as_str().filter(|name| is_operation(name))?;
                    return Some(SubmitOutcome::of(
                        ProviderJob::new(name, job.model),
                        output::operation(body)?,
                    ));
                }
            };
            match status {
                JobStatus::Succeeded(files) => Some(SubmitOutcome::Finished { job: None, files }),
                JobStatus::Failed(fault) => Some(SubmitOutcome::Failed(fault)),
                _ => None,
            }
        })
    }

    fn poll(&self, job: &ProviderJob, _: PollStep, key: &Secret) -> Result<ProviderRequest, RequestError> {
        if !is_operation(&job.id) {
            return Err(RequestError::input("id", "it is no operation of Google"));
        }
        ProviderRequest::new(Method::GET, format!("{}/{}", self.base, job.id)).with_key(&API_KEY, "", key)
    }

    fn read_poll(
        &self,
        _: &ProviderJob,
        _: PollStep,
        reply: &ProviderReply<'_>,
    ) -> Result<JobStatus, ProviderFault> {
        let fault = |kind, response: &ProviderResponse<'_>| error::fault(kind, false, response);
        JobStatus::read(reply, fault, output::operation)
    }

    /// Whether an operation of Veo can be canceled is not documented.
    fn cancel(&self, _: &ProviderJob, _: &Secret) -> Result<Option<ProviderRequest>, RequestError> {
        Ok(None)
    }

    fn has_webhook(&self, model: &str) -> bool {
        matches!(GoogleMethod::of(model), Some((_, GoogleMethod::PredictLongRunning)))
    }

    fn webhook_keys(&self, _: &Secret) -> Result<Option<ProviderRequest>, RequestError> {
        Ok(Some(ProviderRequest::new(Method::GET, self.jwks_url.clone())))
    }

    fn read_webhook_keys(&self, body: &[u8]) -> Option<WebhookKeys> {
        JwkSet::parse(body).map(WebhookKeys::Jwks)
    }

    /// A webhook of the project is signed with its secret. One of a single request carries a token
    /// that proves Google as its sender, and is not documented to cover the body: it is confirmed.
    fn receive(&self, webhook: &Webhook<'_>, keys: &WebhookKeys) -> Result<ReceivedWebhook, WebhookError> {
        let delivery_id = match keys {
            WebhookKeys::Jwks(keys) => {
                check_timestamp(header(webhook, "webhook-timestamp")?, webhook.received_at)?;
                keys.verify_token(header(webhook, "webhook-signature")?, webhook.received_at)?;
                None
            }
            keys => Some(standard::verify(webhook, keys)?),
        };
        let body: Value = serde_json::from_slice(webhook.body).map_err(|_| WebhookError::Unreadable)?;
        let data = body.get("data").ok_or(WebhookError::Unreadable)?;
        let named = ["id", "name", "operation"].into_iter().find_map(|name| data.get(name)?.as_str());
        let job_id = named.filter(|name| is_operation(name)).map(str::to_owned);
        let Some(delivery_id) = delivery_id else { return Ok(ReceivedWebhook::Unconfirmed { job_id }) };
        let uri = data.get("video_uri").and_then(Value::as_str);
        let status = match (body.get("type").and_then(Value::as_str), uri) {
            (Some("video.generated"), Some(uri)) => {
                JobStatus::Succeeded(vec![OutputFile::Url(uri.to_owned())])
            }
            (Some("video.generated"), None) => JobStatus::ResultReady,
            _ => return Err(WebhookError::Unreadable),
        };
        let delivery_id = Some(delivery_id.to_owned());
        Ok(ReceivedWebhook::Signed(WebhookReport { delivery_id, job_id, status }))
    }
}

/// Whether a text is the name of an operation: `models/{model}/operations/{id}`.
fn is_operation(name: &str) -> bool {
    is_path(name, 2..=6) && name.contains("operations/")
}
