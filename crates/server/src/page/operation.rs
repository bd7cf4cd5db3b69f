//! The page of one operation: what it is, why it waits, its way, and what an operator can do about
//! it. The body of a response is not shown; the API returns it.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use tidegate_dispatch::KIND as GENERATION;

use super::action::Action;
use super::actions::{button, notice};
use super::decision::{Decision, is_decided_failure};
use super::journey::{JourneyData, journey};
use super::needs::not_known;
use super::parts::{group as group_link, operation_link};
use super::request::{attempts, request};
use super::runs::{Runs, attempt_number};
use super::shell::server_flag;
use super::view::{View, escape, items, number, text, time_in};
use super::{audit, error_page};
use crate::api::local::LocalApi;
use crate::api::parse_id;
use crate::edge::origin::host;
use crate::edge::query::Query;
use crate::error::Result;

pub(crate) async fn show(
    State(api): State<LocalApi>,
    Path(id): Path<String>,
    headers: HeaderMap,
    uri: Uri,
    mut query: Query,
) -> Response {
    let view = View::new(&headers, &api);
    match read(&api, &id).await {
        Ok((operation, why)) => {
            let flag = server_flag(host(&headers, &uri).as_deref(), api.server.scheme);
            let decided = audit::read_about(&api, text(&operation, "id")).await;
            let content = html! {
                (notice(&api, &view, &mut query))
                (content(&view, &OperationData { operation: &operation, why: &why, decided: decided.as_ref().ok(), flag: &flag }))
                @match &decided {
                    Ok(page) => (audit::decisions(&view, text(&operation, "id"), page)),
                    Err(problem) => (not_known(&view, problem)),
                }
            };
            view.live_page(text(&operation, "id"), &content)
        }
        Err(error) => error_page(&error),
    }
}

async fn read(api: &LocalApi, text: &str) -> Result<(Value, Value)> {
    let id = parse_id(text)?;
    let (operation, why) = (format!("/v1/operations/{id}"), format!("/v1/operations/{id}/why"));
    tokio::try_join!(api.get(&operation), api.get(&why))
}

/// What the page shows.
struct OperationData<'a> {
    operation: &'a Value,
    why: &'a Value,
    /// The commands about it, if they can be read.
    decided: Option<&'a Value>,
    /// Ends the commands that the page names.
    flag: &'a str,
}

fn content(view: &View, data: &OperationData<'_>) -> Markup {
    let &OperationData { operation, why, decided, flag } = data;
    let (words, id) = (view.words, text(operation, "id"));
    let decision = Decision::of(operation, decided.map_or(&[], |page| items(page, "entries")));
    let runs = Runs::of(operation, decided);
    let is_failed = text(operation, "state") == "failed";
    let is_generation = text(operation, "kind") == GENERATION;
    html! {
        section #operation data-live {
            h1 { (view.state(text(operation, "state"))) " " code { (id) } }
            @match &decision {
                Some(decision) => (decision.sentence(view)),
                None => {
                    p.sentence { (text(why, "because")) @if is_failed { " " (text(&operation["fault"], "message")) } }
                    @if is_failed && is_generation && operation["job_id"].is_string() {
                        p.quiet { (view.language.words().job_failed) }
                    }
                },
            }
            (buttons(view, operation))
            (journey(view, &JourneyData { operation, why, decision, run: runs.last }))
            dl {
                (facts(view, operation, runs.last))
                dt { (words.kind) } dd { (text(operation, "kind")) }
                @if let Some(job) = operation["job_id"].as_str() { dt { (words.job) } dd { code { (job) } } }
                @if let Some(behind) = why["behind"].as_str() { dt { (words.behind) } dd { (operation_link(behind)) } }
                @if let Some(key) = operation["dedupe_key"].as_str() { dt { (words.key) } dd { code { (key) } } }
                @if let Some(trace) = operation["request_id"].as_str() { dt { (words.request_id) } dd { code { (trace) } } }
                @if let Some(trace) = operation["deployment_id"].as_str() {
                    dt { (words.deployment) } dd { a href={ "/deployments/" (escape(trace)) } { code { (trace) } } }
                }
                @if is_generation {
                    dt { (view.language.words().generation) } dd { a href={ "/generations/" (id) } { code { (id) } } }
                }
                @if !operation["result"].is_null() { dt { (words.result) } dd { a href={ "/v1/operations/" (id) } { (words.as_json) } } }
            }
            @if operation["request"].is_object() { (request(view, &operation["request"])) }
            @if !items(operation, "attempts").is_empty() { (attempts(view, operation, &runs)) }
            @if is_generation {
                p { (words.provider_has_more) " " a href={ "/generations/" (id) } { (view.language.words().generation) } "." }
            }
        }
        section #commands data-live {
            p.quiet { (words.on_command_line) }
            pre { @for (verb, options) in commands(operation) { code { "tidegate op " (verb) " " (id) (options) (flag) } "\n" } }
        }
    }
}

/// The commands for an operation in its state, each with its options.
fn commands(operation: &Value) -> &'static [(&'static str, &'static str)] {
    match text(operation, "state") {
        "unknown" => {
            &[("resolve", " --as succeeded"), ("resolve", " --as failed"), ("resolve", " --as repeat")]
        }
        "failed" | "canceled" => &[("rerun", "")],
        "succeeded" => &[("show", "")],
        _ => &[("why", ""), ("cancel", "")],
    }
}

/// What an operator can do about an operation in its state.
pub(super) fn actions_for(state: &str) -> &'static [Action] {
    match state {
        "unknown" => &[Action::Happened, Action::DidNotHappen, Action::SendAgain],
        "failed" | "canceled" => &[Action::Rerun],
        "queued" | "waiting" | "running" => &[Action::Cancel],
        _ => &[],
    }
}

