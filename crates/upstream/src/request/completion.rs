//! What a submission says about a job that ends elsewhere: where the upstream is told how to call
//! back, how it is polled, and how long it may take.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tidegate_core::bounds::AWAIT_MAX;

use super::json_pointer;
use super::{Body, HttpRequest};
use crate::port::FieldRefusal;

/// The header with the callback URL, unless the submission names another place.
pub const URL_HEADER: &str = "tidegate-callback-url";
/// The header with the completion token, unless the submission names another place.
pub const TOKEN_HEADER: &str = "tidegate-completion-token";
/// Most conditions of a poll, and most values of each.
const CONDITIONS_MAX: usize = 16;

/// How a job ends.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompletionRules {
    /// Where the upstream is told how to call back.
    #[serde(default)]
    pub callback: Option<Callback>,
    /// How the upstream is asked.
    #[serde(default)]
    pub poll: Option<PollRules>,
    /// How long the job may take, in seconds.
    #[serde(default = "default_timeout_s")]
    pub timeout_s: u64,
}

const fn default_timeout_s() -> u64 {
    tidegate_core::bounds::AWAIT_DEFAULT.as_secs()
}

/// Whether the upstream calls back, and where it is told how.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Callback {
    /// In two headers, or not at all.
    Default(bool),
    /// Where the submission says.
    Places(CallbackPlaces),
}

/// Where the callback URL and the token are put: a JSON pointer into the body, or else the name of
/// a header. Without a place for the token, the URL contains it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallbackPlaces {
    /// The place of the URL.
    pub url: String,
    /// The place of the token.
    #[serde(default)]
    pub token: Option<String>,
}

/// How a job is polled.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PollRules {
    /// The path to read; `{/id}` stands for the value at that JSON pointer of the response to the
    /// submission.
    pub path: String,
    /// The seconds between two polls.
    #[serde(default = "default_every_s")]
    pub every_s: u64,
    /// The values by which a job has succeeded, by JSON pointer.
    pub done: Conditions,
    /// The values by which a job has failed, by JSON pointer.
    #[serde(default)]
    pub failed: Conditions,
}

const fn default_every_s() -> u64 {
    5
}

/// Values by JSON pointer: all pointers must have one of their values.
pub type Conditions = BTreeMap<String, Vec<Value>>;

impl CompletionRules {
    /// Parses and validates what a submission says.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn parse(json: &str, request: &HttpRequest) -> Result<Self, FieldRefusal> {
        let rules: Self = serde_json::from_str(json).map_err(|error| {
            let message = format!("The completion cannot be read: {error}.");
            FieldRefusal::new("completion", message)
        })?;
        rules.validate(request)?;
        Ok(rules)
    }

    fn validate(&self, request: &HttpRequest) -> Result<(), FieldRefusal> {
        let wrong =
            |field: &str, message: String| Err(FieldRefusal::new(format!("completion.{field}"), message));
        let most = AWAIT_MAX.as_secs();
        if !(1..=most).contains(&self.timeout_s) {
            return wrong("timeout_s", format!("It must be 1 to {most} seconds."));
        }
        if self.callback_places().is_none() && self.poll.is_none() {
            let message = "Either a callback or a poll must say how the job ends.";
            return Err(FieldRefusal::new("completion", message));
        }
        let places = self.callback_places();
        for place in places.iter().flat_map(|places| std::iter::once(&places.url).chain(&places.token)) {
            check_place(place, request)
                .map_err(|message| FieldRefusal::new("completion.callback", message))?;
        }
        let Some(poll) = &self.poll else { return Ok(()) };
        if !(1..=most).contains(&poll.every_s) {
            return wrong("poll.every_s", format!("It must be 1 to {most} seconds."));
        }
        if !poll.path.starts_with('/') || template_pointers(&poll.path).is_none() {
            return wrong("poll.path", "It must start with / and close every {/pointer}.".to_owned());
        }
        for (field, conditions) in [("poll.done", &poll.done), ("poll.failed", &poll.failed)] {
            let is_small = conditions.len() <= CONDITIONS_MAX
                && conditions.values().all(|values| (1..=CONDITIONS_MAX).contains(&values.len()));
            if !is_small || conditions.keys().any(|pointer| !pointer.starts_with('/')) {
                let message = format!(
                    "It must list 1 to {CONDITIONS_MAX} values for each of up to {CONDITIONS_MAX} pointers, as in {{\"/status\":[\"succeeded\"]}}."
                );
                return wrong(field, message);
            }
        }
        if poll.done.is_empty() {
            return wrong("poll.done", "It must say by which values the job has succeeded.".to_owned());
        }
        Ok(())
    }

    /// Where the upstream is told how to call back, if it is.
    #[must_use]
    pub fn callback_places(&self) -> Option<CallbackPlaces> {
        match self.callback.as_ref()? {
            Callback::Default(false) => None,
            Callback::Default(true) => {
                Some(CallbackPlaces { url: URL_HEADER.into(), token: Some(TOKEN_HEADER.into()) })
            }
            Callback::Places(places) => Some(places.clone()),
        }
    }

    /// Tells the upstream how to call back.
    ///
    /// # Errors
    /// When a place does not exist.
    pub fn place_callback(&self, request: &mut HttpRequest, url: &str, token: &str) -> Result<(), String> {
        let Some(places) = self.callback_places() else { return Ok(()) };
        match &places.token {
            Some(place) => {
                put(request, &places.url, url)?;
                put(request, place, token)
            }
            None => put(request, &places.url, &format!("{url}?token={token}")),
        }
    }

    /// How long the job may take.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }
}

