//! Limits: what is left of each, when it comes back, and what an operator can change.

use std::cmp::Ordering;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::action::Action;
use super::actions::{button, notice};
use super::error_page;
use super::parts::{count, level_bar};
use super::view::{View, items, number, text, time_in};
use crate::api::local::LocalApi;
use crate::edge::query::Query;

/// The most limits of a page; the API lists the rest.
const SHOWN_MAX: usize = 500;

pub(crate) async fn list(State(api): State<LocalApi>, headers: HeaderMap, mut query: Query) -> Response {
    let view = View::new(&headers, &api);
    match api.get("/v1/limits").await {
        Ok(page) => {
            let content = html! {
                (notice(&view, &mut query))
                h1 { (view.words.limits) }
                section #limits data-live="steady" { (nearest_end(&view, items(&page, "limits"), SHOWN_MAX, true)) }
            };
            view.live_page(view.words.limits, &content)
        }
        Err(error) => error_page(&error),
    }
}

/// What is left of a limit, as a share of what it can hold; `None` for a gate or a breaker.
fn share(limit: &Value) -> Option<f64> {
    let most = limit["capacity"].as_f64().or_else(|| limit["at_once"].as_f64())?;
    Some(limit["level"].as_f64()? / most.max(f64::MIN_POSITIVE))
}

/// Orders limits: those that are closed, then those that groups wait for, then by what is left.
fn nearer_its_end(a: &Value, b: &Value) -> Ordering {
    let closed = |limit: &Value| limit["closed_until"].is_string();
    let level = |limit: &Value| share(limit).unwrap_or(1.0);
    closed(b)
        .cmp(&closed(a))
        .then_with(|| number(b, "waiting").cmp(&number(a, "waiting")))
        .then_with(|| level(a).total_cmp(&level(b)))
        .then_with(|| text(a, "name").cmp(text(b, "name")))
}

/// The limits that are nearest their end; with buttons, or without.
pub(super) fn nearest_end(view: &View, limits: &[Value], most: usize, has_buttons: bool) -> Markup {
    let words = view.words;
    let mut sorted: Vec<&Value> = limits.iter().collect();
    sorted.sort_by(|a, b| nearer_its_end(a, b));
    html! {
        @if sorted.is_empty() {
            p.quiet { (words.no_limits) }
        } @else {
            table.cards {
                caption.hidden { (words.limits) }
                thead {
                    tr {
                        th.c-name scope="col" { (words.limit) }
                        th.c-left scope="col" { (words.left) }
                        th.number scope="col" { (words.refill) }
                        th.number scope="col" { (words.waiting) }
                        th.number scope="col" { (words.in_flight) }
                        th.c-time scope="col" { (words.source) }
                        th.c-time scope="col" { (words.opens) }
                        @if has_buttons { th.c-acts scope="col" { span.hidden { (words.actions) } } }
                    }
                }
                tbody { @for limit in sorted.iter().take(most) { (row(view, limit, has_buttons)) } }
            }
            @if sorted.len() > most { p { a href="/limits" { (words.show_all) " (" (count(sorted.len() as u64)) ")" } } }
        }
    }
}

fn row(view: &View, limit: &Value, has_buttons: bool) -> Markup {
    let (words, name) = (view.words, text(limit, "name"));
    let opens = time_in(limit, "closed_until").or_else(|| time_in(limit, "reset_at"));
    let is_set = text(limit, "source") == "operator";
    html! {
        tr {
            th scope="row" { (name) }
            td.left { (level(view, limit)) }
            td.number data-label=(words.refill) { @if let Some(refill) = limit["refill_per_s"].as_f64() { (figure(refill)) "/s" } }
            td.number data-label=(words.waiting) { (count(number(limit, "waiting"))) }
            td.number data-label=(words.in_flight) { (number(limit, "in_flight")) }
            td { (words.source_of(text(limit, "source"))) }
            td { @if let Some(at) = opens { (view.within(at)) } }
            @if has_buttons {
                td.act {
                    @if limit["closed_until"].is_string() { (button(view, Action::OpenLimit, name)) }
                    @if share(limit).is_some() { (button(view, Action::SetLimit, name)) }
                    @if is_set { (button(view, Action::ResetLimit, name)) }
                }
            }
        }
    }
}

fn level(view: &View, limit: &Value) -> Markup {
    let words = view.words;
    let most = limit["capacity"].as_f64().or_else(|| limit["at_once"].as_f64());
    match (limit["level"].as_f64(), most) {
        (Some(level), Some(most)) => {
            let label = format!("{} {} {}", figure(level.floor()), words.of, figure(most));
            level_bar(level / most.max(f64::MIN_POSITIVE), &label)
        }
        _ => {
            html! { span.quiet { @if limit["closed_until"].is_string() { (words.closed) } @else { (words.open) } } }
        }
    }
}

/// A figure without needless digits.
fn figure(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.1}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_sorted_by_how_near_their_end_is() {
        let mut limits = [
            json!({ "name": "full", "capacity": 10, "level": 10, "waiting": 0 }),
            json!({ "name": "gate", "level": null, "waiting": 0 }),
            json!({ "name": "low", "capacity": 10, "level": 1, "waiting": 0 }),
            json!({ "name": "awaited", "at_once": 2, "level": 2, "waiting": 3 }),
            json!({ "name": "closed", "level": null, "waiting": 0, "closed_until": "2030-01-01T00:00:00Z" }),
        ];
        limits.sort_by(nearer_its_end);
        let names: Vec<_> = limits.iter().map(|limit| text(limit, "name")).collect();
        assert_eq!(names, ["closed", "awaited", "low", "full", "gate"]);
        assert_eq!([figure(4.0), figure(0.25)], ["4", "0.2"]);
    }
}
