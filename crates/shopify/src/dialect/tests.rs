//! What a call charges and what its response means, for every response of the folder `golden`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tidegate_core::{RetryRule, Time, Verdict, VerdictClass};
use tidegate_upstream::Body;
use tidegate_upstream::http::Meaning;
use tidegate_upstream::http::response::{Content, RequestSummary, UpstreamResponse};
use tidegate_upstream::http::target::BaseUrl;

use super::*;
use crate::client::attempt::{ApiKind, AttemptOutcome, interpret};

const PATH: &str = "/admin/api/2026-04/graphql.json";

fn graphql(path: &str, query: &str, variables: &str) -> HttpRequest {
    let json = format!(r#"{{"query":{},"variables":{variables}}}"#, serde_json::to_string(query).unwrap());
    let body: Body = serde_json::from_str(&json).unwrap();
    HttpRequest::new(Method::Post, path).with_body(body)
}

fn rest(method: Method) -> HttpRequest {
    HttpRequest::new(method, "/admin/api/2026-04/products/1.json")
}

fn answer(status: u16, headers: HeaderMap, body: &str) -> UpstreamResponse {
    let content = Content::Whole(Bytes::from(body.to_owned()));
    UpstreamResponse {
        status: StatusCode::from_u16(status).unwrap(),
        headers,
        content,
        at: Time::from_millis(1_000),
    }
}

/// Returns the dialect's interpretation of a response, and what is sent.
fn meaning(dialect: &ShopifyDialect, mut request: HttpRequest, answer: &UpstreamResponse) -> Meaning {
    let retry_rule = RetryRule::new(dialect.on_unknown(&request), dialect.server_errors());
    let reader = dialect.prepare_request(&mut request, "op-1").unwrap();
    let base = BaseUrl::parse("http://acme").unwrap();
    let asked = RequestSummary { method: request.method, upstream: "acme", base: &base, retry_rule };
    let verdict = answer.verdict(&asked);
    reader.interpret(answer, &asked, verdict)
}

/// Returns the client's outcome of the same response, in the same words as a verdict.
fn client_class(dialect: &ShopifyDialect, request: &HttpRequest, answer: &UpstreamResponse) -> VerdictClass {
    let api = if dialect.endpoint.is_graphql(request) { ApiKind::Graphql } else { ApiKind::Rest };
    let rule = RetryRule::new(dialect.on_unknown(request), dialect.server_errors());
    match interpret(answer.clone(), api, rule).outcome {
        AttemptOutcome::Done { .. } => VerdictClass::Done,
        AttemptOutcome::Throttled { .. } => VerdictClass::Throttled,
        AttemptOutcome::NotSent(_) | AttemptOutcome::Failed(_) => VerdictClass::Retry,
        AttemptOutcome::Unknown(_) => VerdictClass::Unknown,
        AttemptOutcome::Refused(_) => VerdictClass::Rejected,
    }
}

fn class(verdict: &Verdict) -> VerdictClass {
    match verdict {
        Verdict::Done => VerdictClass::Done,
        Verdict::Throttled { .. } => VerdictClass::Throttled,
        Verdict::Retry { .. } => VerdictClass::Retry,
        Verdict::Rejected(_) => VerdictClass::Rejected,
        Verdict::Unknown(_) => VerdictClass::Unknown,
        other => panic!("{other:?}"),
    }
}

/// OPS-23: the queue and the client agree on every response, for reads and changes, GraphQL and
/// REST: a mutation answered 503 is sent again by both, and one answered 500 by neither.
#[test]
fn ops_23_the_queue_and_the_client_agree() {
    let dialect = ShopifyDialect::new("acme", 1);
    let calls = [
        graphql(PATH, "{ shop { id } }", "{}"),
        graphql(PATH, "mutation { productCreate(product: {}) { product { id } } }", "{}"),
        graphql(PATH, "mutation { refundCreate(input: {}) { refund { id } } }", "{}"),
        rest(Method::Get),
        rest(Method::Put),
        rest(Method::Post),
    ];
    let error = |code: &str| format!(r#"{{"errors":[{{"message":"m","extensions":{{"code":"{code}"}}}}]}}"#);
    let bodies = [
        r#"{"data":{"shop":{"id":"7"}}}"#.to_owned(),
        "<html>".to_owned(),
        error("INTERNAL_SERVER_ERROR"),
        error("THROTTLED"),
        error("ACCESS_DENIED"),
    ];
    let mut seen = 0;
    for request in &calls {
        for (status, body) in (200..600).flat_map(|status| bodies.iter().map(move |body| (status, body))) {
            let whole = answer(status, HeaderMap::new(), body);
            let cut = UpstreamResponse { content: Content::Cut("it broke".into()), ..whole.clone() };
            for came in [whole, cut] {
                let queue = class(&meaning(&dialect, request.clone(), &came).verdict);
                assert_eq!(client_class(&dialect, request, &came), queue, "{request:?} {status} {body}");
                seen += usize::from(queue == VerdictClass::Unknown);
            }
        }
    }
    assert!(seen > 0);
    let change =
        |status| class(&meaning(&dialect, calls[1].clone(), &answer(status, HeaderMap::new(), "")).verdict);
    assert_eq!([503, 500].map(change), [VerdictClass::Retry, VerdictClass::Unknown]);
}

fn points(dialect: &ShopifyDialect, query: &str, variables: &str) -> u64 {
    let charges = dialect.charges(&graphql(PATH, query, variables), &BTreeMap::new()).unwrap();
    assert_eq!((&*charges[0].limit, &*charges[1].limit), ("acme", "acme/points"));
    charges[1].cost / MICRO
}

fn word(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Done => "done".into(),
        Verdict::Throttled { after, scope, fault } => {
            format!("throttled {:?} {:?}: {}", scope.as_deref().unwrap_or("-"), after, fault.message)
        }
        Verdict::Retry { after, fault } => format!("retry {after:?}: {}", fault.message),
        Verdict::Rejected(fault) => format!("rejected {fault}"),
        Verdict::Unknown(fault) => format!("unknown: {}", fault.message),
        other => format!("{other:?}"),
    }
}

/// LIM-1 / LIM-12 / LIM-17: what each kind of response means, as a query and as a mutation, or as a
/// REST call.
#[test]
fn lim_17_every_answer_has_its_meaning() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut told = String::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|ext| ext == "http")) {
        let text = std::fs::read_to_string(path).unwrap();
        let (head, body) = text.split_once("\n\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let headers = head.lines().skip(1).map(|line| line.split_once(": ").unwrap());
        let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let answer = answer(status, headers, body.trim_end());
        let name = path.file_stem().unwrap().to_str().unwrap();
        let calls = if name.starts_with("rest") {
            vec![("get", rest(Method::Get)), ("post", rest(Method::Post))]
        } else {
            let mutation = "mutation { productCreate(product: {}) { product { id } } }";
            vec![
                ("query", graphql(PATH, "{ shop { id } }", "{}")),
                ("mutation", graphql(PATH, mutation, "{}")),
            ]
        };
        for (kind, call) in calls {
            let meaning = meaning(&ShopifyDialect::new("acme", 1), call, &answer);
            let hint = &meaning.hints[0];
            let figure =
                |micro: Option<u64>| micro.map_or_else(|| "?".into(), |m| (m as f64 / 1e6).to_string());
            let (spent, left) = (figure(hint.spent), figure(hint.remaining));
            let (capacity, rate) = (figure(hint.capacity), figure(hint.refill_per_s));
            let word = word(&meaning.verdict);
            writeln!(
                told,
                "{name} {kind} | {word} | {} spent {spent}; {left} of {capacity}, {rate}/s",
                hint.limit
            )
            .unwrap();
        }
    }
    assert_eq!(told, include_str!("../../golden/verdicts.txt"));
}

