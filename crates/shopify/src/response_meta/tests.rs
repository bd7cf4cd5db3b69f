//! Responses in Shopify's formats, compared with `golden/said.txt`, and nonsensical responses.

use std::fmt::Write as _;
use std::path::Path;

use http::HeaderMap;
use proptest::prelude::*;
use tidegate_core::operation::MICRO;

use super::*;

/// Returns every response of the folder `golden`: its name, headers and body.
fn golden() -> Vec<(String, HeaderMap, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut answers: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "http"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let (head, body) = text.split_once("\n\n").unwrap();
            let headers = head.lines().skip(1).map(|line| line.split_once(": ").unwrap());
            let headers =
                headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            (path.file_stem().unwrap().to_str().unwrap().to_owned(), headers, body.to_owned())
        })
        .collect();
    answers.sort_by(|one, other| one.0.cmp(&other.0));
    answers
}

fn points(micro: Option<u64>) -> String {
    micro.map_or_else(|| "?".into(), |micro| (micro as f64 / MICRO as f64).to_string())
}

fn told(name: &str, said: &ResponseMeta) -> String {
    let mut line = name.to_owned();
    let cost = &said.cost;
    if *cost != QueryCost::default() {
        let (asked, took) = (points(cost.requested), points(cost.actual));
        let (left, most, rate) = (points(cost.available), points(cost.maximum), points(cost.restore_per_s));
        write!(line, " | asked {asked}, took {took}; {left} of {most} left, {rate}/s").unwrap();
    }
    for error in &said.errors {
        write!(line, " | error {:?}", error.code.as_str()).unwrap();
        if error.cost.is_some() {
            write!(line, " {} of {}", points(error.cost), points(error.max_cost)).unwrap();
        }
    }
    if said.has_data {
        line.push_str(" | data");
    }
    if said.still_running {
        line.push_str(" | still running");
    }
    if let Some(calls) = said.calls {
        write!(line, " | calls {}/{}", calls.used, calls.size).unwrap();
    }
    if let Some(version) = said.version {
        write!(line, " | version {version}").unwrap();
    }
    if said.deprecated.is_some() {
        line.push_str(" | deprecated");
    }
    line
}

/// LIM-1 / LIM-17: every kind of response is parsed correctly.
#[test]
fn lim_17_recorded_answers_are_read() {
    let lines: Vec<_> = golden()
        .iter()
        .map(|(name, headers, body)| told(name, &ResponseMeta::from_graphql(headers, body.as_bytes())))
        .collect();
    let expected = include_str!("../../golden/said.txt");
    assert_eq!(lines.join("\n"), expected.trim_end());
}

/// LIM-1: the wait of a throttled response follows from its figures.
#[test]
fn lim_1_a_throttled_answer_says_how_long() {
    let (_, headers, body) = golden().into_iter().find(|(name, ..)| name == "throttled").unwrap();
    let said = ResponseMeta::from_graphql(&headers, body.as_bytes());
    assert_eq!(said.cost.delay_ms(), Some(860));
    assert!(said.error(&GraphqlErrorCode::Throttled).is_some() && !said.has_data);
}

/// LIM-8: each nonsensical number counts as absent, and the rest is parsed.
#[test]
fn lim_8_nonsense_in_a_cost_is_not_said() {
    let cost = |json: &str| {
        let body = format!(r#"{{"extensions":{{"cost":{json}}}}}"#);
        ResponseMeta::from_graphql(&HeaderMap::new(), body.as_bytes()).cost
    };
    let only = |actual| QueryCost { actual, ..QueryCost::default() };
    for (json, actual) in [
        ("46", Some(46 * MICRO)),
        ("46.5", Some(46_500_000)),
        ("4.6e1", Some(46 * MICRO)),
        ("-3", Some(0)),
        ("null", None),
        ("\"NaN\"", None),
        ("\"46\"", None),
        ("1e10", None),
        ("1e400", None),
        ("[46]", None),
        ("{}", None),
    ] {
        assert_eq!(
            cost(&format!(r#"{{"requestedQueryCost":null,"actualQueryCost":{json}}}"#)),
            only(actual),
            "{json}"
        );
    }
    for json in ["null", "[]", "7", "\"x\"", r#"{"throttleStatus":3}"#, r#"{"actualQueryCost":NaN}"#] {
        assert_eq!(cost(json), QueryCost::default(), "{json}");
    }
    let odd = cost(r#"{"throttleStatus":{"maximumAvailable":0,"currentlyAvailable":-5,"restoreRate":0.0}}"#);
    assert_eq!(
        odd,
        QueryCost { available: Some(0), ..QueryCost::default() },
        "a budget of nothing is not believed"
    );
    assert_eq!(odd.throttle_status(), None);
}

/// LIM-17: a version other than the requested one is noticed; an invalid header is not.
#[test]
fn lim_17_falling_forward_is_noticed() {
    let said = |version: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(API_VERSION, version.parse().unwrap());
        ResponseMeta::from_headers(&headers)
    };
    let asked = "2024-10".parse().ok();
    assert_eq!(said("2025-10").fell_forward(asked).unwrap().to_string(), "2025-10");
    assert_eq!(said("2024-10").fell_forward(asked), None);
    assert_eq!(said("soon").fell_forward(asked), None);
    assert_eq!(said("2025-10").fell_forward(None), None);
}

proptest! {
    /// LIM-8: no body is too odd to be parsed.
    #[test]
    fn lim_8_no_body_is_too_odd(body in r#"([\[\]{}:,"0-9.e-]|null|errors|extensions|cost|code|data){0,60}"#) {
        let said = ResponseMeta::from_graphql(&HeaderMap::new(), body.as_bytes());
        prop_assert!(said.cost.available <= said.cost.maximum.or(said.cost.available));
    }
}
