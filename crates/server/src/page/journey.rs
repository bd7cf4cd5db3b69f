//! The way of an operation as its page shows it: the steps from its acceptance to its answer, each
//! with the time spent in it as far as it is known.

use std::cmp::Ordering;
use std::time::Duration;

use maud::{Markup, html};
use serde_json::Value;

use super::decision::Decision;
use super::parts::{operation_link, span_in};
use super::runs::attempt_number;
use super::view::{View, items, number, text, time_in};

/// A step of the way of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Accepted,
    Turn,
    Limit,
    Sent,
    Answer,
    /// An operator decides. Most operations go without.
    Decision,
}

impl Step {
    /// The field with its time; the first step takes none.
    const fn time(self) -> &'static str {
        match self {
            Self::Accepted => "",
            Self::Turn => "turn_ms",
            Self::Limit => "limit_ms",
            Self::Sent => "sent_ms",
            Self::Answer => "answer_ms",
            Self::Decision => "decision_ms",
        }
    }
}

/// How far a step of the way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Past,
    Current,
    Ahead,
}

impl Progress {
    const fn class(self) -> &'static str {
        match self {
            Self::Past => "past",
            Self::Current => "current",
            Self::Ahead => "ahead",
        }
    }
}

/// What is known of the way of an operation.
#[derive(Clone, Copy)]
pub(super) struct JourneyData<'a> {
    pub operation: &'a Value,
    pub why: &'a Value,
    /// The decision that ended it, if one did.
    pub decision: Option<Decision<'a>>,
    /// How often it was run; all of the way is that of the last run.
    pub run: u64,
}

/// The steps of an operation, in order, and the current one; `None` when it has ended.
fn way(data: &JourneyData<'_>) -> (Vec<Step>, Option<Step>) {
    let &JourneyData { operation, why, decision, .. } = data;
    let mut steps = vec![Step::Accepted, Step::Turn, Step::Limit, Step::Sent, Step::Answer];
    let is_decided = decision.is_some() || number(&operation["journey"], "decision_ms") > 0;
    let current = match (text(operation, "state"), text(why, "waiting_for")) {
        ("succeeded" | "failed" | "canceled", _) => None,
        ("unknown", _) => Some(Step::Decision),
        ("running", _) => Some(Step::Sent),
        ("queued", "turn") => Some(Step::Turn),
        _ if why["behind"].is_string() => Some(Step::Turn),
        // The first one of a held group has had its turn.
        (_, "person") if is_decided => {
            steps.insert(2, Step::Decision);
            return (steps, Some(Step::Decision));
        }
        _ => Some(Step::Limit),
    };
    if was_never_sent(operation) {
        // There is no answer to what was not sent.
        steps.retain(|step| *step != Step::Answer);
    }
    steps.extend((is_decided || current == Some(Step::Decision)).then_some(Step::Decision));
    (steps, current)
}

/// Whether an operation has ended without an attempt, since it was accepted or last re-run. A fault
/// may be what an attempt left of which nothing else is known any more.
fn was_never_sent(operation: &Value) -> bool {
    let journey = &operation["journey"];
    matches!(text(operation, "state"), "canceled" | "failed")
        && operation["fault"].is_null()
        && number(operation, "attempt") == 0
        && items(operation, "attempts").is_empty()
        && ["sent_ms", "answer_ms"].iter().all(|time| journey[*time].is_null())
}

/// How far each step of this operation is.
fn progress_of(data: &JourneyData<'_>, steps: &[Step], current: Option<Step>) -> Vec<(Step, Progress)> {
    let operation = data.operation;
    let mut steps = progress(steps, current);
    if data.decision.is_some() {
        // No answer came, and none is awaited any more.
        let answer = steps.iter_mut().find(|(step, _)| *step == Step::Answer);
        answer.into_iter().for_each(|(_, progress)| *progress = Progress::Ahead);
    }
    if was_never_sent(operation) {
        // It ended before these steps were done, or it is not known that they were.
        let is_turn_known = operation["journey"][Step::Turn.time()].is_u64();
        for (step, progress) in &mut steps {
            match step {
                Step::Turn if is_turn_known => {}
                Step::Turn | Step::Limit | Step::Sent => *progress = Progress::Ahead,
                _ => {}
            }
        }
    }
    steps
}

/// How far each step is.
fn progress(steps: &[Step], current: Option<Step>) -> Vec<(Step, Progress)> {
    // A decision that was made is past, whatever comes after it.
    let place = steps.iter().position(|step| Some(*step) == current).unwrap_or(steps.len());
    let of = |(nth, step): (usize, &Step)| match nth.cmp(&place) {
        Ordering::Equal => (*step, Progress::Current),
        Ordering::Less => (*step, Progress::Past),
        Ordering::Greater if *step == Step::Decision => (*step, Progress::Past),
        Ordering::Greater => (*step, Progress::Ahead),
    };
    steps.iter().enumerate().map(of).collect()
}

