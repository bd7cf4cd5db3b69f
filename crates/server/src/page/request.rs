//! The request of an operation on its page, with its secrets masked, and its attempts.

use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::Time;

use super::journey::time_spent;
use super::parts::count;
use super::runs::{Runs, attempt_number};
use super::view::{View, items, number, text, time_in};

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

/// Its body, as far as the API shows it.
pub(super) fn body(view: &View, request: &Value) -> Markup {
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
                pre.body { code { (text) } }
                @if request["body_truncated"] == true { p.quiet { (words.beginning_of) " " (len.unwrap_or_default()) "." } }
            }
            (None, Some(len)) => p.quiet { (words.body_not_shown) " (" (len) ")." },
            (None, None) => "",
        }
    }
}

/// The attempts that are remembered, with what each waited for its grant since the one before it.
pub(super) fn attempts(view: &View, operation: &Value, runs: &Runs) -> Markup {
    let words = view.words;
    let mut before = time_in(operation, "created_at");
    let attempts = items(operation, "attempts");
    let rows = attempts.iter().zip(&runs.of_attempts).map(|(attempt, run)| {
        let row = AttemptRow { attempt, run: *run, last: runs.last, before };
        before = time_in(attempt, "ended_at");
        row.markup(view)
    });
    html! {
        section {
            h2 { (words.attempts) }
            table.cards {
                caption { (words.attempts_shown) " " (view.language.words().costs_about) }
                thead {
                    tr {
                        th.number scope="col" { (words.attempt) }
                        th.c-state scope="col" { (words.state_label) }
                        th scope="col" { (words.begun) }
                        th.number scope="col" { (words.waited) }
                        th.number scope="col" { (words.took) }
                        th.number scope="col" { (words.response_status) }
                        th scope="col" { (words.upstream) }
                        th scope="col" { (words.job) }
                        th.number scope="col" { (words.cost) }
                    }
                }
                tbody { @for row in rows { (row) } }
            }
        }
    }
}

/// One attempt, with its run and the last one, and when the attempt before it ended.
struct AttemptRow<'a> {
    attempt: &'a Value,
    run: u64,
    last: u64,
    before: Option<Time>,
}

impl AttemptRow<'_> {
    fn markup(&self, view: &View) -> Markup {
        let (words, attempt) = (view.words, self.attempt);
        let time = |name: &str| time_in(attempt, name);
        let granted = time("granted_at");
        let begun = granted.or_else(|| time("accepted_at")).or_else(|| time("ended_at"));
        // An attempt of an earlier run says nothing of the wait for this one.
        let waited = granted.zip(self.before).map(|(granted, before)| granted.since(before));
        let called = time("sent_at").or_else(|| time("accepted_at"));
        let took = called.zip(time("ended_at")).map(|(from, to)| to.since(from));
        let number = attempt_number(view.language.words(), self.run, self.last, number(attempt, "attempt"));
        html! {
            tr {
                th.number.wrap scope="row" data-label=[(self.last == 1).then_some(words.attempt)] { (number) }
                td.wrap { (view.state(text(attempt, "state"))) @if let Some(class) = attempt["fault_class"].as_str() { " " (class) } }
                td.wrap data-label=(words.begun) { @if let Some(at) = begun { (view.when(at)) } }
                td.number data-label=(words.waited) { @if let Some(waited) = waited { (time_spent(view, waited)) } }
                td.number data-label=(words.took) { @if let Some(took) = took { (time_spent(view, took)) } }
                td.number data-label=(words.response_status) { @if let Some(status) = attempt["status"].as_u64() { (status) } }
                td.wrap { (text(attempt, "upstream")) }
                td title=[attempt["job_id"].as_str()] { @if let Some(job) = attempt["job_id"].as_str() { code { (job) } } }
                td.number data-label=(words.cost) { @if let Some(cost) = attempt["cost"].as_u64() { (count(cost)) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate::upstream::RequestView;

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
        let operation = json!({ "attempts": [attempt], "created_at": "1970-01-01T00:00:00Z" });
        let html = attempts(&view, &operation, &Runs::of(&operation, None)).into_string();
        assert!(html.contains("<td class=\"wrap\" data-label=\"Begun\">1970-01-01T00:00:00.567Z"), "{html}");
        assert!(html.contains("title=\"job-1\""), "{html}");
    }

    /// OPS-22: each attempt says when it began, what it waited before, how long it took, and what
    /// it was answered.
    #[test]
    fn ops_22_every_attempt_is_a_row() {
        let view = View::at(Language::English, Time::from_millis(60_000));
        let attempt = |number: u64, state: &str, [granted, sent, ended]: [&str; 3], status: u64| {
            let at = |time: &str| format!("1970-01-01T00:00:{time}Z");
            json!({
                "attempt": number, "state": state, "granted_at": at(granted), "sent_at": at(sent),
                "ended_at": at(ended), "status": status, "upstream": "echo",
            })
        };
        let mut first = attempt(1, "retried", ["02", "02.010", "03.010"], 502);
        first["fault_class"] = "transient".into();
        let operation = json!({
            "created_at": "1970-01-01T00:00:01.500Z",
            "attempts": [first, attempt(2, "succeeded", ["15.010", "15.020", "15.050"], 201)],
        });
        let html = attempts(&view, &operation, &Runs::of(&operation, None)).into_string();
        for part in [
            "</span> transient</td>",
            "<td class=\"number\" data-label=\"Waited\">500 ms</td>",
            "<td class=\"number\" data-label=\"Took\">1 s</td>",
            "data-label=\"Status\">502</td>",
            "<td class=\"number\" data-label=\"Waited\">12 s</td>",
            "<td class=\"number\" data-label=\"Took\">30 ms</td>",
            "<td class=\"wrap\">echo</td>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
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
