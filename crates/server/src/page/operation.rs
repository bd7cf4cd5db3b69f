//! The page of one operation: what it is, why it waits, its way from acceptance to its answer, and
//! what an operator can do about it. The body of a response is not shown; the API returns it.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::Time;

use super::action::Action;
use super::actions::{button, notice};
use super::error_page;
use super::parts::{group as group_link, operation_link};
use super::request::{attempts, request};
use super::view::{View, escape, items, number, text, time_in};
use crate::api::local::LocalApi;
use crate::api::parse_id;
use crate::edge::query::Query;
use crate::error::Result;

pub(crate) async fn show(
    State(api): State<LocalApi>,
    Path(id): Path<String>,
    headers: HeaderMap,
    mut query: Query,
) -> Response {
    let view = View::new(&headers, &api);
    match read(&api, &id).await {
        Ok((operation, why)) => {
            let content = html! { (notice(&view, &mut query)) (content(&view, &operation, &why)) };
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

fn content(view: &View, operation: &Value, why: &Value) -> Markup {
    let (words, id) = (view.words, text(operation, "id"));
    html! {
        section #operation data-live {
            h1 { (view.state(text(operation, "state"))) " " code { (id) } }
            p.sentence { (text(why, "because")) }
            (buttons(view, operation))
            (journey(view, operation, why))
            dl {
                (facts(view, operation))
                dt { (words.kind) } dd { (text(operation, "kind")) }
                @if let Some(job) = operation["job_id"].as_str() { dt { (words.job) } dd { code { (job) } } }
                @if let Some(behind) = why["behind"].as_str() { dt { (words.behind) } dd { (operation_link(behind)) } }
                @if let Some(key) = operation["dedupe_key"].as_str() { dt { (words.key) } dd { code { (key) } } }
                @if let Some(trace) = operation["request_id"].as_str() { dt { (words.request_id) } dd { code { (trace) } } }
                @if let Some(trace) = operation["deployment_id"].as_str() {
                    dt { (words.deployment) } dd { a href={ "/deployments/" (escape(trace)) } { code { (trace) } } }
                }
                @if !operation["result"].is_null() { dt { (words.result) } dd { a href={ "/v1/operations/" (id) } { (words.as_json) } } }
            }
            @if operation["request"].is_object() { (request(view, &operation["request"])) }
            @if !items(operation, "attempts").is_empty() { (attempts(view, items(operation, "attempts"))) }
        }
        p.quiet {
            (words.on_command_line) " "
            @if text(operation, "state") == "unknown" {
                code { "tidegate op resolve " (id) " --as succeeded" } ", " code { "failed" } ", " code { "repeat" }
            } @else {
                code { "tidegate op why " (id) }
            }
        }
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

/// What matters most about an operation, in a list of terms.
pub(super) fn facts(view: &View, operation: &Value) -> Markup {
    let words = view.words;
    let most = operation["max_attempts"].as_u64();
    html! {
        dt { (words.group) } dd { (group_link(text(operation, "group"))) }
        @if let Some(upstream) = operation["upstream"].as_str() { dt { (words.upstream) } dd { (upstream) } }
        @if let Some(at) = time_in(operation, "created_at") { dt { (words.accepted) } dd { (view.when(at)) } }
        dt { (words.attempt) } dd { (number(operation, "attempt")) @if let Some(most) = most { " " (words.of) " " (most) } }
        @if let Some(at) = time_in(operation, "finished_at") { dt { (words.ended) } dd { (view.when(at)) } }
        @if let Some(fault) = operation["fault"]["message"].as_str() {
            dt { (words.last_fault) }
            dd {
                (text(&operation["fault"], "class")) ": " (fault)
                @if operation["fault"]["may_have_happened"] == true { " (" (words.may_have_happened) ")" }
            }
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

/// The place of an operation on its way: accepted, turn, limit, sent, answer.
fn place(operation: &Value, why: &Value) -> usize {
    match (text(operation, "state"), text(why, "waiting_for")) {
        ("succeeded" | "failed" | "canceled", _) => 5,
        ("unknown", _) => 4,
        ("running", _) => 3,
        ("queued", "turn") => 1,
        _ if why["behind"].is_string() => 1,
        _ => 2,
    }
}

fn progress(step: usize, place: usize) -> Progress {
    match step.cmp(&place) {
        std::cmp::Ordering::Less => Progress::Past,
        std::cmp::Ordering::Equal => Progress::Current,
        std::cmp::Ordering::Greater => Progress::Ahead,
    }
}

/// The way of an operation, with the time spent as far as it is known.
fn journey(view: &View, operation: &Value, why: &Value) -> Markup {
    let (words, place) = (view.words, place(operation, why));
    let (accepted, ended) = (time_in(operation, "created_at"), time_in(operation, "finished_at"));
    let spent = accepted.map(|at| span_between(view, at, ended.unwrap_or(view.now)));
    let attempt = number(operation, "attempt");
    // The first step takes no time of its own.
    let times = ["", "turn_ms", "limit_ms", "sent_ms", "answer_ms"];
    let notes: [Markup; 5] = [
        html! { @if let Some(at) = accepted { (view.ago(at)) " " (words.ago) } },
        html! { @if let Some(behind) = why["behind"].as_str().filter(|_| place == 1) { (words.behind) " " (operation_link(behind)) } },
        html! {
            @if place == 2 { (text(why, "waiting_for")) @if let Some(name) = why["name"].as_str() { ": " (name) } }
            @if let Some(until) = time_in(why, "until").filter(|until| place == 2 && *until > view.now) { ", " (view.within(until)) }
        },
        html! { @if attempt > 0 { (words.attempt) " " (attempt) } },
        html! { @if place >= 4 { (view.state(text(operation, "state"))) } @if let Some(spent) = &spent { " " span { (words.total) " " (spent) } } },
    ];
    html! {
        ol.journey aria-label=(words.journey) {
            @for (step, ((name, note), time)) in words.steps.iter().zip(&notes).zip(times).enumerate() {
                @let progress = progress(step, place);
                li class=(progress.class()) aria-current=[(progress == Progress::Current).then_some("step")] {
                    b { (name) } span { (note) }
                    @if step > 0 && progress != Progress::Ahead { span.quiet { (step_time(view, &operation["journey"][time])) } }
                }
            }
        }
    }
}

/// The time of a step, or that it was not recorded.
fn step_time(view: &View, millis: &Value) -> String {
    match millis.as_u64() {
        None => view.words.not_recorded.to_owned(),
        Some(millis @ 0..1_000) => format!("{millis} {}", view.words.millisecond),
        Some(millis) => super::parts::span_in(Duration::from_millis(millis), view.language.words().units),
    }
}

fn span_between(view: &View, from: Time, to: Time) -> String {
    super::parts::span_in(to.since(from), view.language.words().units)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_operation_is_at_one_place_of_its_way() {
        let table = [
            ("queued", json!({ "waiting_for": "turn", "behind": "op_1" }), 1),
            ("waiting", json!({ "waiting_for": "bucket" }), 2),
            ("queued", json!({ "waiting_for": "worker" }), 2),
            ("running", json!({ "waiting_for": "running" }), 3),
            ("unknown", json!({ "waiting_for": "person" }), 4),
            ("succeeded", json!({ "waiting_for": "nothing" }), 5),
        ];
        for (state, why, expected) in table {
            assert_eq!(place(&json!({ "state": state }), &why), expected, "{state} {why}");
        }
        assert_eq!(
            [0, 1, 2].map(|step| progress(step, 1)),
            [Progress::Past, Progress::Current, Progress::Ahead]
        );
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
