//! Higgsfield's API: a request is queued and shown by its status; only a queued one can be
//! canceled; webhooks are not signed.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use serde_json::{Value, json};
use tidegate_core::Time;

use super::api::{
    JobView, ProviderApi, ProviderCall, ProviderRefusal, is_authorized, object, parameter, respond, text,
    uuid,
};
use super::jobs::{JobEnd, JobState, NewJob};
use super::signature::WebhookSigner;

/// Higgsfield.
#[derive(Clone, Copy, Debug)]
pub struct HiggsfieldApi;

impl ProviderApi for HiggsfieldApi {
    fn read(&self, request: &Request<Bytes>) -> Result<ProviderCall, ProviderRefusal> {
        if !is_authorized(request, "Key") {
            return Err(ProviderRefusal::Unauthenticated);
        }
        let path = request.uri().path().trim_start_matches('/');
        let parts: Vec<&str> = path.split('/').collect();
        match (request.method(), parts.as_slice()) {
            (&Method::GET, ["requests", id, "status"]) => Ok(ProviderCall::Status((*id).to_owned())),
            (&Method::POST, ["requests", id, "cancel"]) => Ok(ProviderCall::Cancel((*id).to_owned())),
            (&Method::POST, [first, ..]) if !first.is_empty() && *first != "requests" => {
                let input = object(request.body())?;
                let prompt = text(&input, "/prompt");
                if prompt.is_empty() {
                    return Err(ProviderRefusal::Missing("prompt"));
                }
                let (webhook, model) = (parameter(request, "hf_webhook"), path.to_owned());
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
                detail(401, "Invalid credentials")
            }
            ProviderRefusal::NotFound => detail(404, "Not found"),
            ProviderRefusal::NotJson => detail(400, "The body is not valid JSON"),
            ProviderRefusal::Missing(field) => {
                respond(422, &json!({ "detail": [{ "loc": ["body", field], "msg": "Field required" }] }))
            }
            ProviderRefusal::Throttled(_) => detail(429, "Too many requests"),
            ProviderRefusal::Busy | ProviderRefusal::Failed => detail(500, "Internal server error"),
        }
    }

    fn accepted(&self, view: &JobView<'_>) -> Response<Bytes> {
        // Whatever its state is by now, a submit is answered as queued.
        let mut body = shown(view);
        body["status"] = "queued".into();
        for field in ["images", "error"] {
            body.as_object_mut().and_then(|body| body.remove(field));
        }
        respond(200, &body)
    }

    fn status(&self, view: &JobView<'_>) -> Response<Bytes> {
        respond(200, &shown(view))
    }

    fn result(&self, view: &JobView<'_>) -> Response<Bytes> {
        self.status(view)
    }

    fn canceled(&self, _: &JobView<'_>, before: JobState) -> Response<Bytes> {
        if before == JobState::Queued {
            respond(202, &json!({}))
        } else {
            respond(400, &json!({ "detail": "Only a queued request can be canceled" }))
        }
    }

    fn cancels_running(&self) -> bool {
        false
    }

    fn job_id(&self, _: &NewJob, random: u128) -> String {
        uuid(random)
    }

    fn webhook(&self, view: &JobView<'_>) -> Option<Value> {
        matches!(view.job.state, JobState::Ended(_)).then(|| shown(view))
    }

    fn sign(&self, _: &WebhookSigner, _: &str, _: &[u8], _: Time) -> Vec<(HeaderName, HeaderValue)> {
        Vec::new()
    }

    fn keeps_pictures(&self) -> Duration {
        Duration::from_hours(7 * 24)
    }
}

fn shown(view: &JobView<'_>) -> Value {
    let (id, base) = (&view.job.id, view.base);
    let mut body = json!({
        "request_id": id,
        "status_url": format!("{base}/requests/{id}/status"),
        "cancel_url": format!("{base}/requests/{id}/cancel"),
    });
    body["status"] = match view.job.state {
        JobState::Queued => "queued",
        JobState::Running => "in_progress",
        JobState::Canceled => "canceled",
        JobState::Ended(JobEnd::Success) => "completed",
        JobState::Ended(JobEnd::Content) => "nsfw",
        JobState::Ended(JobEnd::Fault | JobEnd::Invalid) => "failed",
    }
    .into();
    match view.job.state {
        JobState::Ended(JobEnd::Success) => body["images"] = json!([{ "url": view.picture_url() }]),
        JobState::Ended(JobEnd::Fault) => body["error"] = "Generation failed".into(),
        _ => {}
    }
    body
}
