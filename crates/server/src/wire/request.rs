//! Explains, by field, what is wrong inside a `request` that its dialect could not parse. It runs
//! only then: a valid request is parsed once, by the dialect.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use tidegate_upstream::request::completion::CompletionRules;
use tidegate_upstream::request::header::{validate, validate_count, validate_one};
use tidegate_upstream::request::path;
use tidegate_upstream::{HttpRequest, Method};

use super::field::Field;
use super::object::{Fields, missing, read, truncate_name};
use super::problems::RequestProblems;
use crate::error::{Error, ErrorCode, Result};

const ENVELOPE: [&str; 3] = ["upstream", "request", "completion"];
const NAMES: [&str; 4] = ["method", "path", "headers", "body"];
pub(crate) const METHODS: [(&str, ()); 7] =
    [("GET", ()), ("HEAD", ()), ("POST", ()), ("PUT", ()), ("PATCH", ()), ("DELETE", ()), ("OPTIONS", ())];

/// Adds the exact field to an error about a payload, if the dialect only knew that it is the
/// request.
pub(crate) fn explain(error: Error, payload: &[u8]) -> Error {
    // The engine knows no malformed requests, only values that it does not take.
    let as_missing = error.field.as_deref().map(missing);
    if let Some(as_missing) = as_missing.filter(|as_missing| as_missing.message == error.message) {
        return as_missing;
    }
    match error.field.as_deref() {
        Some("request") if error.code == ErrorCode::Invalid => {
            let inside = read(payload, &ENVELOPE).ok().and_then(|envelope| envelope.values[1]);
            inside.and_then(|request| check_request(request.get()).err()).unwrap_or(error)
        }
        Some("request.headers") => {
            let exact = match header(&error.message, payload) {
                Some(name) => error.field(format!("request.headers.{}", truncate_name(&name))),
                None => error,
            };
            with_others(exact, payload)
        }
        Some("request.path" | "request.body") => with_others(error, payload),
        Some(field) if field.starts_with("completion") => {
            let Ok(Fields { values: [_, request, completion], .. }) = read(payload, &ENVELOPE) else {
                return error;
            };
            let request = request.map_or("", RawValue::get);
            check_completion(request, completion.map(RawValue::get)).err().unwrap_or(error)
        }
        _ => error,
    }
}

/// Adds to an error what else is wrong with its request.
fn with_others(mut error: Error, payload: &[u8]) -> Error {
    let inside = read(payload, &ENVELOPE).ok().and_then(|envelope| envelope.values[1]);
    let Some(Err(mut found)) = inside.map(|request| check_request(request.get())) else { return error };
    let also = std::mem::take(&mut found.also).into_iter().chain([found]);
    error.also = also.filter(|other| other.field != error.field).collect();
    error
}

/// Checks a completion, which may name places of its request.
///
/// # Errors
/// The first problem, with the others.
pub(crate) fn check_completion(request: &str, completion: Option<&str>) -> Result<()> {
    let Some(completion) = completion else { return Ok(()) };
    let read: Option<HttpRequest> = serde_json::from_str(request).ok();
    // The places of a callback are in the request, and one that cannot be read has none.
    let has_places = read.as_ref().is_some_and(|request| request.validate().is_ok());
    let request = read.unwrap_or_else(|| HttpRequest::new(Method::Post, "/"));
    let mut found = RequestProblems::default();
    let refusals = CompletionRules::parse_all(completion, &request).err().into_iter().flatten();
    for refusal in refusals.filter(|refusal| has_places || refusal.field != "completion.callback") {
        found.add(match refusal.is_missing {
            true => missing(&refusal.field),
            false => invalid(&refusal.field, refusal.message),
        });
    }
    found.finish()
}

/// The header that the dialect's message is about.
fn header(message: &str, payload: &[u8]) -> Option<String> {
    let [_, request, _] = read(payload, &ENVELOPE).ok()?.values;
    let [_, _, headers, _] = read(request?.get().as_bytes(), &NAMES).ok()?.values;
    let headers: BTreeMap<String, String> = serde_json::from_str(headers?.get()).ok()?;
    let said = |header: &(String, String)| {
        validate(std::slice::from_ref(header)).is_err_and(|said| message.starts_with(&said))
    };
    headers.into_iter().find(said).map(|(name, _)| name)
}

