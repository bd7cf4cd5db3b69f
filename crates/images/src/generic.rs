//! Any provider with a plain submit and poll API, by configuration alone.

mod config;

pub use config::{
    AuthConfig, CancelConfig, FieldConfig, GenericConfig, GenericConfigError, PollConfig, StateConfig,
    SubmitConfig, WebhookVerification,
};

use std::time::Duration;

use http::{HeaderName, Method};
use serde_json::{Map, Value};
use tidegate_core::bounds::RETRY_AFTER_MAX;
use tidegate_upstream::Secret;

use crate::defaults::{Figure, ProviderDefaults};
use crate::fault::{CallKind, FaultCause, ProviderFault};
use crate::provider::Provider;
use crate::request::{JobRequest, ProviderRequest, RequestError, encode, is_path, trimmed};
use crate::response::{ProviderReply, ProviderResponse};
use crate::status::{JobProgress, JobStatus, OutputFile, PollStep, ProviderJob, SubmitOutcome, is_url};
use crate::webhook::{
    ReceivedWebhook, Webhook, WebhookError, WebhookKeys, WebhookReport, check_token, standard,
};

/// The adapter.
#[derive(Clone, Debug)]
pub struct Generic {
    config: GenericConfig,
    auth: HeaderName,
}

impl Generic {
    /// Creates the adapter of a configuration.
    ///
    /// # Errors
    /// When the configuration cannot work; the error names the field.
    pub fn new(mut config: GenericConfig) -> Result<Self, GenericConfigError> {
        config.problems().into_iter().next().map_or(Ok(()), Err)?;
        config.base_url = trimmed(config.base_url);
        let auth = config.auth.header.parse();
        let auth =
            auth.map_err(|_| GenericConfigError { field: "auth.header", problem: "it is no header" })?;
        Ok(Self { config, auth })
    }

    fn call(&self, method: Method, path: &str, key: &Secret) -> Result<ProviderRequest, RequestError> {
        let request = ProviderRequest::new(method, format!("{}{path}", self.config.base_url));
        request.with_key(&self.auth, &self.config.auth.prefix, key)
    }

    fn job_id(&self, body: &Value) -> Option<String> {
        match body.pointer(&self.config.fields.id)? {
            Value::String(id) if !id.is_empty() => Some(id.clone()),
            Value::Number(id) => Some(id.to_string()),
            _ => None,
        }
    }

    fn error(&self, body: &Value) -> Option<String> {
        let message = body.pointer(self.config.fields.error.as_deref()?)?;
        message.as_str().filter(|message| !message.is_empty()).map(str::to_owned)
    }

    fn status(&self, body: &Value) -> Option<JobStatus> {
        let (fields, states) = (&self.config.fields, &self.config.states);
        let word = body.pointer(&fields.status)?.as_str()?;
        let is_one = |words: &[String]| words.iter().any(|known| known == word);
        let number = |place: &Option<String>| body.pointer(place.as_deref()?)?.as_u64();
        let failed = |cause| {
            let message = self.error(body).unwrap_or_else(|| format!("the job ended as {word}"));
            Some(JobStatus::Failed(ProviderFault::new(cause, message)))
        };
        if is_one(&states.queued) || is_one(&states.running) {
            return Some(JobStatus::Running(JobProgress {
                is_running: is_one(&states.running),
                queue_position: number(&fields.queue_position),
                percent: number(&fields.percent).filter(|n| *n <= 100).and_then(|n| u8::try_from(n).ok()),
            }));
        }
        if is_one(&states.succeeded) {
            let found = fields.files.iter().flat_map(|place| find_all(body, place));
            let urls = found.filter_map(Value::as_str).filter(|text| is_url(text));
            return Some(JobStatus::Succeeded(urls.map(|url| OutputFile::Url(url.to_owned())).collect()));
        }
        match () {
            () if is_one(&states.failed) => failed(FaultCause::Provider),
            () if is_one(&states.input) => failed(FaultCause::Input),
            () if is_one(&states.content) => failed(FaultCause::Content),
            () if is_one(&states.canceled) => Some(JobStatus::Canceled),
            () => None,
        }
    }

    fn fault(&self, kind: CallKind, response: &ProviderResponse<'_>) -> ProviderFault {
        let body = response.json();
        let message = self.error(&body).unwrap_or_else(|| response.describe());
        let cause = match kind.cause(response, self.config.throttle_scope) {
            FaultCause::Throttled { after, scope } => {
                let place = self.config.fields.retry_after.as_deref();
                let seconds = place.and_then(|place| body.pointer(place)?.as_f64());
                let wait = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                FaultCause::Throttled { after: wait.map(|wait| wait.min(RETRY_AFTER_MAX)).max(after), scope }
            }
            cause => cause,
        };
        ProviderFault::new(cause, message)
    }

