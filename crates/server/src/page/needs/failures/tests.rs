//! Recent failures by source and by cause.

use serde_json::json;

use super::*;
use crate::page::words::Language;

fn failed(id: &str, second: u32, class: &str, message: &str) -> Value {
    let at = format!("1970-01-01T00:00:{second:02}Z");
    json!({ "id": id, "group": "g&h", "finished_at": at, "fault": { "class": class, "message": message } })
}

fn card(failed: &[Value]) -> String {
    let view = View::at(Language::English, Time::from_millis(60_000));
    let sources = by_source(failed);
    let (source, failures) = &sources[0];
    failure_card(&view, *source, failures).into_string()
}

#[test]
fn failures_are_counted_by_source() {
    let failed = [
        json!({ "id": "op_2", "group": "a" }),
        json!({ "id": "op_3", "group": "b" }),
        json!({ "id": "op_1", "group": "b" }),
        json!({ "id": "op_0", "group": "generation:x", "kind": "generation" }),
    ];
    let sources = by_source(&failed);
    let shown: Vec<_> =
        sources.iter().map(|(source, all)| (*source, all.count, text(all.last, "id"))).collect();
    let (a, b) = (FailureSource::Group("a"), FailureSource::Group("b"));
    let generations = FailureSource::Generations;
    assert_eq!(shown, [(b, 2, "op_3"), (generations, 1, "op_0"), (a, 1, "op_2")], "each with its newest");
}

/// OPS-24: the card of failures names the one that ended last, which may be one that was re-run,
/// and each cause with its number and its own button.
#[test]
fn ops_24_failures_are_run_again_by_cause() {
    let html = card(&[
        failed("op_3", 5, "transient", "no"),
        failed("op_2", 30, "validation", "bad & odd"),
        failed("op_1", 4, "transient", "no"),
    ]);
    for part in [
        "Last fault: bad &amp; odd",
        "<b>3</b>, the first <time",
        "56 s</time> ago",
        "<b>2</b> × no</p>",
        "<b>1</b> × bad &amp; odd (likely to fail again)",
        "aria-label=\"Re-run 2 no\"",
        "/actions/dismiss?subject=group%3Dg%2526h%26through%3D1970-01-01T00%253A00%253A30.000Z",
        ">Re-run 1</a>",
        "/operations?state=failed&amp;group=g%26h&amp;finished_after=1970-01-01T00%3A00%3A04.000Z\"",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let subject = "state=failed&group=g%26h&finished_after=1970-01-01T00%3A00%3A04.000Z\
                   &fault_class=validation&fault_message=bad%20%26%20odd";
    assert!(html.contains(&Action::RerunAll.href(subject)), "{html}");
}

/// OPS-24: one cause needs no list; many are counted, and have one button.
#[test]
fn ops_24_one_cause_is_the_card_and_many_are_counted() {
    let one = card(&[failed("op_1", 4, "not_found", "no such order")]);
    assert!(one.contains("<p>likely to fail again</p>") && !one.contains(" × no such order</p>"), "{one}");
    let passing = card(&[failed("op_1", 4, "transient", "no")]);
    assert!(!passing.contains("fail again") && passing.contains(">Re-run 1</a>"), "{passing}");
    let many: Vec<Value> =
        (0..5).map(|nth| failed("op_1", 4, "transient", &format!("order {nth} is not here"))).collect();
    let html = card(&many);
    assert!(html.contains("+2 other causes") && html.contains(">Re-run 5</a>"), "{html}");
    assert_eq!(html.matches(">Re-run 1</a>").count(), CAUSES_SHOWN, "{html}");
}
