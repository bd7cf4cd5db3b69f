//! Why a limit or a provider is closed, on the step before an operator opens it: since when, until
//! when, and the call that closed it last.

use maud::{Markup, html};
use serde_json::Value;

use super::limits::level_words;
use super::parts::{id_link, operation_link};
use super::providers::state;
use super::view::{View, text, time_in};

/// What the API says about a limit.
pub(super) fn of_limit(view: &View, limit: &Value) -> Markup {
    let (words, fault) = (view.words, &limit["last_fault"]);
    html! {
        dl {
            dt { (words.state_label) } dd { (level_words(view, limit)) }
            @if let Some(at) = time_in(limit, "closed_until") { dt { (words.opens) } dd { (view.within(at)) } }
            @if let Some(at) = time_in(limit, "failing_since") { dt { (words.failing) } dd { (view.lasting(at)) } }
            (cause(view, fault, &operation_link(text(fault, "operation"))))
        }
    }
}

/// What the API says about a provider.
pub(super) fn of_provider(view: &View, provider: &Value) -> Markup {
    let (words, error) = (view.words, &provider["last_error"]);
    html! {
        dl {
            dt { (words.state_label) } dd { (state(view, provider)) }
            @if let Some(at) = time_in(provider, "until") { dt { (words.opens) } dd { (view.within(at)) } }
            (cause(view, error, &id_link("/generations/", text(error, "generation"))))
        }
    }
}

fn cause(view: &View, fault: &Value, link: &Markup) -> Markup {
    html! {
        @if let Some(message) = fault["message"].as_str() {
            dt { (view.words.last_fault) }
            dd {
                (message)
                @if let Some(at) = time_in(fault, "at") { " (" (view.ago(at)) " " (view.words.ago) ")" }
                " " (link)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::Time;

    use super::*;
    use crate::page::words::Language;

    /// OPS-24: who opens a limit or a provider sees what closed it, and since when.
    #[test]
    fn ops_24_what_closed_it_is_shown_before_it_is_opened() {
        let view = View::at(Language::English, Time::from_millis(90_000));
        let at = "1970-01-01T00:01:20Z";
        let fault = json!({ "at": at, "operation": "op_12345678", "generation": "op_12345678", "message": "HTTP 503" });
        let limit = json!({
            "name": "acme", "level": null, "closed_until": "1970-01-01T00:01:40Z",
            "failing_since": "1970-01-01T00:00:30Z", "last_fault": fault,
        });
        let provider = json!({
            "name": "acme", "state": "cooling_down", "until": "1970-01-01T00:01:40Z",
            "failing_since": "1970-01-01T00:00:30Z", "last_error": fault,
        });
        let shown = [of_limit(&view, &limit), of_provider(&view, &provider)].map(Markup::into_string);
        for html in &shown {
            for part in ["HTTP 503", "10 s</time> ago", "in 10 s", "1 min</time>", "op_12345678"] {
                assert!(html.contains(part), "{part}: {html}");
            }
        }
        assert!(shown[0].contains("/operations/op_") && shown[1].contains("/generations/op_"), "{shown:?}");
        let open = of_limit(&view, &json!({ "name": "acme", "level": null })).into_string();
        assert!(open.contains("open") && !open.contains("Last fault"), "{open}");
    }
}