    fn body(&self, job: &JobRequest<'_>) -> Result<Value, RequestError> {
        let submit = &self.config.submit;
        let mut body = match &submit.input_field {
            Some(_) => Value::Object(Map::new()),
            None => job.input.clone(),
        };
        let webhook = job.webhook.map(Value::from);
        let parts = [
            (&submit.input_field, Some(job.input.clone())),
            (&submit.model_field, Some(job.model.into())),
            (&submit.webhook_field, webhook),
        ];
        for (place, value) in parts {
            if let (Some(place), Some(value)) = (place, value) {
                let is_set = set(&mut body, place, value);
                is_set.ok_or_else(|| RequestError::input("input", "it must be an object"))?;
            }
        }
        Ok(body)
    }
}

impl Provider for Generic {
    fn name(&self) -> &str {
        &self.config.name
    }

    fn defaults(&self, _model: &str) -> ProviderDefaults {
        let figure = |value| match value {
            Some(value) => Figure::documented(value, "the provider's configuration"),
            None => Figure::unknown("the provider's configuration does not say"),
        };
        ProviderDefaults::new(figure(self.config.max_concurrent), figure(self.config.rpm), (10, 60))
    }

    fn submit(&self, job: &JobRequest<'_>, key: &Secret) -> Result<ProviderRequest, RequestError> {
        let submit = &self.config.submit;
        if submit.path.contains("{model}") && !is_path(job.model, 1..=6) {
            return Err(RequestError::Model(job.model.to_owned(), "this provider"));
        }
        let mut request = self.call(Method::POST, &submit.path.replace("{model}", job.model), key)?;
        if let (Some(name), Some(webhook)) = (&submit.webhook_query, job.webhook) {
            request = request.with_query(name, webhook);
        }
        if let Some(Ok(name)) = submit.attempt_header.as_deref().map(str::parse::<HeaderName>) {
            request = request.with_header(&name, job.attempt)?;
        }
        Ok(request.with_json(&self.body(job)?))
    }

    fn read_submit(&self, job: &JobRequest<'_>, reply: &ProviderReply<'_>) -> SubmitOutcome {
        SubmitOutcome::read(
            reply,
            |kind, response| self.fault(kind, response),
            |body| {
                let status = self.status(body).unwrap_or(JobStatus::Running(JobProgress::QUEUED));
                Some(SubmitOutcome::of(ProviderJob::new(self.job_id(body)?, job.model), status))
            },
        )
    }

    fn poll(&self, job: &ProviderJob, _: PollStep, key: &Secret) -> Result<ProviderRequest, RequestError> {
        self.call(Method::GET, &self.config.poll.path.replace("{id}", &encode(&job.id)), key)
    }

    fn read_poll(
        &self,
        _: &ProviderJob,
        _: PollStep,
        reply: &ProviderReply<'_>,
    ) -> Result<JobStatus, ProviderFault> {
        JobStatus::read(reply, |kind, response| self.fault(kind, response), |body| self.status(body))
    }

    fn cancel(&self, job: &ProviderJob, key: &Secret) -> Result<Option<ProviderRequest>, RequestError> {
        let Some(cancel) = &self.config.cancel else { return Ok(None) };
        let method = Method::from_bytes(cancel.method.as_bytes()).unwrap_or(Method::POST);
        self.call(method, &cancel.path.replace("{id}", &encode(&job.id)), key).map(Some)
    }

    fn has_webhook(&self, _: &str) -> bool {
        let submit = &self.config.submit;
        submit.webhook_field.is_some() || submit.webhook_query.is_some()
    }

    fn receive(&self, webhook: &Webhook<'_>, keys: &WebhookKeys) -> Result<ReceivedWebhook, WebhookError> {
        let delivery_id = match self.config.webhook {
            WebhookVerification::Token => {
                check_token(webhook, keys)?;
                None
            }
            WebhookVerification::Standard => Some(standard::verify(webhook, keys)?.to_owned()),
        };
        let body: Value = serde_json::from_slice(webhook.body).map_err(|_| WebhookError::Unreadable)?;
        let job_id = self.job_id(&body);
        if delivery_id.is_none() {
            return Ok(ReceivedWebhook::Unconfirmed { job_id });
        }
        let status = self.status(&body).ok_or(WebhookError::Unreadable)?;
        Ok(ReceivedWebhook::Signed(WebhookReport { delivery_id, job_id, status }))
    }
}

/// Every value at a JSON pointer in which `*` stands for every item.
fn find_all<'a>(value: &'a Value, pointer: &str) -> Vec<&'a Value> {
    let mut found = vec![value];
    for part in pointer.split('/').skip(1) {
        found = match part {
            "*" => found.iter().filter_map(|value| value.as_array()).flatten().collect(),
            part => found.iter().filter_map(|value| value.pointer(&format!("/{part}"))).collect(),
        };
    }
    found
}

/// Sets a value at a JSON pointer of objects, which are created where they are missing.
fn set(body: &mut Value, pointer: &str, value: Value) -> Option<()> {
    let mut at = body;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        at = at.as_object_mut()?.entry(part).or_insert_with(|| Value::Object(Map::new()));
    }
    *at = value;
    Some(())
}