/// The way of an operation, with the time spent as far as it is known.
pub(super) fn journey(view: &View, data: &JourneyData<'_>) -> Markup {
    let words = view.words;
    let (steps, current) = way(data);
    html! {
        ol.journey aria-label=(words.journey) {
            @for (step, progress) in progress_of(data, &steps, current) {
                li class=(progress.class()) aria-current=[(progress == Progress::Current).then_some("step")] {
                    b { (words.steps[step as usize]) } span { (step_note(view, step, current, data)) }
                    @if step != Step::Accepted && progress != Progress::Ahead {
                        @let time = &data.operation["journey"][step.time()];
                        span.quiet title=[time.is_null().then_some(words.not_recorded_about)] { (step_time(view, time)) }
                    }
                    @if is_last(step, data) && let Some(spent) = spent_in_all(view, data.operation) {
                        span.quiet { (words.total) " " (spent) }
                    }
                }
            }
        }
    }
}

/// Whether the way of an operation ends with a step, as far as it has come.
fn is_last(step: Step, data: &JourneyData<'_>) -> bool {
    match step {
        Step::Sent => was_never_sent(data.operation),
        Step::Answer => data.decision.is_none(),
        Step::Decision => data.decision.is_some(),
        Step::Accepted | Step::Turn | Step::Limit => false,
    }
}

/// The time since an operation was accepted, until it ended.
fn spent_in_all(view: &View, operation: &Value) -> Option<String> {
    let accepted = time_in(operation, "created_at")?;
    let until = time_in(operation, "finished_at").unwrap_or(view.now);
    Some(time_spent(view, until.since(accepted)))
}

/// What is known of a step apart from its time.
fn step_note(view: &View, step: Step, current: Option<Step>, data: &JourneyData<'_>) -> Markup {
    let &JourneyData { operation, why, decision, run } = data;
    let (words, is_current) = (view.words, current == Some(step));
    let (state, attempt) = (text(operation, "state"), number(operation, "attempt"));
    let accepted = time_in(operation, "created_at");
    let is_answered = current.is_none() || state == "unknown";
    let until = time_in(why, "until").filter(|until| *until > view.now);
    html! {
        @match step {
            Step::Accepted => { @if let Some(at) = accepted { (view.ago(at)) " " (words.ago) } }
            Step::Turn => {
                @if let Some(behind) = why["behind"].as_str().filter(|_| is_current) { (words.behind) " " (operation_link(behind)) }
            }
            Step::Limit => {
                @if is_current {
                    (words.waits_for) " " (words.wait(text(why, "waiting_for"))) @if let Some(name) = why["name"].as_str() { ": " (name) }
                    @if let Some(until) = until { ", " (view.within(until)) }
                }
            }
            Step::Sent if was_never_sent(operation) => {
                span title=(words.not_sent_about) { (words.not_sent) }
            }
            Step::Sent if attempt > 0 && run > 1 => (attempt_number(view.language.words(), run, run, attempt)),
            Step::Sent => { @if attempt > 0 { (words.attempt) " " (attempt) } }
            Step::Answer if decision.is_some() => (words.none_came),
            Step::Answer => {
                @if is_answered { (view.state(state)) }
            }
            Step::Decision => {
                @if let Some(decision) = decision {
                    (decision.label(view))
                    @if let Some(by) = decision.by() { ", " (words.decided_by) " " (by) }
                    } @else if is_current { (words.waits_for) " " (words.wait(text(why, "waiting_for"))) }
            }
        }
    }
}

/// The time of a step, or that it was not recorded.
fn step_time(view: &View, millis: &Value) -> String {
    match millis.as_u64() {
        None => view.words.not_recorded.to_owned(),
        Some(millis) => time_spent(view, Duration::from_millis(millis)),
    }
}