/// LIM-4: REST and GraphQL are two budgets with two units, and the slots for bulk operations a
/// third.
#[test]
fn lim_4_a_shop_has_two_budgets_and_its_places() {
    let dialect = ShopifyDialect::new("acme", 5);
    let limits = dialect.limits();
    let names: Vec<_> = limits.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["acme", "acme/points", "acme/requests", "acme/bulk"]);
    assert_eq!(limits[3].1, LimitShape::Cap { at_once: 5 });
    let charges = dialect.charges(&rest(Method::Get), &BTreeMap::new()).unwrap();
    assert_eq!(charges, [Charge::tokens("acme", 1), Charge::tokens("acme/requests", 1)]);
    assert_eq!(points(&dialect, "{ products(first: 10) { nodes { id } } }", "{}"), 12);
    for (request, name) in [(rest(Method::Get), "points"), (graphql(PATH, "{ a }", "{}"), "requests")] {
        let refusal = dialect.charges(&request, &BTreeMap::from([(name.to_owned(), 3)])).unwrap_err();
        assert_eq!(refusal.field, format!("cost.{name}"));
    }
}

/// LIM-4, LIM-12: where the base URL ends changes nothing: GraphQL takes points, and `THROTTLED` in
/// a 200 is obeyed.
#[test]
fn lim_4_a_base_url_below_admin_changes_nothing() {
    let throttled = r#"{"errors":[{"message":"","extensions":{"code":"THROTTLED"}}]}"#;
    for (base, path) in [
        ("http://l/shops/acme/admin/api/2026-04", "/graphql.json"),
        ("http://l/shops/acme/admin", "/api/2026-04/graphql.json"),
    ] {
        let dialect = ShopifyDialect::new("acme", 1).with_base_url(base);
        let request = || graphql(path, "mutation { refundCreate(input: {}) { refund { id } } }", "{}");
        let charges = dialect.charges(&request(), &BTreeMap::new()).unwrap();
        assert_eq!(&*charges[1].limit, "acme/points", "{base}");
        assert_eq!(
            dialect.on_unknown(&request()),
            OnUnknown::Repeat,
            "the version is in the base URL: {base}"
        );
        let meaning = meaning(&dialect, request(), &answer(200, HeaderMap::new(), throttled));
        assert!(matches!(meaning.verdict, Verdict::Throttled { .. }), "{base}");
        let rest = HttpRequest::new(Method::Get, "/products.json");
        let charges = dialect.charges(&rest, &BTreeMap::new()).unwrap();
        assert_eq!(&*charges[1].limit, "acme/requests", "{base}");
    }
}