fn buttons(view: &View, operation: &Value) -> Markup {
    let actions = actions_for(text(operation, "state"));
    html! {
        @if !actions.is_empty() {
            p.buttons { @for action in actions { (button(view, *action, text(operation, "id"))) } }
        }
    }
}

/// The method and the path of a request; the kind, where it has none.
pub(super) fn call_line(operation: &Value) -> Markup {
    let request = &operation["request"];
    html! {
        @match request["method"].as_str() {
            Some(method) => code { (method) " " (text(request, "path")) },
            None => code { (text(operation, "kind")) },
        }
    }
}

/// What matters most about an operation in its run, in a list of terms.
pub(super) fn facts(view: &View, operation: &Value, run: u64) -> Markup {
    let words = view.words;
    let most = operation["max_attempts"].as_u64();
    let unknown = Some(items(operation, "attempts")).filter(|_| text(operation, "state") == "unknown");
    let unknown_since = unknown.and_then(|attempts| time_in(attempts.last()?, "ended_at"));
    html! {
        dt { (words.group) } dd { (group_link(text(operation, "group"))) }
        @if let Some(upstream) = operation["upstream"].as_str() { dt { (words.upstream) } dd { (upstream) } }
        @if let Some(at) = time_in(operation, "created_at") { dt { (words.accepted) } dd { (view.when(at)) } }
        dt { (words.attempt) } dd { (attempt_number(view.language.words(), run, run, number(operation, "attempt"))) @if let Some(most) = most { ", " (words.most) " " (most) } }
        @if let Some(at) = time_in(operation, "finished_at") { dt { (words.ended) } dd { (view.when(at)) } }
        @if let Some(at) = unknown_since { dt { (words.state("unknown")) } dd { (view.lasting(at)) } }
        @if let Some(fault) = operation["fault"]["message"].as_str() {
            dt { (words.last_fault) }
            dd {
                // The class is that of an earlier attempt, and no part of what an operator decided.
                @if !is_decided_failure(operation) { (text(&operation["fault"], "class")) ": " }
                (fault)
                @if operation["fault"]["may_have_happened"] == true { " (" (words.may_have_happened) ")" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::fault::RESOLVED_AS_FAILED;

    use super::*;
    use crate::page::words::Language;

    /// A number of attempts is not what is left of them.
    #[test]
    fn attempts_are_counted_up_to_a_most() {
        for (language, said) in
            [(Language::English, "<dd>0, at most 2</dd>"), (Language::Russian, "<dd>0, максимум 2</dd>")]
        {
            let view = View::at(language, tidegate_core::Time::ZERO);
            let html = facts(&view, &json!({ "attempt": 0, "max_attempts": 2 }), 1).into_string();
            assert!(html.contains(said), "{html}");
        }
    }

    /// OPS-23: a decided failure is what the operator said, and no class of a fault.
    #[test]
    fn ops_23_a_decided_failure_has_no_class() {
        let view = View::at(Language::English, tidegate_core::Time::ZERO);
        let shown = |message: &str| {
            let fault = json!({ "class": "transient", "message": message });
            facts(&view, &json!({ "state": "failed", "fault": fault, "attempt": 1 }), 2).into_string()
        };
        assert!(shown("it was cut").contains("<dd>transient: it was cut</dd>"));
        let decided = shown(RESOLVED_AS_FAILED);
        assert!(decided.contains(&format!("<dd>{RESOLVED_AS_FAILED}</dd>")), "{decided}");
        assert!(decided.contains("<dd>run 2, attempt 1</dd>"), "{decided}");
    }

    /// OPS-24: since when an outcome is unknown is said wherever someone decides about it.
    #[test]
    fn ops_24_an_unknown_outcome_says_since_when() {
        let view = View::at(Language::English, tidegate_core::Time::from_millis(90_000));
        let shown = |state: &str| {
            let attempts = json!([{ "state": "unknown", "ended_at": "1970-01-01T00:01:00Z" }]);
            facts(&view, &json!({ "state": state, "attempts": attempts, "attempt": 1 }), 1).into_string()
        };
        let unknown = shown("unknown");
        assert!(unknown.contains("<dt>unknown</dt><dd>for <time") && unknown.contains(">30 s<"), "{unknown}");
        assert!(!shown("succeeded").contains("<dt>unknown</dt>"));
    }

    /// OPS-24: what failed says why first, and a generation why no other provider was tried.
    #[test]
    fn ops_24_a_failure_says_why_at_first() {
        let view = View::at(Language::English, tidegate_core::Time::ZERO);
        let why = json!({ "because": "It has ended: failed." });
        let shown = |kind: &str, state: &str| {
            let fault = json!({ "class": "transient", "message": "the runner is gone" });
            let operation = json!({ "kind": kind, "state": state, "fault": fault, "job_id": "j7" });
            let data = OperationData { operation: &operation, why: &why, decided: None, flag: "" };
            let html = content(&view, &data).into_string();
            let said = html.contains("<p class=\"sentence\">It has ended: failed. the runner is gone</p>");
            (said, html.contains("No other one was tried"))
        };
        assert_eq!(shown("generation", "failed"), (true, true));
        assert_eq!(shown("http", "failed"), (true, false));
        assert_eq!(shown("generation", "running"), (false, false));
    }

    #[test]
    fn every_state_offers_what_the_api_would_do() {
        assert!(actions_for("succeeded").is_empty());
        assert_eq!(actions_for("unknown").len(), 3);
        assert_eq!(
            (actions_for("failed"), actions_for("running")),
            (&[Action::Rerun][..], &[Action::Cancel][..])
        );
    }
}
