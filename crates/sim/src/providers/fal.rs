//! fal's queue API: a submit is always accepted, problems of the input are found when it runs, and
//! webhooks are signed with Ed25519.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use serde_json::{Value, json};
use tidegate_core::Time;

use super::api::{
    JobView, ProviderApi, ProviderCall, ProviderRefusal, is_authorized, object, parameter, respond, text,
    uuid, with_header,
};
use super::jobs::{JobEnd, JobState, NewJob};
use super::picture::SIZE;
use super::signature::WebhookSigner;

/// The account that webhooks name.
const USER_ID: &str = "github|0000000";
/// Why a prompt is refused.
const FLAGGED: &str =
    "The content could not be processed because it contained material flagged by a content checker.";

/// fal.
#[derive(Clone, Copy, Debug)]
pub struct FalApi;

impl ProviderApi for FalApi {
    fn read(&self, request: &Request<Bytes>) -> Result<ProviderCall, ProviderRefusal> {
        let path = request.uri().path().trim_start_matches('/');
        if request.method() == Method::GET && path == ".well-known/jwks.json" {
            return Ok(ProviderCall::WebhookKey);
        }
        if !is_authorized(request, "Key") {
            return Err(ProviderRefusal::Unauthenticated);
        }
        let parts: Vec<&str> = path.split('/').collect();
        match (request.method(), parts.as_slice()) {
            (&Method::GET, [_, _, "requests", id, "status"]) => Ok(ProviderCall::Status((*id).to_owned())),
            (&Method::GET, [_, _, "requests", id]) => Ok(ProviderCall::Result((*id).to_owned())),
            (&Method::PUT, [_, _, "requests", id, "cancel"]) => Ok(ProviderCall::Cancel((*id).to_owned())),
            (&Method::POST, [owner, alias, ..]) if !owner.is_empty() && !alias.is_empty() => {
                let input = object(request.body())?;
                let prompt = text(&input, "/prompt");
                let (webhook, model) = (parameter(request, "fal_webhook"), path.to_owned());
                let (metadata, wait) = (None, None);
                let spec = NewJob { model, input, prompt, webhook, metadata, wait, is_synchronous: false };
                Ok(ProviderCall::Submit(Box::new(spec)))
            }
            _ => Err(ProviderRefusal::NotFound),
        }
    }

    fn refused(&self, refusal: &ProviderRefusal) -> Response<Bytes> {
        let detail = |status, detail: &str| respond(status, &json!({ "detail": detail }));
        match refusal {
            ProviderRefusal::Unauthenticated | ProviderRefusal::WrongKey => {
                detail(401, "Authentication is required to access this application.")
            }
            ProviderRefusal::NotFound => detail(404, "Request not found"),
            ProviderRefusal::NotJson => detail(422, "The body is not valid JSON"),
            ProviderRefusal::Missing(field) => respond(422, &missing(field)),
            // No Retry-After, and nothing in the body that says how long.
            ProviderRefusal::Throttled(_) => detail(429, "Too many requests"),
            ProviderRefusal::Busy | ProviderRefusal::Failed => fault(),
        }
    }

    fn accepted(&self, view: &JobView<'_>) -> Response<Bytes> {
        let mut body = urls(view);
        body["status"] = "IN_QUEUE".into();
        body["queue_position"] = view.position.into();
        respond(200, &body)
    }

    fn status(&self, view: &JobView<'_>) -> Response<Bytes> {
        let mut body = urls(view);
        match view.job.state {
            JobState::Queued => {
                body["status"] = "IN_QUEUE".into();
                body["queue_position"] = view.position.into();
            }
            JobState::Running => body["status"] = "IN_PROGRESS".into(),
            JobState::Ended(_) | JobState::Canceled => {
                body["status"] = "COMPLETED".into();
                body["metrics"] = json!({ "inference_time": view.job.run_seconds() });
            }
        }
        respond(if view.job.state.is_final() { 200 } else { 202 }, &body)
    }