/// How long something took, in milliseconds if it was short.
pub(super) fn time_spent(view: &View, time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1_000 => format!("{millis} {}", view.words.millisecond),
        _ => span_in(time, view.language.words().units),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::Time;

    use super::super::words::Language;
    use super::*;

    fn data<'a>(operation: &'a Value, why: &'a Value) -> JourneyData<'a> {
        JourneyData { operation, why, decision: Decision::of(operation, &[]), run: 1 }
    }

    #[test]
    fn an_operation_is_at_one_place_of_its_way() {
        let table = [
            ("queued", json!({ "waiting_for": "turn", "behind": "op_1" }), Some(Step::Turn)),
            ("waiting", json!({ "waiting_for": "bucket" }), Some(Step::Limit)),
            ("queued", json!({ "waiting_for": "worker" }), Some(Step::Limit)),
            ("queued", json!({ "waiting_for": "person" }), Some(Step::Limit)),
            ("running", json!({ "waiting_for": "running" }), Some(Step::Sent)),
            ("unknown", json!({ "waiting_for": "person" }), Some(Step::Decision)),
            ("succeeded", json!({ "waiting_for": "nothing" }), None),
        ];
        for (state, why, expected) in table {
            assert_eq!(way(&data(&json!({ "state": state }), &why)).1, expected, "{state} {why}");
        }
        let steps = [Step::Accepted, Step::Turn, Step::Limit];
        let progress: Vec<_> = progress(&steps, Some(Step::Turn)).into_iter().map(|(_, far)| far).collect();
        assert_eq!(progress, [Progress::Past, Progress::Current, Progress::Ahead]);
    }

    /// OPS-23: what ended before an attempt was not sent, and none of that is shown as done.
    #[test]
    fn ops_23_what_was_never_sent_says_so() {
        let view = View::at(Language::English, Time::ZERO);
        let shown = |operation: &Value| {
            journey(&view, &data(operation, &json!({ "waiting_for": "nothing" }))).into_string()
        };
        for state in ["canceled", "failed"] {
            let unsent = json!({ "state": state, "attempt": 0, "attempts": [], "journey": {} });
            let html = shown(&unsent);
            assert!(html.contains("not sent") && !html.contains("not recorded"), "{html}");
            assert!(!html.contains("Answer") && html.matches("class=\"past\"").count() == 1, "{html}");
        }
        let job = json!([{ "attempt": 1, "state": "unknown" }]);
        for sent in [
            json!({ "state": "canceled", "attempt": 1, "journey": {} }),
            json!({ "state": "canceled", "attempt": 0, "attempts": job, "journey": {} }),
            json!({ "state": "canceled", "attempt": 0, "journey": { "sent_ms": 3 } }),
            json!({ "state": "succeeded", "attempt": 0, "journey": {} }),
            json!({ "state": "canceled", "attempt": 0, "journey": {}, "fault": { "class": "transient" } }),
        ] {
            assert!(!shown(&sent).contains("not sent"), "{sent}");
        }
    }

    /// OPS-23, OPS-25: the wait for an operator is a step of its own, where there was one.
    #[test]
    fn ops_23_ops_25_a_decision_is_a_step() {
        let operation =
            |state: &str, waited: u64| json!({ "state": state, "journey": { "decision_ms": waited } });
        let (nothing, person) = (json!({ "waiting_for": "nothing" }), json!({ "waiting_for": "person" }));
        assert!(!way(&data(&operation("succeeded", 0), &nothing)).0.contains(&Step::Decision));
        let (steps, current) = way(&data(&operation("unknown", 0), &person));
        assert_eq!((steps.last(), current), (Some(&Step::Decision), Some(Step::Decision)));
        for (language, said) in
            [(Language::English, ">waits for an operator<"), (Language::Russian, ">ждёт оператора<")]
        {
            let view = View::at(language, Time::ZERO);
            let html = journey(&view, &data(&operation("unknown", 0), &person)).into_string();
            assert!(html.contains(said), "{html}");
        }
        let (steps, current) = way(&data(&operation("queued", 7), &person));
        assert_eq!((steps[2], current), (Step::Decision, Some(Step::Decision)), "its group is held");
        let (steps, current) = way(&data(&operation("running", 7), &json!({ "waiting_for": "running" })));
        assert_eq!(progress(&steps, current).last(), Some(&(Step::Decision, Progress::Past)));
        let view = View::at(Language::English, Time::ZERO);
        let html = journey(&view, &data(&operation("succeeded", 12_345), &nothing)).into_string();
        assert!(html.contains("Decision") && html.contains("12 s"), "{html}");
    }

    /// OPS-23: what an operator decided is no answer, and a way after a re-run says which it is.
    #[test]
    fn ops_23_a_decision_is_no_answer() {
        let view = View::at(Language::English, Time::ZERO);
        let attempts = json!([{ "attempt": 1, "state": "unknown" }]);
        let decided = json!({ "state": "succeeded", "attempt": 1, "attempts": attempts, "journey": {} });
        let nothing = json!({ "waiting_for": "nothing" });
        let html = journey(&view, &JourneyData { run: 2, ..data(&decided, &nothing) }).into_string();
        assert!(html.contains("none came") && html.contains("It happened"), "{html}");
        assert!(!html.contains("succeeded</span>") && html.contains("run 2, attempt 1"), "{html}");
        assert_eq!(html.matches("class=\"ahead\"").count(), 1, "the answer: {html}");
    }
}
