//! An operation as callers send it. The request inside is passed on as the text that was sent: it
//! is parsed once, by the dialect that will send it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate::Submission;
use tidegate_core::bounds::{
    ATTEMPTS_MAX, CHARGES_MAX, DEDUPE_KEY_LEN_MAX, GROUP_LEN_MAX, HORIZON_MAX, PAYLOAD_LEN_MAX, PRIORITY_MAX,
    TOKENS_MAX, TRACE_LEN_MAX,
};
use tidegate_core::{OnFailure, OnUnknown, Time};

use super::field::{Field, parse_whole};
use super::object::{Fields, ParsedObject, missing, read, read_list, truncate_name};
use super::problems::RequestProblems;
use super::request;
use super::time;
use crate::config::kind::is_built_in;
use crate::error::{Error, ErrorCode, Result};

const NAMES: [&str; 16] = [
    "kind",
    "upstream",
    "group",
    "request",
    "dedupe_key",
    "cost",
    "max_attempts",
    "deadline_ms",
    "delay_ms",
    "priority",
    "on_unknown",
    "on_failure",
    "deployment_id",
    "deadline_at",
    "completion",
    "payload",
];

const ON_UNKNOWN: [(&str, OnUnknown); 3] =
    [("repeat", OnUnknown::Repeat), ("reconcile", OnUnknown::Reconcile), ("ask", OnUnknown::Ask)];
const ON_FAILURE: [(&str, OnFailure); 2] = [("skip", OnFailure::Skip), ("hold", OnFailure::Hold)];

/// The kind by default.
const HTTP: &str = "http";

/// Parses one operation.
pub(crate) fn parse_one(body: &[u8], request_id: &Arc<str>) -> Result<Submission> {
    parse_submission(read(body, &NAMES), request_id)
}

/// Parses a batch of operations. Each is valid or invalid by itself.
///
/// # Errors
/// When the batch as a whole cannot be parsed.
pub(crate) fn parse_batch(
    body: &[u8],
    most: usize,
    request_id: &Arc<str>,
) -> Result<Vec<Result<Submission>>> {
    let items = read_list(body, "operations", most, &NAMES)?;
    Ok(items.into_iter().map(|fields| parse_submission(fields, request_id)).collect())
}

fn parse_submission(object: ParsedObject<'_, 16>, request_id: &Arc<str>) -> Result<Submission> {
    let Fields { values, mut problems } = object?;
    let field = |place: usize| Field { name: NAMES[place], raw: values[place] };
    let horizon = 0..=u64::try_from(HORIZON_MAX.as_millis()).unwrap_or(u64::MAX);
    let kind = problems.check(field(0).text()).map_or_else(|| Arc::from(HTTP), Arc::from);
    let worker_payload = field(15).raw.map(RawValue::get);
    // What its workers execute has a payload, and neither of the other two.
    let lacks_payload = [1, 3, 15].iter().all(|place| values[*place].is_none()) && !is_built_in(&kind);
    if lacks_payload {
        problems.add(missing(NAMES[15]));
    }
    let upstream = match worker_payload {
        Some(_) => None,
        None if lacks_payload => None,
        None => Some(problems.check(field(1).required_text())),
    };
    let group = field(2).required_text();
    let group = problems.check(group.and_then(|group| check_group(&field(2), group)));
    let (request, completion, payload) = match worker_payload {
        Some(payload) => {
            for place in [1, 3, 14] {
                problems.check(absent(&field(place)));
            }
            ("", None, problems.check(bounded("payload", payload)))
        }
        None if lacks_payload => ("", None, Bytes::new()),
        None => {
            let request = problems.check(field(3).object());
            let completion = problems.check(optional_object(&field(14)));
            let upstream = upstream.as_deref().unwrap_or_default();
            (request, completion, problems.check(payload(upstream, request, completion)))
        }
    };
    let mut short = |place: usize, bytes: RangeInclusive<usize>| {
        let text = problems.check(field(place).text())?;
        problems.check(field(place).check_line(&text, bytes));
        Some(Arc::from(text))
    };
    let dedupe_key = short(4, 1..=DEDUPE_KEY_LEN_MAX);
    let deployment_id = short(12, 0..=TRACE_LEN_MAX);
    let attempts = problems.check(field(6).integer(1..=u64::from(ATTEMPTS_MAX)));
    let priority = problems.check(field(9).integer(0..=u64::from(PRIORITY_MAX)));
    let mut submission = Submission::new(kind, group, payload)
        .with_request_id(Arc::clone(request_id))
        .with_max_attempts(attempts.and_then(|n| u16::try_from(n).ok()))
        .with_deadline(problems.check(deadline(field(7), &horizon)))
        .with_delay(problems.check(field(8).integer(horizon)).map(Duration::from_millis))
        .with_priority(priority.map_or(0, |n| n as u8))
        .with_on_unknown(problems.check(field(10).word(&ON_UNKNOWN)))
        .with_on_failure(problems.check(field(11).word(&ON_FAILURE)))
        .with_deadline_at(problems.check(deadline_at(field(13))));
    submission.cost = problems.check(cost(field(5)));
    submission.upstream = upstream.map(Arc::from);
    submission.dedupe_key = dedupe_key;
    submission.deployment_id = deployment_id;
    if !problems.is_empty() {
        // Nothing else will check it.
        check_rest(&submission, request, completion, &mut problems);
    }
    problems.finish()?;
    Ok(submission)
}

