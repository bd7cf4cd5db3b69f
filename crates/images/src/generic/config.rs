//! The configuration of a generic provider, and the check that it can work.

use http::{HeaderName, HeaderValue, Method};
use serde::Deserialize;

use crate::fault::ThrottleScope;

/// A provider with a plain API: one call submits, another polls. Places in JSON are JSON pointers,
/// in which `*` stands for every item.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenericConfig {
    /// The provider's name.
    pub name: String,
    /// The base URL.
    pub base_url: String,
    /// Where the credential goes.
    #[serde(default)]
    pub auth: AuthConfig,
    /// How a job is submitted.
    pub submit: SubmitConfig,
    /// How a job is polled.
    pub poll: PollConfig,
    /// How a job is canceled, if it can be.
    pub cancel: Option<CancelConfig>,
    /// Where responses and webhooks have what they say.
    pub fields: FieldConfig,
    /// The words of the status.
    pub states: StateConfig,
    /// How webhooks are verified.
    #[serde(default)]
    pub webhook: WebhookVerification,
    /// Whose limit a 429 is about.
    #[serde(default = "GenericConfig::key")]
    pub throttle_scope: ThrottleScope,
    /// How many jobs run at once, if that is known.
    pub max_concurrent: Option<u32>,
    /// How many submits a minute allows, if that is known.
    pub rpm: Option<u32>,
}

/// Where the credential goes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthConfig {
    /// The header.
    pub header: String,
    /// What comes before the credential.
    #[serde(default)]
    pub prefix: String,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self { header: "authorization".into(), prefix: "Bearer ".into() }
    }
}

/// How a job is submitted: by `POST`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmitConfig {
    /// The path, with `{model}` where it names the model.
    pub path: String,
    /// Where the body has the input; without it the input is the body.
    pub input_field: Option<String>,
    /// Where the body has the model.
    pub model_field: Option<String>,
    /// Where the body has the URL of the webhook.
    pub webhook_field: Option<String>,
    /// The parameter of the query that has it instead.
    pub webhook_query: Option<String>,
    /// The header with the id of the attempt.
    pub attempt_header: Option<String>,
}

/// How a job is polled: by `GET`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PollConfig {
    /// The path, with `{id}`.
    pub path: String,
}

/// How a job is canceled.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelConfig {
    /// The method.
    pub method: String,
    /// The path, with `{id}`.
    pub path: String,
}

/// Where responses and webhooks have what they say.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldConfig {
    /// The job's id.
    pub id: String,
    /// The status.
    pub status: String,
    /// The URLs of the files.
    pub files: Vec<String>,
    /// The message of an error.
    pub error: Option<String>,
    /// How many jobs wait before this one.
    pub queue_position: Option<String>,
    /// How much is done, from 0 to 100.
    pub percent: Option<String>,
    /// How many seconds a 429 asks to wait, where it has no `Retry-After`.
    pub retry_after: Option<String>,
}

/// The words of the status. A word that is not here leaves the state unknown.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StateConfig {
    /// It waits.
    pub queued: Vec<String>,
    /// It runs.
    pub running: Vec<String>,
    /// It succeeded.
    pub succeeded: Vec<String>,
    /// It failed by the provider's fault.
    pub failed: Vec<String>,
    /// It failed by its input.
    pub input: Vec<String>,
    /// A content filter refused it.
    pub content: Vec<String>,
    /// It was canceled.
    pub canceled: Vec<String>,
}

/// How webhooks are verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookVerification {
    /// By the token in the URL, and confirmed by a poll.
    #[default]
    Token,
    /// By Standard Webhooks.
    Standard,
}

/// A field of the configuration that cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct GenericConfigError {
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl GenericConfig {
    const fn key() -> ThrottleScope {
        ThrottleScope::Key
    }

    /// Returns everything that cannot work.
    #[must_use]
    pub fn problems(&self) -> Vec<GenericConfigError> {
        let is_name = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        let has_id = |path: &str| is_path_template(path) && path.contains("{id}");
        let is_header = |name: &str| name.parse::<HeaderName>().is_ok();
        let (submit, cancel) = (&self.submit, self.cancel.as_ref());
        let places = [&self.fields.id, &self.fields.status].into_iter().chain(&self.fields.files);
        let optional = [
            &submit.input_field,
            &submit.model_field,
            &submit.webhook_field,
            &self.fields.error,
            &self.fields.queue_position,
            &self.fields.percent,
            &self.fields.retry_after,
        ];
        let mut places = places.chain(optional.into_iter().flatten());
        let names_model = submit.path.contains("{model}") || submit.model_field.is_some();
        let problems = [
            ("name", is_name(&self.name), "it must have a name without spaces"),
            ("base_url", is_base(&self.base_url), "it must be a URL of http or https"),
            ("auth.header", is_header(&self.auth.header), "it must be the name of a header"),
            ("auth.prefix", HeaderValue::from_str(&self.auth.prefix).is_ok(), "no header may have it"),
            ("submit.path", is_path_template(&submit.path), "it must start with a slash"),
            ("submit", names_model, "path or model_field must name the model"),
            (
                "submit.attempt_header",
                submit.attempt_header.as_deref().is_none_or(is_header),
                "it must be the name of a header",
            ),
            (
                "submit.webhook_query",
                submit.webhook_query.as_deref().is_none_or(is_name),
                "it must be a name",
            ),
            ("poll.path", has_id(&self.poll.path), "it must start with a slash and have {id}"),
            (
                "cancel.path",
                cancel.is_none_or(|cancel| has_id(&cancel.path)),
                "it must start with a slash and have {id}",
            ),
            (
                "cancel.method",
                cancel.is_none_or(|cancel| Method::from_bytes(cancel.method.as_bytes()).is_ok()),
                "it must be a method",
            ),
            (
                "fields",
                places.all(|place| place.starts_with('/')),
                "a place is a JSON pointer: it starts with a slash",
            ),
            ("fields.files", !self.fields.files.is_empty(), "it must have a place"),
            ("states.succeeded", !self.states.succeeded.is_empty(), "it must have a word"),
        ];
        let wrong = problems.into_iter().filter(|(_, is_right, _)| !is_right);
        wrong.map(|(field, _, problem)| GenericConfigError { field, problem }).collect()
    }
}

fn is_base(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_graphic() && !b"?#@".contains(&b))
    })
}

fn is_path_template(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && b != b'#')
}
