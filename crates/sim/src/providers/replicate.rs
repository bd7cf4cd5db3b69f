//! Replicate's HTTP API: predictions, their webhooks by the Standard Webhooks scheme, and the list
//! by time.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use serde_json::{Value, json};
use tidegate_core::Time;

use super::api::{
    JobView, ProviderApi, ProviderCall, ProviderRefusal, is_authorized, object, parameter, respond,
    seconds_up, text,
};
use super::jobs::{JobEnd, JobState, NewJob};
use super::signature::WebhookSigner;
use crate::timestamp::date_and_time;

/// The longest wait that `Prefer` may ask for.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Replicate.
#[derive(Clone, Copy, Debug)]
pub struct ReplicateApi;

impl ProviderApi for ReplicateApi {
    fn read(&self, request: &Request<Bytes>) -> Result<ProviderCall, ProviderRefusal> {
        if !is_authorized(request, "Bearer") && !is_authorized(request, "Token") {
            return Err(ProviderRefusal::Unauthenticated);
        }
        let path = request.uri().path().strip_prefix("/v1/").ok_or(ProviderRefusal::NotFound)?;
        let parts: Vec<&str> = path.split('/').collect();
        match (request.method(), parts.as_slice()) {
            (&Method::POST, ["predictions"]) => {
                let body = object(request.body())?;
                let version = text(&body, "/version");
                if version.is_empty() {
                    return Err(ProviderRefusal::Missing("version"));
                }
                submit(request, &body, version)
            }
            (&Method::POST, ["models", owner, name, "predictions"]) => {
                submit(request, &object(request.body())?, format!("{owner}/{name}"))
            }
            (&Method::GET, ["predictions"]) => Ok(ProviderCall::List {
                after: parameter(request, "created_after"),
                before: parameter(request, "created_before"),
            }),
            (&Method::GET, ["predictions", id]) => Ok(ProviderCall::Status((*id).to_owned())),
            (&Method::POST, ["predictions", id, "cancel"]) => Ok(ProviderCall::Cancel((*id).to_owned())),
            (&Method::GET, ["webhooks", "default", "secret"]) => Ok(ProviderCall::WebhookKey),
            _ => Err(ProviderRefusal::NotFound),
        }
    }

    fn refused(&self, refusal: &ProviderRefusal) -> Response<Bytes> {
        let problem = |status: u16, title: &str, detail: &str| {
            respond(status, &json!({ "title": title, "detail": detail, "status": status }))
        };
        match refusal {
            ProviderRefusal::Unauthenticated | ProviderRefusal::WrongKey => {
                problem(401, "Unauthenticated", "You did not pass a valid authentication token")
            }
            ProviderRefusal::NotFound => {
                problem(404, "Not found", "The requested resource could not be found.")
            }
            ProviderRefusal::NotJson => problem(400, "Bad request", "The request body is not valid JSON"),
            ProviderRefusal::Missing(field) => {
                let invalid = json!([{ "type": "required", "field": "input", "description": format!("{field} is required") }]);
                let detail = format!("- input: {field} is required\n");
                respond(
                    422,
                    &json!({ "title": "Input validation failed", "detail": detail, "status": 422, "invalid_fields": invalid }),
                )
            }
            // The wait is in the body only: there is no Retry-After.
            ProviderRefusal::Throttled(wait) => {
                let seconds = seconds_up(*wait);
                let detail = format!("Request was throttled. Your rate limit resets in ~{seconds}s.");
                respond(429, &json!({ "detail": detail, "status": 429, "retry_after": seconds }))
            }
            ProviderRefusal::Busy | ProviderRefusal::Failed => {
                problem(500, "Internal server error", "Something went wrong.")
            }
        }
    }

    fn accepted(&self, view: &JobView<'_>) -> Response<Bytes> {
        let unfinished_wait = view.job.spec.wait.is_some() && !view.job.state.is_final();
        respond(if unfinished_wait { 202 } else { 201 }, &prediction(view))
    }

    fn status(&self, view: &JobView<'_>) -> Response<Bytes> {
        respond(200, &prediction(view))
    }

    fn result(&self, view: &JobView<'_>) -> Response<Bytes> {
        self.status(view)
    }

    fn canceled(&self, view: &JobView<'_>, _: JobState) -> Response<Bytes> {
        self.status(view)
    }

