//! Google's Gemini API: images in the response itself, videos as long-running operations. Only a
//! success is reported by webhook.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use serde_json::{Value, json};
use tidegate_core::Time;

use super::api::{JobView, ProviderApi, ProviderCall, ProviderRefusal, object, respond, seconds_up, text};
use super::jobs::{JobEnd, JobState, NewJob};
use super::picture::draw;
use super::replicate::standard_headers;
use super::signature::WebhookSigner;

/// How long a caller waits for an image.
const SYNCHRONOUS_WAIT: Duration = Duration::from_secs(120);
/// The wait that a refusal for lack of room asks for.
const BUSY_WAIT: Duration = Duration::from_secs(2);

/// Google.
#[derive(Clone, Copy, Debug)]
pub struct GoogleApi;

impl ProviderApi for GoogleApi {
    fn read(&self, request: &Request<Bytes>) -> Result<ProviderCall, ProviderRefusal> {
        if request.headers().get("x-goog-api-key").is_none_or(HeaderValue::is_empty) {
            return Err(ProviderRefusal::Unauthenticated);
        }
        let path = request.uri().path().strip_prefix("/v1beta/").ok_or(ProviderRefusal::NotFound)?;
        if request.method() == Method::GET {
            let is_operation = path.starts_with("models/") && path.contains("/operations/");
            return if is_operation {
                Ok(ProviderCall::Status(path.to_owned()))
            } else {
                Err(ProviderRefusal::NotFound)
            };
        }
        let called = path.strip_prefix("models/").and_then(|path| path.split_once(':'));
        let (model, method) = called.ok_or(ProviderRefusal::NotFound)?;
        let body = object(request.body())?;
        let (prompt, field) = match method {
            "generateContent" => (text(&body, "/contents/0/parts/0/text"), "contents"),
            "predict" | "predictLongRunning" => (text(&body, "/instances/0/prompt"), "instances"),
            _ => return Err(ProviderRefusal::NotFound),
        };
        if prompt.is_empty() {
            return Err(ProviderRefusal::Missing(field));
        }
        let is_synchronous = method != "predictLongRunning";
        Ok(ProviderCall::Submit(Box::new(NewJob {
            model: format!("{model}:{method}"),
            prompt,
            webhook: body.pointer("/webhookConfig/uris/0").and_then(Value::as_str).map(str::to_owned),
            metadata: body.pointer("/webhookConfig/userMetadata").cloned(),
            wait: is_synchronous.then_some(SYNCHRONOUS_WAIT),
            is_synchronous,
            input: body,
        })))
    }

    fn refused(&self, refusal: &ProviderRefusal) -> Response<Bytes> {
        match refusal {
            ProviderRefusal::Unauthenticated => {
                error(403, "PERMISSION_DENIED", "The request has no API key.")
            }
            ProviderRefusal::WrongKey => wrong_key(),
            ProviderRefusal::NotFound => error(404, "NOT_FOUND", "Requested entity was not found."),
            ProviderRefusal::NotJson => error(400, "INVALID_ARGUMENT", "Invalid JSON payload received."),
            ProviderRefusal::Missing(field) => {
                error(400, "INVALID_ARGUMENT", &format!("* {field}: is not specified"))
            }
            ProviderRefusal::Busy => exhausted(BUSY_WAIT),
            ProviderRefusal::Throttled(wait) => exhausted(*wait),
            ProviderRefusal::Failed => overloaded(),
        }
    }

