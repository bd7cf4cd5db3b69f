//! The request of an operation on its page, with its secrets masked, and its attempts.

use maud::{Markup, html};
use tidegate::AttemptView;
use tidegate::upstream::{BodyView, RequestLine, RequestView};
use tidegate_core::Time;
use tidegate_store::costs::micro_to_tokens;

use super::parts::{ago, count, span, state};
use crate::wire::response::response_status;
use crate::wire::time::Timestamp;

/// The method and the path of a request, in a list.
pub(super) fn request_line(line: &RequestLine) -> Markup {
    html! { code { (line.method) " " (line.path) } }
}

/// A request, as far as it may be shown.
pub(super) fn request(view: &RequestView) -> Markup {
    html! {
        section {
            h2 { "Request" }
            @if let Some(line) = &view.line {
                p { code { (line.method) " " (line.path) @if let Some(query) = &view.query { "?" (query) } } }
            }
            @if !view.headers.is_empty() {
                dl {
                    @for (name, value) in &view.headers { dt { code { (name) } } dd { code { (value) } } }
                }
            }
            @if let Some(body) = &view.body { (show_body(body)) }
        }
    }
}

fn show_body(body: &BodyView) -> Markup {
    let len = body.len.map(|len| format!("{} bytes", count(len as u64)));
    html! {
        @match (&body.text, len) {
            (Some(text), len) => {
                pre.body { code { (text) } }
                @if body.is_truncated { p.quiet { "The beginning of " (len.unwrap_or_default()) "." } }
            }
            (None, Some(len)) => p.quiet { "A body of " (len) ", which is not shown: its form is not known." },
            (None, None) => p.quiet { "A body that passed through and was not stored." },
        }
    }
}

/// The attempts that are remembered: those whose job ends elsewhere, and those of unknown outcome.
pub(super) fn attempts(attempts: &[AttemptView], now: Time) -> Markup {
    html! {
        section {
            table {
                caption { "Attempts that were accepted as jobs, or whose outcome was unknown" }
                thead { tr { th.number scope="col" { "Try" } th.c-state scope="col" { "State" } th scope="col" { "Accepted" } th scope="col" { "Ended" } th.number scope="col" { "Took" } th.number scope="col" { "Status" } th scope="col" { "Job" } th.number scope="col" { "Cost" } } }
                tbody {
                    @for attempt in attempts {
                        tr {
                            th.number scope="row" { (attempt.number) }
                            td { (state(attempt.state.as_str())) }
                            td { @if let Some(at) = attempt.accepted_at() { (Timestamp(at)) } }
                            td { @if let Some(at) = attempt.ended_at { (Timestamp(at)) " (" (ago(at, now)) " ago)" } }
                            td.number { @if let (Some(from), Some(to)) = (attempt.accepted_at(), attempt.ended_at) { (span(to.since(from))) } }
                            td.number { @if let Some(status) = response_status(attempt) { (status) } }
                            td { @if let Some(job) = &attempt.job_id { code { (job) } } }
                            td.number { @if let Some(cost) = attempt.cost { (micro_to_tokens(cost)) } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-22, OPS-23: what others wrote is text, not markup, and a page shows no secret.
    #[test]
    fn ops_22_ops_23_a_request_is_text() {
        let view = RequestView::of_payload(br#"{"note":"<script>x</script>","api_key":"hunter2"}"#);
        let html = request(&view).into_string();
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"), "{html}");
        assert!(html.contains("redacted") && !html.contains("hunter2"), "{html}");
        let unknown = BodyView { text: None, is_json: false, is_truncated: false, len: Some(1_234) };
        assert!(show_body(&unknown).into_string().contains("1,234 bytes"));
        let streamed = BodyView { len: None, ..unknown };
        assert!(show_body(&streamed).into_string().contains("was not stored"));
    }
}
