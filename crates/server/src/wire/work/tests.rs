//! What workers send is read or refused by field, and what they get is what was kept.

use tidegate::{FaultClass, Time, Verdict, WorkReport};
use tidegate_core::bounds::AWAIT_MAX;
use tidegate_core::{Blame, OperationId, Seq};

use super::report::stored_memo;
use super::*;

fn kinds() -> RemoteKinds {
    RemoteKinds { custom: ["resize".to_owned()].into(), ..RemoteKinds::default() }
}

fn settle_one(more: &str) -> Result<WorkReport> {
    let id = OperationId::new(Time::from_millis(7), 0, Seq(1));
    let body = format!(r#"{{"settlements":[{{"id":"{id}","fence":3,{more}}}]}}"#);
    parse_settle(body.as_bytes(), Time::ZERO).unwrap().pop().unwrap()
}

#[test]
fn a_take_is_read_or_refused_by_field() {
    let (request, wait) = parse_take(br#"{"kinds":["resize"]}"#, &kinds()).unwrap();
    assert_eq!((request.max, request.lease, wait), (1, Duration::from_secs(30), Duration::from_secs(20)));
    for (json, field) in [
        ("{}", "kinds"),
        (r#"{"kinds":[]}"#, "kinds"),
        (r#"{"kinds":"resize"}"#, "kinds"),
        (r#"{"kinds":["http"]}"#, "kinds"),
        (r#"{"kinds":["resize"],"max":0}"#, "max"),
        (r#"{"kinds":["resize"],"wait_ms":60001}"#, "wait_ms"),
        (r#"{"kinds":["resize"],"lease_ms":999}"#, "lease_ms"),
        (r#"{"kinds":["resize"],"lease":1}"#, "lease"),
    ] {
        let refused = parse_take(json.as_bytes(), &kinds()).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some(field), "{json}");
    }
}

#[test]
fn reports_are_read_or_refused_one_by_one() {
    let done = settle_one(r#""outcome":"succeeded","result":[1.10]"#).unwrap().outcome;
    assert_eq!(done.verdict, Verdict::Done);
    assert!(done.body.ends_with(br#""body":[1.10]}"#), "{:?}", done.body);
    let whole = settle_one(r#""outcome":"succeeded","response":{"status":204}"#).unwrap().outcome;
    assert_eq!(whole.body, r#"{"status":204}"#);
    let throttled = settle_one(r#""outcome":"throttled","after_ms":5,"limit":"slots""#).unwrap().outcome;
    assert!(matches!(
        throttled.verdict,
        Verdict::Throttled { after: Some(after), scope: Some(scope), .. }
            if after == Duration::from_millis(5) && &*scope == "slots"
    ));
    let awaiting = settle_one(r#""outcome":"awaiting","external_id":"j-1","memo":{"a":1}"#).unwrap().outcome;
    assert!(matches!(awaiting.verdict, Verdict::Accepted { poll_after: None, timeout: AWAIT_MAX }));
    assert_eq!(awaiting.job.unwrap().memo, r#"{"a":1}"#);
    let failed = settle_one(r#""outcome":"failed","external_id":"j-1","cost":3000"#).unwrap().outcome;
    assert_eq!(failed.job.map(|job| (job.external_id, job.cost)), Some((Some("j-1".into()), Some(3_000))));
    for (blame, meant) in [
        ("null", Blame::ByClass),
        ("[]", Blame::NoOne),
        (r#"["acme/health"]"#, Blame::Limit("acme/health".into())),
    ] {
        let report = settle_one(&format!(r#""outcome":"retry","blame":{blame}"#)).unwrap();
        assert_eq!((report.outcome.blame, report.outcome.job), (meant, None), "{blame}");
    }
    let hints = settle_one(r#""outcome":"succeeded","hints":[{"limit":"a","remaining":2.5}]"#).unwrap();
    assert_eq!(hints.outcome.hints[0].remaining, Some(2_500_000));
    for (more, field) in [
        (r#""x":1"#, "x"),
        (r#""outcome":"done""#, "outcome"),
        (r#""result":1"#, "outcome"),
        (r#""outcome":"succeeded","result":1,"response":{}"#, "response"),
        (r#""outcome":"failed","fault":{"class":"odd","message":"x"}"#, "fault.class"),
        (r#""outcome":"retry","after_ms":-1"#, "after_ms"),
        (r#""outcome":"failed","fault":{"class":"conflict"}"#, "fault.message"),
        (r#""outcome":"failed","fault":"x""#, "fault"),
        (r#""outcome":"awaiting","timeout_ms":0"#, "timeout_ms"),
        (r#""outcome":"retry","blame":"acme/health""#, "blame"),
        (r#""outcome":"retry","blame":["a","b"]"#, "blame"),
        (r#""outcome":"retry","cost":-1"#, "cost"),
        (r#""outcome":"succeeded","hints":[{"limit":"a"},{"remaining":1}]"#, "hints[1].limit"),
        (r#""outcome":"succeeded","hints":[{"limit":"a","capacity":0}]"#, "hints[0].capacity"),
        (r#""outcome":"succeeded","hints":[7]"#, "hints[0]"),
    ] {
        assert_eq!(settle_one(more).unwrap_err().field.as_deref(), Some(field), "{more}");
    }
    let mixed = br#"{"settlements":[7,{"id":"op","fence":1,"outcome":"succeeded"}]}"#;
    assert!(parse_settle(mixed, Time::ZERO).unwrap().iter().all(Result::is_err));
    assert!(parse_settle(b"{}", Time::ZERO).is_err());
}

/// A fault without a class has that of its outcome, with and without a message.
#[test]
fn a_fault_without_a_class_has_that_of_its_outcome() {
    for (outcome, class) in [
        ("failed", FaultClass::Validation),
        ("retry", FaultClass::Transient),
        ("throttled", FaultClass::RateLimited),
        ("unknown", FaultClass::Transient),
    ] {
        for fault in ["", r#","fault":{"message":"x"}"#] {
            let report = settle_one(&format!(r#""outcome":"{outcome}"{fault}"#)).unwrap();
            let (Verdict::Rejected(fault)
            | Verdict::Unknown(fault)
            | Verdict::Retry { fault, .. }
            | Verdict::Throttled { fault, .. }) = report.outcome.verdict
            else {
                panic!("{outcome}");
            };
            assert_eq!(fault.class, class, "{outcome}");
        }
    }
}

#[test]
fn a_memo_that_is_no_json_is_a_string() {
    let read = |memo: &str| memo_json(memo.as_bytes()).map(|json| json.get().to_owned());
    assert_eq!(read(r#"{"a":1.10}"#).as_deref(), Some(r#"{"a":1.10}"#));
    assert_eq!(read("/jobs/7\n{}").as_deref(), Some(r#""/jobs/7\n{}""#));
    assert_eq!((read(""), memo_json(&[0xff]).is_none()), (None, true));
    for json in [r#"{"a":1.10}"#, r#""/jobs/7\n{}""#, r#""7""#, "null", "[]", r#""{}""#] {
        let stored = stored_memo(&RawValue::from_string(json.to_owned()).unwrap());
        assert_eq!(memo_json(&stored).unwrap().get(), json);
    }
    assert_eq!(stored_memo(&RawValue::from_string(r#""/jobs/7""#.to_owned()).unwrap()), "/jobs/7");
}