    fn accepted(&self, view: &JobView<'_>) -> Response<Bytes> {
        if !view.job.spec.is_synchronous {
            return respond(200, &json!({ "name": view.job.id }));
        }
        let is_predict = view.job.spec.model.ends_with(":predict");
        match view.job.state {
            JobState::Ended(JobEnd::Success) => {
                let data = STANDARD.encode(draw(view.seed));
                respond(200, &if is_predict { imagen(&data) } else { gemini(&data) })
            }
            // A refusal of the content is a success without a picture.
            JobState::Ended(JobEnd::Content | JobEnd::Invalid) if is_predict => {
                respond(200, &json!({ "predictions": [{ "raiFilteredReason": "The prompt was filtered." }] }))
            }
            JobState::Ended(JobEnd::Content | JobEnd::Invalid) => {
                respond(200, &json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" } }))
            }
            _ => overloaded(),
        }
    }

    fn status(&self, view: &JobView<'_>) -> Response<Bytes> {
        let name = &view.job.id;
        let done = |field: &str, value: Value| json!({ "name": name, "done": true, field: value });
        let body = match view.job.state {
            JobState::Queued | JobState::Running => json!({ "name": name, "done": false }),
            JobState::Ended(JobEnd::Success) => done("response", video(view)),
            JobState::Ended(JobEnd::Content | JobEnd::Invalid) => done(
                "response",
                json!({ "generateVideoResponse": {
                    "raiMediaFilteredCount": 1, "raiMediaFilteredReasons": ["The prompt was filtered."],
                } }),
            ),
            JobState::Ended(JobEnd::Fault) => {
                done("error", json!({ "code": 13, "message": "Internal error." }))
            }
            JobState::Canceled => done("error", json!({ "code": 1, "message": "Cancelled." })),
        };
        respond(200, &body)
    }

    fn result(&self, view: &JobView<'_>) -> Response<Bytes> {
        self.status(view)
    }

    fn canceled(&self, _: &JobView<'_>, _: JobState) -> Response<Bytes> {
        self.refused(&ProviderRefusal::NotFound)
    }

    fn job_id(&self, spec: &NewJob, random: u128) -> String {
        let model = spec.model.split(':').next().unwrap_or_default();
        format!("models/{model}/operations/{:012x}", random & 0xffff_ffff_ffff)
    }

    fn webhook(&self, view: &JobView<'_>) -> Option<Value> {
        (view.job.state == JobState::Ended(JobEnd::Success)).then(|| {
            let data = json!({
                "id": view.job.id, "video_uri": view.picture_url(), "user_metadata": view.job.spec.metadata,
            });
            json!({ "type": "video.generated", "data": data })
        })
    }

    fn sign(
        &self,
        signer: &WebhookSigner,
        id: &str,
        body: &[u8],
        at: Time,
    ) -> Vec<(HeaderName, HeaderValue)> {
        standard_headers(signer, id, body, at)
    }

    fn keeps_pictures(&self) -> Duration {
        Duration::from_hours(48)
    }
}

fn error(code: u16, status: &str, message: &str) -> Response<Bytes> {
    respond(code, &json!({ "error": { "code": code, "message": message, "status": status } }))
}

fn wrong_key() -> Response<Bytes> {
    let reason = json!([{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com" }]);
    let message = "API key not valid. Please pass a valid API key.";
    respond(
        400,
        &json!({ "error": { "code": 400, "message": message, "status": "INVALID_ARGUMENT", "details": reason } }),
    )
}

fn overloaded() -> Response<Bytes> {
    error(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")
}

fn exhausted(wait: Duration) -> Response<Bytes> {
    let seconds = seconds_up(wait);
    let details = json!([
        { "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_requests",
            "quotaId": "GenerateRequestsPerMinutePerProjectPerModel",
        }] },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s") },
    ]);
    let message = format!("You exceeded your current quota. Please retry in {seconds}s.");
    let error =
        json!({ "code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details });
    respond(429, &json!({ "error": error }))
}

fn gemini(data: &str) -> Value {
    let part = json!({ "inlineData": { "mimeType": "image/png", "data": data } });
    json!({ "candidates": [{ "content": { "role": "model", "parts": [part] }, "finishReason": "STOP", "index": 0 }] })
}

fn imagen(data: &str) -> Value {
    json!({ "predictions": [{ "mimeType": "image/png", "bytesBase64Encoded": data }] })
}

fn video(view: &JobView<'_>) -> Value {
    json!({ "generateVideoResponse": { "generatedSamples": [{ "video": { "uri": view.picture_url() } }] } })
}
