//! The request of an operation on its page, with its secrets masked, and its attempts.

use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::text::is_control;

use super::parts::{count, span_in};
use super::runs::{Runs, attempt_number};
use super::view::{View, number, text, time_in};

/// A request, as far as the API shows it.
pub(super) fn request(view: &View, request: &Value) -> Markup {
    let words = view.words;
    html! {
        section {
            h2 { (words.request) }
            @if let Some(method) = request["method"].as_str() {
                p { code { (method) " " (text(request, "path")) @if let Some(query) = request["query"].as_str() { "?" (query) } } }
            }
            @if let Some(headers) = request["headers"].as_object().filter(|headers| !headers.is_empty()) {
                dl { @for (name, value) in headers { dt { code { (name) } } dd { code { (value.as_str().unwrap_or_default()) } } } }
            }
            (body(view, request))
        }
    }
}

fn body(view: &View, request: &Value) -> Markup {
    let words = view.words;
    let len = request["body_bytes"].as_u64().map(|len| format!("{} {}", count(len), words.bytes));
    let shown = match &request["body"] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        json => serde_json::to_string_pretty(json).ok(),
    };
    html! {
        @match (shown, len) {
            (Some(text), len) => {
                pre.body { code { (visible(&text)) } }
                @if request["body_truncated"] == true { p.quiet { (words.beginning_of) " " (len.unwrap_or_default()) "." } }
            }
            (None, Some(len)) => p.quiet { (words.body_not_shown) " (" (len) ")." },
            (None, None) => "",
        }
    }
}

/// A text in which characters that change how others are shown are written as JSON escapes them.
fn visible(text: &str) -> String {
    let is_shown = |c: char| !is_control(c) || matches!(c, '\n' | '\t');
    let escape = |c: char| if is_shown(c) { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) };
    text.chars().map(escape).collect()
}

/// The attempts that are remembered: those whose job ends elsewhere, and those of unknown outcome.
pub(super) fn attempts(view: &View, attempts: &[Value], runs: &Runs) -> Markup {
    let words = view.words;
    html! {
        section {
            h2 { (words.attempts) }
            table.cards {
                caption { (words.attempts_shown) ". " (view.language.words().costs_about) }
                thead {
                    tr {
                        th.number scope="col" { (words.attempt) }
                        th.c-state scope="col" { (words.state_label) }
                        th scope="col" { (words.accepted) }
                        th scope="col" { (words.ended) }
                        th.number scope="col" { (words.took) }
                        th.number scope="col" { (words.response_status) }
                        th scope="col" { (words.job) }
                        th.number scope="col" { (words.cost) }
                    }
                }
                tbody { @for (attempt, run) in attempts.iter().zip(&runs.of_attempts) { (attempt_row(view, attempt, (*run, runs.last))) } }
            }
        }
    }
}

/// One attempt, with its run and the last one.
fn attempt_row(view: &View, attempt: &Value, (run, last): (u64, u64)) -> Markup {
    let words = view.words;
    let (accepted, ended) = (time_in(attempt, "accepted_at"), time_in(attempt, "ended_at"));
    let units = view.language.words().units;
    html! {
        tr {
            th.number.wrap scope="row" data-label=[(last == 1).then_some(words.attempt)] { (attempt_number(view.language.words(), run, last, number(attempt, "attempt"))) }
            td { (view.state(text(attempt, "state"))) }
            td.wrap data-label=[accepted.map(|_| words.accepted)] { @if let Some(at) = accepted { (view.when(at)) } }
            td.wrap data-label=[ended.map(|_| words.ended)] { @if let Some(at) = ended { (view.when(at)) } }
            td.number data-label=(words.took) { @if let (Some(from), Some(to)) = (accepted, ended) { (span_in(to.since(from), units)) } }
            td.number data-label=(words.response_status) { @if let Some(status) = attempt["status"].as_u64() { (status) } }
            td title=[attempt["job_id"].as_str()] { @if let Some(job) = attempt["job_id"].as_str() { code { (job) } } }
            td.number data-label=(words.cost) { @if let Some(cost) = attempt["cost"].as_u64() { (count(cost)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate::upstream::RequestView;
    use tidegate_core::Time;

    use super::*;
    use crate::page::words::Language;
    use crate::wire::response::RequestOut;

    fn shown(value: &Value) -> String {
        let language = Language::English;
        let view = View { language, words: language.operator_words(), now: Time::ZERO };
        request(&view, value).into_string()
    }

    #[test]
    fn the_times_of_an_attempt_wrap_and_its_job_has_a_tooltip() {
        let view = View::at(Language::English, Time::ZERO);
        let attempt = json!({
            "attempt": 1, "state": "unknown", "accepted_at": "1970-01-01T00:00:00.567Z", "job_id": "job-1",
        });
        let html = attempt_row(&view, &attempt, (1, 1)).into_string();
        assert!(
            html.contains("<td class=\"wrap\" data-label=\"Accepted\">1970-01-01T00:00:00.567Z"),
            "{html}"
        );
        assert!(html.contains("title=\"job-1\""), "{html}");
    }

    #[test]
    fn what_would_turn_a_text_is_seen() {
        assert_eq!(visible("a\n\tb שלום"), "a\n\tb שלום");
        assert_eq!(visible("\u{202e}evil\u{2066}\0"), "\\u202eevil\\u2066\\u0000");
    }

    /// OPS-22, OPS-23: what others wrote is text, not markup, and a page shows no secret.
    #[test]
    fn ops_22_ops_23_a_request_is_text() {
        let view = RequestView::of_payload(br#"{"note":"<script>x</script>","api_key":"hunter2"}"#);
        let html = shown(&serde_json::to_value(RequestOut::whole(&view)).unwrap());
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"), "{html}");
        assert!(html.contains("redacted") && !html.contains("hunter2"), "{html}");
        assert!(shown(&json!({ "body_bytes": 1_234 })).contains("1,234 bytes"));
        let long = json!({ "body": "abc", "body_bytes": 9_000, "body_truncated": true });
        assert!(shown(&long).contains("9,000 bytes") && shown(&long).contains("abc"));
    }
}