/// LIM-13: a shop with slots keeps the workers of others free: each of its calls takes one, and a
/// cost given for it is ignored.
#[test]
fn lim_13_a_shop_may_have_places_for_its_calls() {
    let dialect = ShopifyDialect::new("acme", 1).with_at_once(Some(4));
    assert_eq!(dialect.limits()[4], (Arc::from("acme/at_once"), LimitShape::Cap { at_once: 4 }));
    for request in [rest(Method::Get), graphql(PATH, "{ a { id } }", "{}")] {
        let charges = dialect.charges(&request, &BTreeMap::from([("at_once".to_owned(), 3)])).unwrap();
        assert_eq!(charges[2], Charge::tokens("acme/at_once", 1));
        let without = ShopifyDialect::new("acme", 1);
        assert!(without.charges(&request, &BTreeMap::from([("at_once".to_owned(), 3)])).is_err());
        assert_eq!(without.charges(&request, &BTreeMap::new()).unwrap().len(), 2);
    }
}

/// LIM-8: the first call of a shape is charged an estimate, the second the reported cost; a cost
/// from the caller takes precedence.
#[test]
fn lim_8_the_second_call_is_charged_what_was_said() {
    let dialect = ShopifyDialect::new("acme", 1);
    let query =
        "query($n: Int!, $q: String) { products(first: $n, query: $q) { nodes { id images { url } } } }";
    assert_eq!(points(&dialect, query, r#"{"n":10}"#), 22);
    let body =
        r#"{"data":{"products":{}},"extensions":{"cost":{"requestedQueryCost":37,"actualQueryCost":9}}}"#;
    meaning(&dialect, graphql(PATH, query, r#"{"n":10}"#), &answer(200, HeaderMap::new(), body));
    assert_eq!(points(&dialect, query, r#"{"n":10,"q":"other"}"#), 37);
    assert_eq!(points(&dialect, query, r#"{"n":20}"#), 42, "another number is another shape");
    let said = BTreeMap::from([("points".to_owned(), 5_000)]);
    let charges = dialect.charges(&graphql(PATH, query, r#"{"n":10}"#), &said).unwrap();
    assert_eq!(charges[1], Charge::tokens("acme/points", 5_000));
}

/// LIM-9: an estimate prevents no call: it is at most what one query may cost, and is marked as an
/// estimate. A cost from the caller is none.
#[test]
fn lim_9_an_estimate_refuses_nothing() {
    let dialect = ShopifyDialect::new("acme", 1);
    let huge = "{ a(first: 250) { nodes { b(first: 250) { nodes { id } } } } }";
    assert_eq!(points(&dialect, huge, "{}"), 1_000);
    assert_eq!(points(&dialect, "{ __typename }", "{}"), 1);
    assert_eq!(points(&dialect, "this is no query", "{}"), UNREADABLE_COST);
    let estimated = |cost: &BTreeMap<String, u64>| {
        dialect.charges(&graphql(PATH, huge, "{}"), cost).unwrap()[1].estimated
    };
    assert!(estimated(&BTreeMap::new()) && !estimated(&BTreeMap::from([("points".to_owned(), 3)])));
}

/// OPS-23: a read is repeated, a mutation only with a key; and the key is the operation's.
#[test]
fn ops_23_a_mutation_is_repeated_only_with_a_key() {
    let dialect = ShopifyDialect::new("acme", 1);
    let on_unknown = |path: &str, query: &str| dialect.on_unknown(&graphql(path, query, "{}"));
    let refund = "mutation { refundCreate(input: {}) { refund { id } } }";
    assert_eq!(on_unknown(PATH, "{ shop { id } }"), OnUnknown::Repeat);
    assert_eq!(on_unknown(PATH, refund), OnUnknown::Repeat);
    assert_eq!(on_unknown("/admin/api/2025-10/graphql.json", refund), OnUnknown::Ask);
    assert_eq!(on_unknown(PATH, "mutation { productCreate { id } }"), OnUnknown::Ask);
    assert_eq!(on_unknown(PATH, "no query"), OnUnknown::Ask);
    let only_reads = |query: &str| dialect.is_read_only(&graphql(PATH, query, "{}"));
    assert!(only_reads("{ shop { id } }") && dialect.is_read_only(&rest(Method::Get)));
    assert!(!only_reads(refund) && !only_reads("no query") && !dialect.is_read_only(&rest(Method::Put)));
    assert_eq!(dialect.on_unknown(&rest(Method::Post)), OnUnknown::Ask);
    assert_eq!(dialect.on_unknown(&rest(Method::Put)), OnUnknown::Repeat);

    let mut request = graphql(PATH, refund, r#"{"a":1.10}"#);
    drop(dialect.prepare_request(&mut request, "op-1"));
    let sent = String::from_utf8(request.body.into_bytes().to_vec()).unwrap();
    let expected = r#"refundCreate(input: {}) @idempotent(key: \"op-1\") { refund"#;
    assert!(sent.contains(expected) && sent.contains(r#""variables":{"a":1.10}"#), "{sent}");
    let mut request = graphql(PATH, "{ shop { id } }", "{}");
    let before = format!("{:?}", request.body);
    drop(dialect.prepare_request(&mut request, "op-1"));
    assert_eq!(format!("{:?}", request.body), before, "nothing else is touched");
}

/// OPS-23: a response that may hide a change makes the outcome unknown; a read is retried.
#[test]
fn ops_23_a_failure_may_hide_a_change() {
    let dialect = ShopifyDialect::new("acme", 1);
    let mutation = || graphql(PATH, "mutation { productCreate { id } }", "{}");
    for status in [500, 502, 504] {
        let answer = answer(status, HeaderMap::new(), "");
        assert!(matches!(meaning(&dialect, mutation(), &answer).verdict, Verdict::Unknown(_)), "{status}");
        let read = meaning(&dialect, graphql(PATH, "{ shop { id } }", "{}"), &answer);
        assert!(matches!(read.verdict, Verdict::Retry { .. }), "{status}");
    }
    let unavailable = answer(503, HeaderMap::new(), "");
    assert!(matches!(meaning(&dialect, mutation(), &unavailable).verdict, Verdict::Retry { .. }));
}