/// Checks a request, as far as possible without knowing its upstream.
///
/// # Errors
/// The first problem, with the others.
pub(crate) fn check_request(request: &str) -> Result<()> {
    let below = |mut error: Error| {
        error.field =
            Some(error.field.map_or_else(|| "request".into(), |name| format!("request.{name}").into()));
        error
    };
    let Fields { values, problems } = read(request.as_bytes(), &NAMES).map_err(below)?;
    let mut found = RequestProblems::default();
    if let Err(mut error) = problems.finish() {
        let also = std::mem::take(&mut error.also);
        std::iter::once(error).chain(also).for_each(|error| found.add(below(error)));
    }
    let [method, path, headers, body] = values;
    let has_no_body = method.is_some_and(|method| ["\"GET\"", "\"HEAD\""].contains(&method.get()));
    if has_no_body && body.is_some_and(|body| body.get() != "null") {
        let message = "A GET or HEAD carries no body; use POST, or put it into the query.".to_owned();
        found.add(invalid("request.body", message));
    }
    let method = Field { name: "request.method", raw: method }.word(&METHODS);
    found.check(method.and_then(|method| method.ok_or_else(|| missing("request.method"))));
    let path = Field { name: "request.path", raw: path }.required_text();
    found.check(path.and_then(|path| path::validate(&path).map_err(|said| invalid("request.path", said))));
    if let Some(headers) = headers {
        check_headers(headers, &mut found);
    }
    found.finish()
}

fn check_headers(raw: &RawValue, found: &mut RequestProblems) {
    let wrong = |place: String, wanted: &str| {
        Error::new(ErrorCode::Malformed, format!("The field {place:?} must be {wanted}.")).field(place)
    };
    if raw.get() == "null" {
        return;
    }
    let Ok(headers) = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw.get()) else {
        return found.add(wrong("request.headers".into(), "an object of names and strings"));
    };
    found.check(validate_count(headers.len()).map_err(|said| invalid("request.headers", said)));
    for (name, value) in headers {
        let place = format!("request.headers.{}", truncate_name(&name));
        match serde_json::from_str::<String>(value.get()) {
            Ok(value) => found.check(validate_one(&name, &value).map_err(|said| invalid(&place, said))),
            Err(_) => found.add(wrong(place, "a string")),
        }
    }
}

fn invalid(field: &str, message: String) -> Error {
    Error::new(ErrorCode::Invalid, message).field(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(request: &str) -> Error {
        let error = Error::new(ErrorCode::Invalid, "The request cannot be read: …").field("request");
        explain(error, format!(r#"{{"upstream":"e","request":{request}}}"#).as_bytes())
    }

    /// An error names the exact field, in our own message, without the value that was sent.
    #[test]
    fn mistakes_inside_a_request_are_told_by_field() {
        let table = [
            ("{}", "request.method", "is missing"),
            (r#"{"method":7,"path":"/"}"#, "request.method", "must be a string"),
            (r#"{"method":"hunter2","path":"/"}"#, "request.method", "one of GET, HEAD, POST"),
            (r#"{"method":"GET"}"#, "request.path", "is missing"),
            (r#"{"method":"GET","path":["hunter2"]}"#, "request.path", "must be a string"),
            (r#"{"method":"GET","path":"/","verb":1}"#, "request.verb", "There is no field"),
            (r#"{"method":"GET","path":"/","path":"/"}"#, "request.path", "appears twice"),
            (r#"{"method":"GET","path":"/","headers":"hunter2"}"#, "request.headers", "an object of names"),
            (r#"{"method":"GET","path":"/","headers":{"x-n":7}}"#, "request.headers.x-n", "must be a string"),
            (
                r#"{"method":"GET","path":"/","headers":{"x-n":null}}"#,
                "request.headers.x-n",
                "must be a string",
            ),
        ];
        for (request, field, words) in table {
            let error = told(request);
            assert_eq!(
                (error.code, error.field.as_deref()),
                (ErrorCode::Malformed, Some(field)),
                "{request}"
            );
            assert!(error.message.contains(words) && !error.message.contains("hunter2"), "{}", error.message);
        }
        assert_eq!(
            told(r#"{"method":"GET","path":"/"}"#).code,
            ErrorCode::Invalid,
            "nothing better is known"
        );
    }
}
