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

/// OPS-24: the card of failures has each cause with its number, since when, the operation that
/// ended last, which may be one that was re-run, and its own button.
#[test]
fn ops_24_failures_are_run_again_by_cause() {
    let html = card(&[
        failed("op_12345673", 5, "transient", "no"),
        failed("op_12345672", 30, "validation", "bad & odd"),
        failed("op_12345671", 4, "transient", "no"),
    ]);
    for part in [
        "failed within a day: <b>3</b>",
        "<b>2</b> × no</p>",
        "first <time datetime=\"1970-01-01T00:00:04.000Z\"",
        "56 s</time> ago, last <time datetime=\"1970-01-01T00:00:05.000Z\"",
        "/operations/op_12345673",
        "<b>1</b> × bad &amp; odd</p>",
        " · <b>likely to fail again</b> ",
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

/// OPS-24: the number of one failure is not said twice; of many causes the rarest unfold, and all
/// have one more button.
#[test]
fn ops_24_one_cause_is_the_card_and_the_rarest_of_many_unfold() {
    let one = card(&[failed("op_1", 4, "not_found", "no such order")]);
    assert!(one.contains("likely to fail again") && !one.contains(" × no such order"), "{one}");
    let passing = card(&[failed("op_1", 4, "transient", "no")]);
    assert!(!passing.contains("fail again") && passing.contains(">Re-run 1</a>"), "{passing}");
    let many: Vec<Value> =
        (0..7).map(|nth| failed("op_1", 4, "transient", &format!("order {nth} is not here"))).collect();
    let html = card(&many);
    let (shown, unfolded) = html.split_once("<details").unwrap();
    assert_eq!(shown.matches(">Re-run 1</a>").count(), CAUSES_SHOWN, "{html}");
    assert!(unfolded.contains("More causes: 4") && unfolded.contains(">Re-run 7</a>"), "{html}");
    assert_eq!(unfolded.matches(">Re-run 1</a>").count(), 4, "{html}");
}

/// OPS-24: a button keeps its place while failures are counted, whichever cause comes more often.
#[test]
fn ops_24_causes_stay_in_the_order_in_which_they_came() {
    let order = |failed: &[Value]| {
        let sources = by_source(failed);
        sources[0].1.causes.iter().map(|cause| cause.message.to_owned()).collect::<Vec<_>>()
    };
    let mut all = vec![failed("op_1", 4, "transient", "b"), failed("op_2", 5, "transient", "a")];
    assert_eq!(order(&all), ["b", "a"]);
    all.extend((6..9).map(|second| failed("op_3", second, "transient", "a")));
    assert_eq!(order(&all), ["b", "a"]);
    // The oldest of more than there is room for is the rarest, and gives way.
    all.extend(
        (10..12).flat_map(|at| [1, 2].map(|nth| failed("op_4", at + nth, "transient", &format!("c{at}")))),
    );
    assert_eq!(order(&all), ["a", "c10", "c11", "b"]);
}