fn check_group(field: &Field<'_>, group: String) -> Result<String> {
    field.check_line(&group, 1..=GROUP_LEN_MAX)?;
    Ok(group)
}

/// Checks what the engine and the dialect would check, next to the problems of a submission that
/// reaches neither.
fn check_rest(
    submission: &Submission,
    request: &str,
    completion: Option<&str>,
    problems: &mut RequestProblems,
) {
    if submission.deadline.is_some() && submission.deadline_at.is_some() {
        let message = "Either deadline_at or deadline_ms can be given, not both.";
        problems.add(Error::new(ErrorCode::Invalid, message).field("deadline_at"));
    }
    if &*submission.kind != HTTP || request.is_empty() {
        return;
    }
    if submission.on_unknown == Some(OnUnknown::Reconcile) {
        let message = "The kind \"http\" cannot check whether a call took effect; use repeat or ask.";
        problems.add(Error::new(ErrorCode::Invalid, message).field("on_unknown"));
    }
    problems.check(request::check_request(request));
    problems.check(request::check_completion(request, completion));
}

/// Parses the deadline. Zero is an error, because nothing can start within 0 ms; leaving it out
/// means no deadline.
fn deadline(field: Field<'_>, horizon: &RangeInclusive<u64>) -> Result<Option<Duration>> {
    if matches!(field.integer(0..=0), Ok(Some(0))) {
        let message = "The field \"deadline_ms\" must be at least 1: within 0 ms nothing can start. Leave it out for no deadline.";
        return Err(Error::new(ErrorCode::Invalid, message).field(field.name));
    }
    Ok(field.integer(1..=*horizon.end())?.map(Duration::from_millis))
}

fn deadline_at(field: Field<'_>) -> Result<Option<Time>> {
    let Some(text) = field.text()? else { return Ok(None) };
    let wrong = || {
        let message = "The field \"deadline_at\" must be a time of RFC 3339, as in 2031-05-06T07:08:09Z or 2031-05-06T09:08:09.5+02:00.";
        Error::new(ErrorCode::Invalid, message).field(field.name)
    };
    time::parse(&text).map(Some).ok_or_else(wrong)
}

/// Refuses a field that operations of remote kinds do not have.
fn absent(field: &Field<'_>) -> Result<()> {
    match field.raw.filter(|raw| raw.get() != "null") {
        None => Ok(()),
        Some(_) => {
            let message = format!("An operation with a payload has no field {:?}.", field.name);
            Err(Error::new(ErrorCode::Malformed, message).field(field.name))
        }
    }
}