    fn listed(&self, views: &[JobView<'_>]) -> Response<Bytes> {
        let results: Vec<Value> = views.iter().map(prediction).collect();
        respond(200, &json!({ "previous": null, "next": null, "results": results }))
    }

    fn webhook_key(&self, signer: &WebhookSigner) -> Response<Bytes> {
        respond(200, &json!({ "key": signer.secret() }))
    }

    fn job_id(&self, _: &NewJob, random: u128) -> String {
        let letters = b"0123456789abcdefghjkmnpqrstvwxyz";
        (0..26).map(|n| char::from(letters[((random >> (n * 4)) & 31) as usize])).collect()
    }

    fn webhook(&self, view: &JobView<'_>) -> Option<Value> {
        Some(prediction(view))
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
        Duration::from_hours(1)
    }
}

/// The headers of Standard Webhooks.
pub(super) fn standard_headers(
    signer: &WebhookSigner,
    id: &str,
    body: &[u8],
    at: Time,
) -> Vec<(HeaderName, HeaderValue)> {
    let timestamp = at.as_millis() / 1_000;
    let headers = [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp.to_string()),
        ("webhook-signature", signer.standard(id, timestamp, body)),
    ];
    headers
        .into_iter()
        .filter_map(|(name, value)| Some((HeaderName::from_static(name), value.parse().ok()?)))
        .collect()
}

fn submit(request: &Request<Bytes>, body: &Value, model: String) -> Result<ProviderCall, ProviderRefusal> {
    let input =
        body.get("input").filter(|input| input.is_object()).ok_or(ProviderRefusal::Missing("input"))?;
    let prompt = text(input, "/prompt");
    if prompt.is_empty() {
        return Err(ProviderRefusal::Missing("prompt"));
    }
    let reports_end = body
        .get("webhook_events_filter")
        .and_then(Value::as_array)
        .is_none_or(|events| events.is_empty() || events.iter().any(|event| event == "completed"));
    let webhook = body.get("webhook").and_then(Value::as_str).filter(|_| reports_end);
    let prefer = request.headers().get("prefer").and_then(|value| value.to_str().ok());
    Ok(ProviderCall::Submit(Box::new(NewJob {
        model,
        input: input.clone(),
        prompt,
        webhook: webhook.map(str::to_owned),
        metadata: None,
        wait: prefer.and_then(prefer_wait),
        is_synchronous: false,
    })))
}

/// Reads `wait` and `wait=1` to `wait=60`; anything else is no wait.
fn prefer_wait(prefer: &str) -> Option<Duration> {
    match prefer.strip_prefix("wait")? {
        "" => Some(WAIT_MAX),
        rest => {
            let seconds = rest.strip_prefix('=')?.parse().ok()?;
            Some(Duration::from_secs(seconds)).filter(|wait| !wait.is_zero() && *wait <= WAIT_MAX)
        }
    }
}

fn prediction(view: &JobView<'_>) -> Value {
    let (job, base) = (view.job, view.base);
    let (status, error) = match job.state {
        JobState::Queued => ("starting", None),
        JobState::Running => ("processing", None),
        JobState::Canceled => ("canceled", None),
        JobState::Ended(JobEnd::Success) => ("succeeded", None),
        JobState::Ended(JobEnd::Fault) => ("failed", Some("Prediction interrupted; please retry (code: PA)")),
        JobState::Ended(JobEnd::Content) => {
            ("failed", Some("NSFW content detected. Try running it again, or try a different prompt."))
        }
        JobState::Ended(JobEnd::Invalid) => ("failed", Some("The input is not valid.")),
    };
    let output = (status == "succeeded").then(|| [view.picture_url()]);
    let time = |at: Option<Time>| at.map(|at| format!("{}Z", date_and_time(at)));
    let total = job.ended_at.map(|ended| ended.since(job.accepted_at).as_secs_f64());
    json!({
        "id": job.id, "model": job.spec.model, "version": "hidden", "input": job.spec.input,
        "output": output, "error": error, "logs": "", "status": status, "source": "api",
        "created_at": time(Some(job.accepted_at)), "started_at": time(job.started_at),
        "completed_at": time(job.ended_at), "data_removed": false,
        "metrics": total.map(|total| json!({ "predict_time": job.run_seconds(), "total_time": total })),
        "urls": {
            "get": format!("{base}/v1/predictions/{}", job.id),
            "cancel": format!("{base}/v1/predictions/{}/cancel", job.id),
            "web": format!("{base}/p/{}", job.id),
        },
    })
}
