//! What a submission says about a job that ends elsewhere: where the upstream is told how to call
//! back, how it is polled, and how long it may take.

mod conditions;
mod shape;

use std::time::Duration;

use serde::Deserialize;
use tidegate_core::bounds::AWAIT_MAX;

pub use conditions::{Conditions, EndConditions};

use super::header::NEVER_STORED;
use super::json_pointer;
use super::{Body, HttpRequest, path};
use crate::port::FieldRefusal;

/// The header with the callback URL, unless the submission names another place.
pub const URL_HEADER: &str = "tidegate-callback-url";
/// The header with the completion token, unless the submission names another place.
pub const TOKEN_HEADER: &str = "tidegate-completion-token";

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
    /// The values of a callback by which a job has succeeded; by default those of the poll.
    #[serde(default)]
    pub done: Conditions,
    /// The values of a callback by which a job has failed.
    #[serde(default)]
    pub failed: Conditions,
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

impl CompletionRules {
    /// Parses and validates what a submission says.
    ///
    /// # Errors
    /// Names the first invalid field.
    pub fn parse(json: &str, request: &HttpRequest) -> Result<Self, FieldRefusal> {
        Self::parse_all(json, request).map_err(|mut problems| problems.swap_remove(0))
    }

    /// The same, with everything that is wrong. What its fields hold is only checked when they are
    /// of the right types.
    ///
    /// # Errors
    /// Names all invalid fields; never empty.
    pub fn parse_all(json: &str, request: &HttpRequest) -> Result<Self, Vec<FieldRefusal>> {
        let rules: Self = serde_json::from_str(json).map_err(|_| shape::problems(json))?;
        let mut problems = Vec::new();
        rules.validate(request, &mut problems);
        if problems.is_empty() { Ok(rules) } else { Err(problems) }
    }

    fn validate(&self, request: &HttpRequest, problems: &mut Vec<FieldRefusal>) {
        let most = AWAIT_MAX.as_secs();
        if !(1..=most).contains(&self.timeout_s) {
            problems.push(must("timeout_s", &format!("be 1 to {most} seconds")));
        }
        let places = self.callback_places();
        if places.is_none() && self.poll.is_none() {
            let message = "Either a callback or a poll must say how the job ends.";
            problems.push(FieldRefusal::new("completion", message));
        }
        for place in places.iter().flat_map(|places| std::iter::once(&places.url).chain(&places.token)) {
            problems.extend(check_place(place, request).err().map(|message| refuse("callback", message)));
        }
        if let Some(CallbackPlaces { url, token: Some(token), .. }) = &places
            && exclude_each_other(url, token)
        {
            let message = format!("The URL at {url:?} and the token at {token:?} exclude each other.");
            problems.push(refuse("callback", message));
        }
        if let Some(places) = places.filter(|places| !places.done.is_empty() || !places.failed.is_empty()) {
            problems.extend(end_problem("callback", places.ends()));
        }
        if let Some(poll) = &self.poll {
            self.validate_poll(poll, problems);
        }
    }

    fn validate_poll(&self, poll: &PollRules, problems: &mut Vec<FieldRefusal>) {
        let most = AWAIT_MAX.as_secs();
        if !(1..=most).contains(&poll.every_s) {
            problems.push(must("poll.every_s", &format!("be 1 to {most} seconds")));
        } else if self.callback_places().is_none() && poll.every_s >= self.timeout_s {
            let words = format!("be less than timeout_s, {}: nothing would be polled", self.timeout_s);
            problems.push(must("poll.every_s", &words));
        }
        match template_pointers(&poll.path).filter(|_| poll.path.starts_with('/')) {
            Some(pointers) => {
                let fill = |path: String, pointer: &String| path.replacen(&format!("{{{pointer}}}"), "x", 1);
                let filled = pointers.iter().fold(poll.path.clone(), fill);
                problems.extend(path::validate(&filled).err().map(|message| refuse("poll.path", message)));
            }
            None => problems.push(must("poll.path", "start with / and close every {/pointer}")),
        }
        problems.extend(end_problem("poll", poll.ends()));
    }

    /// Where the upstream is told how to call back, if it is.
    #[must_use]
    pub fn callback_places(&self) -> Option<CallbackPlaces> {
        match self.callback.as_ref()? {
            Callback::Default(false) => None,
            Callback::Default(true) => {
                let (url, token) = (URL_HEADER.into(), Some(TOKEN_HEADER.into()));
                Some(CallbackPlaces { url, token, done: Conditions::new(), failed: Conditions::new() })
            }
            Callback::Places(places) => Some(places.clone()),
        }
    }

    /// The values by which a callback in the service's own format says that the job has ended;
    /// `None` when nothing tells them.
    #[must_use]
    pub fn callback_ends(&self) -> Option<EndConditions<'_>> {
        match &self.callback {
            Some(Callback::Places(places)) if !places.done.is_empty() => Some(places.ends()),
            _ => self.poll.as_ref().map(PollRules::ends),
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

impl CallbackPlaces {
    const fn ends(&self) -> EndConditions<'_> {
        EndConditions { done: &self.done, failed: &self.failed }
    }
}

impl PollRules {
    /// The time between two polls.
    #[must_use]
    pub const fn every(&self) -> Duration {
        Duration::from_secs(self.every_s)
    }

    /// The values of a response by which the job has ended.
    #[must_use]
    pub const fn ends(&self) -> EndConditions<'_> {
        EndConditions { done: &self.done, failed: &self.failed }
    }

