//! The decision that ended an operation: no answer to its call came, and an operator said what
//! became of it. The operation itself has that it was decided; the audit log has who did, and why.

use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::Time;
use tidegate_core::fault::RESOLVED_AS_FAILED;

use super::action::Action;
use super::audit::{action_of, is_done};
use super::view::{View, items, number, text, time_in};

/// A decision that ended an operation.
#[derive(Clone, Copy)]
pub(super) struct Decision<'a> {
    action: Action,
    ended_at: Option<Time>,
    /// The command, as far as the audit log has it.
    command: Option<&'a Value>,
}

impl<'a> Decision<'a> {
    /// The decision that ended an operation, if one did; `commands` are those about it, newest
    /// first.
    pub(super) fn of(operation: &Value, commands: &'a [Value]) -> Option<Self> {
        let (action, of_several) = decided_as(operation)?;
        let is_it = |entry: &&Value| {
            is_done(entry) && action_of(entry).is_some_and(|it| it == action || it == of_several)
        };
        let command = commands.iter().find(is_it);
        Some(Self { action, ended_at: time_in(operation, "finished_at"), command })
    }

    /// What was decided, in the words of the button.
    pub(super) fn label(&self, view: &View) -> &'static str {
        view.words.action(self.action).label
    }

    /// Who decided, if that is known.
    pub(super) fn by(&self) -> Option<&'a str> {
        self.command.map(|entry| text(entry, "by"))
    }

    /// What was decided, by whom, when and why, as far as it is known.
    pub(super) fn sentence(&self, view: &View) -> Markup {
        let at = self.command.and_then(|entry| time_in(entry, "at")).or(self.ended_at);
        let reason = self.command.map_or("", |entry| text(entry, "reason"));
        html! {
            p.sentence {
                (view.words.decided_as) ": " b { (self.label(view)) }
                @if let Some(by) = self.by() { ", " (view.words.decided_by) " " b { (by) } }
                @if let Some(at) = at { ", " (view.ago(at)) " " (view.words.ago) }
                ". " (view.words.no_answer_came)
            }
            @if !reason.is_empty() { p { (view.words.reason) ": " (reason) } }
        }
    }
}

/// What an operator decided about an operation that ended by that, and the same about several.
fn decided_as(operation: &Value) -> Option<(Action, Action)> {
    let last = items(operation, "attempts").last();
    // A report that came late would have replaced the state of the attempt.
    let is_unanswered = last.is_some_and(|last| {
        text(last, "state") == "unknown" && number(last, "attempt") == number(operation, "attempt")
    });
    match text(operation, "state") {
        "succeeded" if is_unanswered => Some((Action::Happened, Action::AllHappened)),
        "failed" if is_decided_failure(operation) => Some((Action::DidNotHappen, Action::NoneHappened)),
        "canceled" if is_unanswered => Some((Action::Cancel, Action::CancelAll)),
        _ => None,
    }
}

/// Whether an operator said that it failed.
pub(super) fn is_decided_failure(operation: &Value) -> bool {
    text(&operation["fault"], "message").starts_with(RESOLVED_AS_FAILED)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::page::words::Language;

    /// OPS-23: what an operator decided says who did, when and why, and that no answer came.
    #[test]
    fn ops_23_a_decision_says_who_decided_what() {
        let unknown = json!([{ "attempt": 1, "state": "unknown" }]);
        let happened = json!({
            "state": "succeeded", "attempt": 1, "attempts": unknown, "finished_at": "1970-01-01T00:01:00Z",
        });
        let entry = |by: &str, detail: &str, status: u64| {
            json!({
                "kind": "operations", "action": "resolve", "detail": detail, "by": by, "status": status,
                "reason": "seen in the shop", "at": "1970-01-01T00:01:00Z",
            })
        };
        let commands = [
            entry("ben", "as succeeded", 409),
            entry("eve", "as repeat", 200),
            entry("anna", "as succeeded", 200),
        ];
        let view = View::at(Language::English, Time::from_millis(180_000));
        let shown = |operation: &Value, commands: &[Value]| {
            Decision::of(operation, commands).map(|it| it.sentence(&view).into_string()).unwrap_or_default()
        };
        let html = shown(&happened, &commands);
        for part in
            ["<b>It happened</b>", "by <b>anna</b>", "2 min</time> ago", "seen in the shop", "No answer"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        let html = shown(&happened, &[]);
        assert!(html.contains("It happened") && html.contains("2 min") && !html.contains(", by"), "{html}");
        let failed = |message: &str| json!({ "state": "failed", "fault": { "message": message } });
        assert!(shown(&failed(RESOLVED_AS_FAILED), &[]).contains("It did not happen"));
        let canceled = json!({ "state": "canceled", "attempt": 1, "attempts": unknown });
        assert!(shown(&canceled, &[]).contains("Cancel"));
        let answered = json!([{ "attempt": 1, "state": "unknown" }, { "attempt": 2, "state": "succeeded" }]);
        for undecided in [
            json!({ "state": "unknown", "attempt": 1, "attempts": unknown }),
            json!({ "state": "succeeded", "attempt": 2, "attempts": unknown }),
            json!({ "state": "succeeded", "attempt": 2, "attempts": answered }),
            json!({ "state": "succeeded", "attempt": 1 }),
            failed("the response has status 500"),
        ] {
            assert_eq!(shown(&undecided, &commands), "", "{undecided}");
        }
    }
}