impl PollRules {
    /// The time between two polls.
    #[must_use]
    pub const fn every(&self) -> Duration {
        Duration::from_secs(self.every_s)
    }

    /// Whether a response says that the job succeeded (`true`) or failed (`false`); `None` while it
    /// is not finished.
    #[must_use]
    pub fn verdict(&self, response: &Value) -> Option<bool> {
        let holds = |conditions: &Conditions| {
            let has = |(pointer, values): (&String, &Vec<Value>)| {
                response.pointer(pointer).is_some_and(|found| values.contains(found))
            };
            !conditions.is_empty() && conditions.iter().all(has)
        };
        if holds(&self.done) {
            return Some(true);
        }
        holds(&self.failed).then_some(false)
    }

    /// The path to read and the id of the job, from the response to the submission; `None` when the
    /// response has no such values.
    #[must_use]
    pub fn resolve(&self, response: &Value) -> Option<(String, Option<String>)> {
        let (mut path, mut id) = (self.path.clone(), None);
        for pointer in template_pointers(&self.path)? {
            let value = match response.pointer(&pointer)? {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            if value.is_empty() || value == "." || value == ".." {
                return None;
            }
            let encoded: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
            path = path.replacen(&format!("{{{pointer}}}"), &encoded.replace('+', "%20"), 1);
            id.get_or_insert(value);
        }
        Some((path, id))
    }
}

/// The pointers in a template, in order; `None` when a brace is not closed.
fn template_pointers(template: &str) -> Option<Vec<String>> {
    let mut pointers = Vec::new();
    let mut rest = template;
    while let Some((_, after)) = rest.split_once('{') {
        let (pointer, after) = after.split_once('}')?;
        if !pointer.starts_with('/') {
            return None;
        }
        pointers.push(pointer.to_owned());
        rest = after;
    }
    Some(pointers)
}

fn check_place(place: &str, request: &HttpRequest) -> Result<(), String> {
    if request.header(place).is_some() {
        return Err(format!("The header {place:?} is set by the request itself."));
    }
    put(&mut request.clone(), place, "x")
}

/// Puts a value into a header, or at a JSON pointer of the body.
fn put(request: &mut HttpRequest, place: &str, value: &str) -> Result<(), String> {
    if !place.starts_with('/') {
        request.headers.push((place.to_owned(), value.to_owned()));
        return super::header::validate_form(&request.headers);
    }
    let Body::Json(body) = &request.body else {
        return Err(format!("There is no JSON body to put {place:?} into."));
    };
    request.body = Body::Json(json_pointer::set_text(body, place, value)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: &str) -> HttpRequest {
        let json = format!(r#"{{"method":"POST","path":"/jobs","body":{body}}}"#);
        serde_json::from_str(&json).unwrap()
    }

    fn parse(json: &str) -> Result<CompletionRules, FieldRefusal> {
        CompletionRules::parse(json, &request("{}"))
    }

    #[test]
    fn the_callback_is_put_where_the_submission_says() {
        let table = [
            (r#"{"callback":true}"#, vec![(URL_HEADER, "U"), (TOKEN_HEADER, "T")], r#"{"a": 1.10}"#),
            (r#"{"callback":{"url":"X-Url"}}"#, vec![("X-Url", "U?token=T")], r#"{"a": 1.10}"#),
            (
                r#"{"callback":{"url":"/hook/url","token":"X-Token"}}"#,
                vec![("X-Token", "T")],
                r#"{"a":1.10,"hook":{"url":"U"}}"#,
            ),
            (r#"{"callback":{"url":"/a"}}"#, vec![], r#"{"a":"U?token=T"}"#),
        ];
        for (json, headers, body) in table {
            let mut request = request(r#"{"a": 1.10}"#);
            let rules = CompletionRules::parse(json, &request).unwrap();
            rules.place_callback(&mut request, "U", "T").unwrap();
            let found: Vec<_> = request.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
            assert_eq!(found, headers, "{json}");
            assert_eq!(request.body.clone().into_bytes(), body, "{json}");
        }
    }

    #[test]
    fn a_poll_reads_the_path_and_the_state_from_responses() {
        let poll = r#"{"poll":{"path":"/jobs/{/id}/of/{/owner/name}","done":{"/s":["ok",1]},"failed":{"/s":["bad"]}}}"#;
        let poll = parse(poll).unwrap().poll.unwrap();
        let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let resolved = poll.resolve(&json(r#"{"id":"a/b c","owner":{"name":7}}"#));
        assert_eq!(resolved, Some(("/jobs/a%2Fb%20c/of/7".to_owned(), Some("a/b c".to_owned()))));
        for missing in ["{}", r#"{"id":"..","owner":{"name":7}}"#, r#"{"id":{},"owner":{"name":7}}"#] {
            assert_eq!(poll.resolve(&json(missing)), None, "{missing}");
        }
        let table =
            [(r#"{"s":"ok"}"#, Some(true)), (r#"{"s":1}"#, Some(true)), (r#"{"s":"bad"}"#, Some(false))];
        for (text, wanted) in table.into_iter().chain([(r#"{"s":"running"}"#, None), ("[]", None)]) {
            assert_eq!(poll.verdict(&json(text)), wanted, "{text}");
        }
    }

    #[test]
    fn mistakes_are_told_by_field() {
        let table = [
            ("{}", "completion"),
            (r#"{"callback":false}"#, "completion"),
            (r#"{"callback":true,"often":1}"#, "completion"),
            (r#"{"callback":true,"timeout_s":0}"#, "completion.timeout_s"),
            (r#"{"callback":true,"timeout_s":99999999}"#, "completion.timeout_s"),
            (r#"{"callback":{"url":"not a header"}}"#, "completion.callback"),
            (r#"{"callback":{"url":"/x","token":"host"}}"#, "completion.callback"),
            (r#"{"poll":{"path":"jobs","done":{"/s":[1]}}}"#, "completion.poll.path"),
            (r#"{"poll":{"path":"/jobs/{/id","done":{"/s":[1]}}}"#, "completion.poll.path"),
            (r#"{"poll":{"path":"/jobs","done":{}}}"#, "completion.poll.done"),
            (r#"{"poll":{"path":"/jobs","done":{"s":[1]}}}"#, "completion.poll.done"),
            (r#"{"poll":{"path":"/jobs","done":{"/s":[1]},"failed":{"/s":[]}}}"#, "completion.poll.failed"),
            (r#"{"poll":{"path":"/jobs","done":{"/s":[1]},"every_s":0}}"#, "completion.poll.every_s"),
        ];
        for (json, field) in table {
            assert_eq!(parse(json).unwrap_err().field, field, "{json}");
        }
        let text = CompletionRules::parse(r#"{"callback":{"url":"/x"}}"#, &request("\"text\""));
        assert_eq!(text.unwrap_err().field, "completion.callback", "there is no JSON body");
    }
}