    /// The path to read and the id of the job, from the response to the submission; `None` when the
    /// response has no such values.
    #[must_use]
    pub fn resolve(&self, response: &str) -> Option<(String, Option<String>)> {
        let (mut path, mut id) = (self.path.clone(), None);
        for pointer in template_pointers(&self.path)? {
            // A number stays as it is written: rounded, it would be another job.
            let value = match json_pointer::get(response, &pointer)? {
                text if text.starts_with('"') => serde_json::from_str(text).ok()?,
                number if number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => number.to_owned(),
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

fn refuse(field: &str, message: String) -> FieldRefusal {
    FieldRefusal::new(format!("completion.{field}"), message)
}

fn end_problem(field: &str, ends: EndConditions<'_>) -> Option<FieldRefusal> {
    ends.validate().err().map(|(inner, message)| refuse(&format!("{field}.{inner}"), message))
}

fn must(field: &str, words: &str) -> FieldRefusal {
    refuse(field, format!("The field \"completion.{field}\" must {words}."))
}

fn check_place(place: &str, request: &HttpRequest) -> Result<(), String> {
    if request.header(place).is_some() {
        return Err(format!("The header {place:?} is set by the request itself."));
    }
    if NEVER_STORED.iter().any(|name| place.eq_ignore_ascii_case(name)) {
        return Err(format!("The header {place:?} is for credentials; name another place."));
    }
    if place.eq_ignore_ascii_case("content-type") {
        return Err(format!("The header {place:?} says what the body is; name another place."));
    }
    put(&mut request.clone(), place, "x")
}

/// Whether two places are one, or one of them is within the other.
fn exclude_each_other(one: &str, other: &str) -> bool {
    if !one.starts_with('/') {
        return one.eq_ignore_ascii_case(other);
    }
    let is_within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is_within(one, other) || is_within(other, one)
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
        let resolved = poll.resolve(r#"{"id":"a/b c","owner":{"name":7}}"#);
        assert_eq!(resolved, Some(("/jobs/a%2Fb%20c/of/7".to_owned(), Some("a/b c".to_owned()))));
        for missing in ["{}", r#"{"id":"..","owner":{"name":7}}"#, r#"{"id":{},"owner":{"name":7}}"#] {
            assert_eq!(poll.resolve(missing), None, "{missing}");
        }
        // As it is written: no number is rounded, whatever else the response holds.
        let long = r#"{"x":["\ud800",1e400],"owner":{"name":1.10},"id":12345678901234567890123}"#;
        assert_eq!(poll.resolve(long).unwrap().0, "/jobs/12345678901234567890123/of/1.10");
        let table =
            [(r#"{"s":"ok"}"#, Some(true)), (r#"{"s":1}"#, Some(true)), (r#"{"s":"bad"}"#, Some(false))];
        for (text, wanted) in table.into_iter().chain([(r#"{"s":"running"}"#, None), ("[]", None)]) {
            assert_eq!(poll.ends().verdict(text), wanted, "{text}");
        }
    }

    #[test]
    fn mistakes_are_told_by_field() {
        let table = [
            ("{}", "completion"),
            (r#"{"callback":false}"#, "completion"),
            (r#"{"callback":true,"often":1}"#, "completion.often"),
            (r#"{"callback":"yes"}"#, "completion.callback"),
            (r#"{"callback":{"token":"x"}}"#, "completion.callback.url"),
            (r#"{"callback":{"url":"x","failed":{"/s":["bad"]}}}"#, "completion.callback.done"),
            (r#"{"callback":true,"timeout_s":"1"}"#, "completion.timeout_s"),
            (r#"{"poll":{"path":"/jobs"}}"#, "completion.poll.done"),
            (r#"{"poll":{"path":"/jobs","done":{"/status":"succeeded"}}}"#, "completion.poll.done"),
            (r#"{"poll":{"path":"/../jobs/{/id}","done":{"/s":[1]}}}"#, "completion.poll.path"),
            (
                r#"{"poll":{"path":"/j","done":{"/s":[1]},"every_s":9},"timeout_s":9}"#,
                "completion.poll.every_s",
            ),
            (r#"{"callback":true,"timeout_s":0}"#, "completion.timeout_s"),
            (r#"{"callback":true,"timeout_s":99999999}"#, "completion.timeout_s"),
            (r#"{"callback":{"url":"not a header"}}"#, "completion.callback"),
            (r#"{"callback":{"url":"/x","token":"host"}}"#, "completion.callback"),
            (r#"{"callback":{"url":"Authorization"}}"#, "completion.callback"),
            (r#"{"callback":{"url":"/x","token":"cookie"}}"#, "completion.callback"),
            (r#"{"callback":{"url":"Content-Type"}}"#, "completion.callback"),
            (r#"{"callback":{"url":"/x","token":"/x"}}"#, "completion.callback"),
            (r#"{"callback":{"url":"/x","token":"/x/y"}}"#, "completion.callback"),
            (r#"{"callback":{"url":"/x/y","token":"/x"}}"#, "completion.callback"),
            (r#"{"callback":{"url":"X-A","token":"x-a"}}"#, "completion.callback"),
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
        let all = |json: &str| {
            let problems = CompletionRules::parse_all(json, &request("{}")).unwrap_err();
            problems.into_iter().map(|problem| problem.field).collect::<Vec<_>>()
        };
        assert_eq!(
            all(r#"{"poll":{"path":7,"every":1},"timeout_s":"1"}"#),
            ["completion.poll.every", "completion.poll.path", "completion.poll.done", "completion.timeout_s"]
        );
        assert_eq!(
            all(r#"{"poll":{"path":"j","every_s":0,"done":{}},"timeout_s":0}"#),
            [
                "completion.timeout_s",
                "completion.poll.every_s",
                "completion.poll.path",
                "completion.poll.done"
            ]
        );
        let text = CompletionRules::parse(r#"{"callback":{"url":"/x"}}"#, &request("\"text\""));
        assert_eq!(text.unwrap_err().field, "completion.callback", "there is no JSON body");
    }
}
