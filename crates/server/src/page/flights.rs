//! Entities that are being asked for, by all nodes: how much is asked, who waits and until when,
//! and which sources there are. It is read-only and never shows data.

use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::Time;

use super::parts::{ago, count, within};
use super::view::{items, number, text, time_in};
use super::words::Language;
use super::{Frame, error_page, framed};
use crate::api::local::LocalApi;
use crate::edge::auth::CallerTenant;
use crate::hydration::SourceOrigin;

/// How many flights are shown.
const ROWS: usize = 200;

pub(crate) async fn show(State(api): State<LocalApi>, caller: Option<Extension<CallerTenant>>) -> Response {
    let page = match api.get(&format!("/v1/flights?limit={ROWS}")).await {
        Ok(page) => page,
        Err(error) => return error_page(&error),
    };
    let is_visible = |flight: &&Value| match &caller {
        Some(Extension(CallerTenant(tenant))) => text(flight, "tenant") == &**tenant,
        None => true,
    };
    let flights: Vec<_> = items(&page, "flights").iter().filter(is_visible).collect();
    let sources = api.server.entities.registered().into_iter();
    let sources: Vec<_> = sources.map(|(entity_type, origin)| (entity_type, origin.redacted())).collect();
    let content = content(&page, &flights, &sources, api.server.clock.now());
    let frame = Frame { title: "Flights", language: Language::English, regions: Some("") };
    framed(&frame, &content).into_response()
}

fn content(page: &Value, flights: &[&Value], sources: &[(String, SourceOrigin)], now: Time) -> Markup {
    let unreachable: Vec<_> = items(page, "unreachable").iter().filter_map(Value::as_str).collect();
    html! {
        h1 { "Flights" }
        p.sentence { "Entities of other modules that this server and the other nodes of its store are asking for. All callers of a node that wait for an entity share its questions: one, and another when there is no answer." }
        section #open data-live {
            h2 { "Open" }
            @if flights.is_empty() { p.quiet { "There are none." } } @else { (table(flights, now)) }
            @if page["next_cursor"].is_string() { p { "There are more: " code { "tidegate flight list" } " shows all of them." } }
            @if !unreachable.is_empty() { p { "Not shown, because the node did not answer: " (unreachable.join(", ")) "." } }
        }
        section #sources data-live {
            h2 { "Sources" }
            @if sources.is_empty() { p.quiet { "No source is registered at this node." } } @else { (source_table(sources)) }
        }
    }
}

fn table(flights: &[&Value], now: Time) -> Markup {
    html! {
        table {
            caption.hidden { "Flights" }
            thead { tr { th scope="col" { "Type" } th.c-name scope="col" { "Entity" } th scope="col" { "Tenant" } th scope="col" { "Node" } th scope="col" { "Asked for" } th.number scope="col" { "Questions" } th.number scope="col" { "Waiting" } th.number scope="col" { "Deferred" } th.number scope="col" { "Since" } th.number scope="col" { "Until" } th.c-name scope="col" { "Answer" } } }
            tbody {
                @for flight in flights {
                    tr {
                        td { (text(flight, "entity_type")) }
                        th scope="row" { (text(flight, "entity_id")) }
                        td { (text(flight, "tenant")) }
                        td { (text(flight, "node")) }
                        td { (text(flight, "hydration_mode")) }
                        td.number { (number(flight, "questions")) }
                        td.number { (count(number(flight, "waiting"))) }
                        td.number { (count(number(flight, "deferred"))) }
                        td.number { @if let Some(opened) = time_in(flight, "opened_at") { (ago(opened, now)) } }
                        td.number { @if let Some(until) = time_in(flight, "until") { (within(until, now)) } }
                        td.why { @if flight["unanswered"] == true { "none; newcomers fail at once" } @else { "expected" } }
                    }
                }
            }
        }
    }
}

fn source_table(sources: &[(String, SourceOrigin)]) -> Markup {
    html! {
        table {
            caption.hidden { "Sources" }
            thead { tr { th.c-name scope="col" { "Type" } th scope="col" { "Answered by" } } }
            tbody {
                @for (entity_type, origin) in sources {
                    tr {
                        th scope="row" { (entity_type) }
                        td { @match origin {
                            SourceOrigin::Url(url) => (url),
                            SourceOrigin::Upstream { name, path } => { "upstream " (name) ", " (path) }
                        } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::wire::time::Timestamp;

    /// HYD-15: an open flight is shown with its node and how many wait; an id is text, not markup.
    #[test]
    fn hyd_15_a_flight_is_shown_with_who_waits() {
        let (then, now) = (Time::from_millis(1_000), Time::from_millis(3_000));
        let flight = json!({
            "node": "berlin", "tenant": "acme", "entity_type": "customer", "entity_id": "<b>7",
            "hydration_mode": "full", "opened_at": Timestamp(then),
            "until": Timestamp(Time::from_millis(6_000)), "questions": 2, "unanswered": false,
            "waiting": 1_234, "deferred": 0, "waiters": [],
        });
        let origin = SourceOrigin::Upstream { name: "shop".to_owned(), path: "/x/{id}".to_owned() };
        let page = json!({ "next_cursor": null, "unreachable": ["paris"] });
        let html = content(&page, &[&flight], &[("customer".to_owned(), origin)], now).into_string();
        let regions = ["id=\"open\" data-live", "id=\"sources\" data-live"];
        let parts =
            ["&lt;b&gt;7", "1,234", ">2<", "2 s", "in 3 s", "upstream shop, /x/{id}", "berlin", "paris"];
        for part in parts.into_iter().chain(regions) {
            assert!(html.contains(part), "{part}: {html}");
        }
        let none = content(&json!({}), &[], &[], now).into_string();
        assert!(none.contains("There are none.") && none.contains("No source is registered"), "{none}");
    }
}