    fn result(&self, view: &JobView<'_>) -> Response<Bytes> {
        match view.job.state {
            JobState::Queued | JobState::Running => {
                respond(400, &json!({ "detail": "Request is still in progress" }))
            }
            JobState::Canceled => respond(400, &json!({ "detail": "Request was cancelled" })),
            JobState::Ended(JobEnd::Success) => respond(200, &output(view)),
            JobState::Ended(JobEnd::Fault) => fault(),
            JobState::Ended(end) => with_header(respond(422, &refusal(end)), "x-fal-retryable", "false"),
        }
    }

    fn canceled(&self, _: &JobView<'_>, before: JobState) -> Response<Bytes> {
        if before.is_final() {
            respond(400, &json!({ "status": "ALREADY_COMPLETED" }))
        } else {
            respond(202, &json!({ "status": "CANCELLATION_REQUESTED" }))
        }
    }

    fn webhook_key(&self, signer: &WebhookSigner) -> Response<Bytes> {
        let key = json!({ "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": "sim", "x": signer.public_key() });
        respond(200, &json!({ "keys": [key] }))
    }

    fn job_id(&self, _: &NewJob, random: u128) -> String {
        uuid(random)
    }

    fn webhook(&self, view: &JobView<'_>) -> Option<Value> {
        let id = &view.job.id;
        let failed = |status: u16, payload: Value| {
            let error = format!("Invalid status code: {status}");
            json!({ "request_id": id, "gateway_request_id": id, "status": "ERROR", "error": error, "payload": payload })
        };
        match view.job.state {
            JobState::Ended(JobEnd::Success) => Some(
                json!({ "request_id": id, "gateway_request_id": id, "status": "OK", "payload": output(view) }),
            ),
            JobState::Ended(JobEnd::Fault) => Some(failed(500, fault_body())),
            JobState::Ended(end) => Some(failed(422, refusal(end))),
            _ => None,
        }
    }

    fn sign(
        &self,
        signer: &WebhookSigner,
        id: &str,
        body: &[u8],
        at: Time,
    ) -> Vec<(HeaderName, HeaderValue)> {
        let timestamp = at.as_millis() / 1_000;
        let headers = [
            ("x-fal-webhook-request-id", id.to_owned()),
            ("x-fal-webhook-user-id", USER_ID.to_owned()),
            ("x-fal-webhook-timestamp", timestamp.to_string()),
            ("x-fal-webhook-signature", signer.ed25519(id, USER_ID, timestamp, body)),
        ];
        headers
            .into_iter()
            .filter_map(|(name, value)| Some((HeaderName::from_static(name), value.parse().ok()?)))
            .collect()
    }

    fn keeps_pictures(&self) -> Duration {
        Duration::from_hours(7 * 24)
    }
}

/// The URLs of a request. They drop what comes after owner and alias.
fn urls(view: &JobView<'_>) -> Value {
    let app: Vec<&str> = view.job.spec.model.split('/').take(2).collect();
    let url = format!("{}/{}/requests/{}", view.base, app.join("/"), view.job.id);
    json!({
        "request_id": view.job.id, "response_url": url,
        "status_url": format!("{url}/status"), "cancel_url": format!("{url}/cancel"),
    })
}

fn output(view: &JobView<'_>) -> Value {
    let image =
        json!({ "url": view.picture_url(), "width": SIZE, "height": SIZE, "content_type": "image/png" });
    let seed = view.seed >> 32;
    json!({ "images": [image], "prompt": view.job.spec.prompt, "seed": seed, "has_nsfw_concepts": [false] })
}

fn missing(field: &str) -> Value {
    json!({ "detail": [{ "loc": ["body", field], "msg": "Field required", "type": "missing", "input": {} }] })
}

fn refusal(end: JobEnd) -> Value {
    match end {
        JobEnd::Content => json!({ "detail": [{
            "loc": ["body", "prompt"], "msg": FLAGGED, "type": "content_policy_violation",
        }] }),
        _ => missing("prompt"),
    }
}

fn fault_body() -> Value {
    json!({ "detail": "The runner disconnected", "error_type": "runner_disconnected" })
}

fn fault() -> Response<Bytes> {
    let response = with_header(respond(500, &fault_body()), "x-fal-error-type", "runner_disconnected");
    with_header(response, "x-fal-retryable", "true")
}