/// A payload for remote workers, as it was sent.
fn bounded(name: &str, text: &str) -> Result<Bytes> {
    if text.len() > PAYLOAD_LEN_MAX {
        let message = format!("The {name} is {} bytes long; the most is {PAYLOAD_LEN_MAX}.", text.len());
        return Err(Error::new(ErrorCode::TooLarge, message).field(name));
    }
    Ok(Bytes::copy_from_slice(text.as_bytes()))
}

/// An object that may be left out.
fn optional_object<'a>(field: &Field<'a>) -> Result<Option<&'a str>> {
    match field.raw {
        Some(raw) if raw.get() != "null" => field.object().map(Some),
        _ => Ok(None),
    }
}

/// The payload of the HTTP dialect: `{"upstream":…,"request":…}`, and `"completion":…` if there is
/// one, written without parsing either.
fn payload(upstream: &str, request: &str, completion: Option<&str>) -> Result<Bytes> {
    const AROUND: usize = r#"{"upstream":,"request":,"completion":}"#.len();
    let upstream = serde_json::to_string(&upstream).map_err(|_| {
        Error::new(ErrorCode::Malformed, "The upstream's name cannot be read.").field("upstream")
    })?;
    let len = AROUND + upstream.len() + request.len() + completion.map_or(0, str::len);
    if len > PAYLOAD_LEN_MAX {
        let message = format!("The request is {len} bytes long; the most is {PAYLOAD_LEN_MAX}.");
        return Err(Error::new(ErrorCode::TooLarge, message).field("request"));
    }
    let mut payload = String::with_capacity(len);
    for part in [r#"{"upstream":"#, &upstream, r#","request":"#, request] {
        payload.push_str(part);
    }
    if let Some(completion) = completion {
        payload.push_str(r#","completion":"#);
        payload.push_str(completion);
    }
    payload.push('}');
    Ok(Bytes::from(payload))
}

fn cost(field: Field<'_>) -> Result<BTreeMap<String, u64>> {
    let Some(raw) = field.raw.filter(|raw| raw.get() != "null") else { return Ok(BTreeMap::new()) };
    let wrong = |message: String, name: String| Error::new(ErrorCode::Invalid, message).field(name);
    let costs: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get()).map_err(|_| {
        let message = "The field \"cost\" must be an object of limits and whole numbers.";
        Error::new(ErrorCode::Malformed, message).field("cost")
    })?;
    if costs.len() > CHARGES_MAX {
        let message = format!("The cost names {} limits; the most is {CHARGES_MAX}.", costs.len());
        return Err(wrong(message, "cost".into()));
    }
    let (mut read, mut problems) = (BTreeMap::new(), RequestProblems::default());
    for (name, raw) in costs {
        match parse_whole(raw.get()) {
            Some(tokens) if tokens <= TOKENS_MAX => drop(read.insert(name, tokens)),
            _ => {
                let place = format!("cost.{}", truncate_name(&name));
                let message = format!("The field {place:?} must be a whole number, 0 to {TOKENS_MAX}.");
                problems.add(wrong(message, place));
            }
        }
    }
    problems.finish()?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(json: &str) -> Result<Submission> {
        parse_one(json.as_bytes(), &Arc::from("r"))
    }

    /// OPS-2: the request reaches the dialect byte for byte.
    #[test]
    fn ops_2_the_request_is_not_touched() {
        let json = r#"{"upstream":"e\u0063ho", "group":"g","request": {"b":1.10, "a":[ ]} }"#;
        let submission = read_one(json).unwrap();
        assert_eq!(submission.payload, r#"{"upstream":"echo","request":{"b":1.10, "a":[ ]}}"#);
        assert_eq!(&*submission.kind, "http");
    }

    /// The outbox makes the same checks as this parser: the same names, the same bounds.
    #[test]
    fn the_outbox_knows_the_same_names_and_bounds() {
        use tidegate_core::bounds::{DEDUPE_KEY_LEN_MAX, GROUP_LEN_MAX};
        let sql = include_str!("../../../store-postgres/src/sql/submission_types.sql");
        let names =
            sql.split_once("names CONSTANT text[] := ARRAY[").and_then(|(_, rest)| rest.split_once(']'));
        let names: Vec<&str> =
            names.unwrap().0.split(',').map(|name| name.trim().trim_matches('\'')).collect();
        // The outbox takes calls to upstreams only.
        assert_eq!(names, NAMES[..15]);
        assert_eq!(NAMES[15], "payload");
        let sql = concat!(
            include_str!("../../../store-postgres/src/sql/outbox.sql"),
            include_str!("../../../store-postgres/src/sql/submission_types.sql")
        );
        let words = |words: &[&str]| format!("'one of {}", words.join(", "));
        for bound in [
            words(&ON_UNKNOWN.map(|(word, _)| word)),
            words(&ON_FAILURE.map(|(word, _)| word)),
            words(&request::METHODS.map(|(word, ())| word)),
            format!("len_max CONSTANT int := {};", crate::edge::content::BodyBound::Operation.len_max()),
            format!("'group', 'UTF8')) NOT BETWEEN 1 AND {GROUP_LEN_MAX} "),
            format!("'dedupe_key', 'UTF8')) NOT BETWEEN 1 AND {DEDUPE_KEY_LEN_MAX} "),
        ] {
            assert!(sql.contains(&bound), "{bound}");
        }
    }

    #[test]
    fn mistakes_are_told_by_field() {
        let with = |more: &str| format!(r#"{{"upstream":"e","group":"g","request":{{}}{more}}}"#);
        let table = [
            (with(r#","gruop":1"#), "gruop"),
            (with(r#","group":"h""#), "group"),
            (with(r#","max_attempts":-1"#), "max_attempts"),
            (with(r#","max_attempts":1.5"#), "max_attempts"),
            (with(r#","max_attempts":"8""#), "max_attempts"),
            (with(r#","max_attempts":0"#), "max_attempts"),
            (with(r#","deadline_ms":1e400"#), "deadline_ms"),
            (with(r#","deadline_ms":0"#), "deadline_ms"),
            (with(r#","deadline_at":7"#), "deadline_at"),
            (with(r#","deadline_at":"tomorrow""#), "deadline_at"),
            (with(r#","delay_ms":99999999999999999999999"#), "delay_ms"),
            (with(r#","priority":5"#), "priority"),
            (with(r#","cost":{"points":-3}"#), "cost.points"),
            (with(r#","cost":[1]"#), "cost"),
            (with(r#","on_unknown":"maybe""#), "on_unknown"),
            (with(r#","dedupe_key":7"#), "dedupe_key"),
            (with(r#","completion":true"#), "completion"),
            (r#"{"upstream":"e","group":"g"}"#.to_owned(), "request"),
            (r#"{"upstream":"e","group":"g","request":[]}"#.to_owned(), "request"),
            (r#"{"group":"g","request":{}}"#.to_owned(), "upstream"),
            (r#"{"upstream":"e","request":{}}"#.to_owned(), "group"),
        ];
        for (json, field) in table {
            assert_eq!(read_one(&json).unwrap_err().field.as_deref(), Some(field), "{json}");
        }
        for json in ["", "{", "[]", "7", "null", r#"{"max_attempts":NaN}"#, r#"{"a":1} x"#, "\u{feff}{}"] {
            assert_eq!(read_one(json).unwrap_err().code, ErrorCode::Malformed, "{json}");
        }
        assert!(read_one(&with("")).is_ok());
        assert!(read_one(&with(r#","max_attempts":null"#)).is_ok());
    }

    /// The payload of a remote kind is passed on as it was sent, whatever JSON it is.
    #[test]
    fn a_payload_is_not_touched() {
        for payload in ["{\"b\":1.10, \"a\":[ ]}", "[1 ]", "\"text\"", "7", "null", "false"] {
            let json = format!(r#"{{"kind":"resize","group":"g","payload":{payload}}}"#);
            let submission = read_one(&json).unwrap();
            assert_eq!((&submission.payload[..], &*submission.kind), (payload.as_bytes(), "resize"));
            assert_eq!(submission.upstream, None);
        }
        for (field, value) in [("upstream", "\"e\""), ("request", "{}"), ("completion", "{}")] {
            let json = format!(r#"{{"kind":"resize","group":"g","payload":1,"{field}":{value}}}"#);
            assert_eq!(read_one(&json).unwrap_err().field.as_deref(), Some(field));
        }
    }

    /// All problems of a submission are reported at once, including those inside its request.
    #[test]
    fn all_mistakes_are_told_at_once() {
        let error = read_one(
            r#"{"gruop":"g","request":{"method":"GRAB","verb":1,"headers":{"a":1}},"priority":9,"cost":{"a":-1,"b":"x"},
                "dedupe_key":""}"#,
        );
        let error = error.unwrap_err();
        let mut found: Vec<_> =
            std::iter::once(&error).chain(&error.also).filter_map(|one| one.field.as_deref()).collect();
        found.sort_unstable();
        let wanted = [
            "cost.a",
            "cost.b",
            "dedupe_key",
            "group",
            "gruop",
            "priority",
            "request.headers.a",
            "request.method",
            "request.path",
            "request.verb",
            "upstream",
        ];
        assert_eq!(found, wanted);
    }

    /// What only the engine or the dialect would find is reported next to other problems, too.
    #[test]
    fn what_others_would_find_is_told_as_well() {
        let many: Vec<_> = (0..200).map(|n| format!("\"x-{n}\":\"\"")).collect();
        let json = format!(
            r#"{{"upstream":"e","group":"\n","max_attempts":0,"on_unknown":"reconcile","deadline_ms":1,
                "deadline_at":"2031-05-06T07:08:09Z","completion":{{"callback":true,"timeout_s":0}},
                "request":{{"method":"GET","path":"/","body":{{}},"headers":{{{}}}}}}}"#,
            many.join(",")
        );
        let error = read_one(&json).unwrap_err();
        let mut found: Vec<_> =
            std::iter::once(&error).chain(&error.also).filter_map(|one| one.field.as_deref()).collect();
        found.sort_unstable();
        let wanted = [
            "completion.timeout_s",
            "deadline_at",
            "group",
            "max_attempts",
            "on_unknown",
            "request.body",
            "request.headers",
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_bad_member_leaves_the_others_alone() {
        let good = r#"{"upstream":"e","group":"g","request":{}}"#;
        let body = format!(r#"{{"operations":[{good},7,{{"x":{{"y":[1]}}}},[{{}}],"t",null,{good}]}}"#);
        let read = parse_batch(body.as_bytes(), 1_000, &Arc::from("r")).unwrap();
        assert_eq!(
            read.iter().map(Result::is_ok).collect::<Vec<_>>(),
            [true, false, false, false, false, false, true]
        );
    }

    #[test]
    fn a_bad_batch_is_refused_as_a_whole() {
        let good = r#"{"upstream":"e","group":"g","request":{}}"#;
        let table = [
            (format!(r#"{{"operations":[{good},{good},{good}]}}"#), ErrorCode::BatchTooLong),
            (format!(r#"{{"operations":[{good}],"more":1}}"#), ErrorCode::Malformed),
            (format!(r#"{{"operations":[{good}]"#), ErrorCode::Malformed),
            (format!(r#"{{"operations":{good}}}"#), ErrorCode::Malformed),
            (format!("[{good}]"), ErrorCode::Malformed),
            ("{}".to_owned(), ErrorCode::Malformed),
        ];
        for (body, code) in table {
            assert_eq!(parse_batch(body.as_bytes(), 2, &Arc::from("r")).unwrap_err().code, code, "{body}");
        }
        for (body, found) in [
            (r#"{"operations":{"a":[1]}}"#, "The field \"operations\" must be a list, not an object."),
            (r#"{"operations":"x"}"#, "The field \"operations\" must be a list, not a string."),
            (r#"{"operations":null}"#, "The field \"operations\" must be a list, not null."),
            ("[{}]", "An object is expected, not a list."),
            ("7", "An object is expected, not a number."),
        ] {
            assert_eq!(parse_batch(body.as_bytes(), 2, &Arc::from("r")).unwrap_err().message, found);
        }
    }
}
