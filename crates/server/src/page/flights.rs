//! Entities that are being asked for: how much is asked, who waits and until when, and which
//! sources there are. It is read-only and never shows data.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tidegate_core::Time;
use tidegate_hydration::FlightView;

use super::parts::{ago, count, within};
use super::words::Language;
use super::{Frame, framed};
use crate::hydration::SourceOrigin;
use crate::state::ServerState;

/// How many flights are shown.
const ROWS: usize = 200;

pub(crate) async fn show(State(server): State<Arc<ServerState>>) -> Response {
    let flights = server.entities.hydrator.flights(None, ROWS + 1);
    let sources = server.entities.registered().into_iter();
    let sources: Vec<_> = sources.map(|(entity_type, origin)| (entity_type, origin.redacted())).collect();
    let content = content(&flights, &sources, server.clock.now());
    let frame = Frame { title: "Flights", language: Language::English, regions: Some("") };
    framed(&frame, &content).into_response()
}

fn content(flights: &[FlightView], sources: &[(String, SourceOrigin)], now: Time) -> Markup {
    html! {
        h1 { "Flights" }
        p.sentence { "Entities of other modules that this node is asking for. All callers that wait for an entity share its questions: one, and another when there is no answer." }
        section #open data-live {
            h2 { "Open" }
            @if flights.is_empty() { p.quiet { "There are none." } } @else { (table(flights, now)) }
            @if flights.len() > ROWS { p { "There are more: " code { "tidegate flight list" } " shows all of them." } }
        }
        section #sources data-live {
            h2 { "Sources" }
            @if sources.is_empty() { p.quiet { "No source is registered at this node." } } @else { (source_table(sources)) }
        }
    }
}

fn table(flights: &[FlightView], now: Time) -> Markup {
    html! {
        table.cards {
            caption.hidden { "Flights" }
            thead { tr { th scope="col" { "Type" } th.c-name scope="col" { "Entity" } th scope="col" { "Tenant" } th scope="col" { "Asked for" } th.number scope="col" { "Questions" } th.number scope="col" { "Waiting" } th.number scope="col" { "Deferred" } th.number scope="col" { "Since" } th.number scope="col" { "Until" } th.c-name scope="col" { "Answer" } } }
            tbody {
                @for flight in flights.iter().take(ROWS) {
                    tr {
                        td { (flight.key.entity_type()) }
                        th scope="row" { (flight.key.id()) }
                        td data-label="Tenant" { (flight.key.tenant()) }
                        td data-label="Asked for" { (flight.mode.name()) }
                        td.number data-label="Questions" { (flight.questions) }
                        td.number data-label="Waiting" { (count(flight.waiting as u64)) }
                        td.number data-label="Deferred" { (count(flight.deferred as u64)) }
                        td.number data-label="Since" { (ago(flight.opened, now)) }
                        td.number data-label="Until" { (within(flight.until, now)) }
                        td.why { @if flight.failure.is_some() { "none; newcomers fail at once" } @else { "expected" } }
                    }
                }
            }
        }
    }
}

fn source_table(sources: &[(String, SourceOrigin)]) -> Markup {
    html! {
        table.cards {
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
    use tidegate_hydration::{EntityKey, HydrationMode};

    use super::*;

    /// HYD-15: an open flight is shown with how many wait; an id is text, not markup.
    #[test]
    fn hyd_15_a_flight_is_shown_with_who_waits() {
        let (then, now) = (Time::from_millis(1_000), Time::from_millis(3_000));
        let flight = FlightView {
            key: EntityKey::new("acme", "customer", "<b>7").unwrap(),
            mode: HydrationMode::Full,
            opened: then,
            until: Time::from_millis(6_000),
            questions: 2,
            failure: None,
            waiting: 1_234,
            deferred: 0,
            waiters: Vec::new(),
        };
        let origin = SourceOrigin::Upstream { name: "shop".to_owned(), path: "/x/{id}".to_owned() };
        let html = content(&[flight], &[("customer".to_owned(), origin)], now).into_string();
        let regions = ["id=\"open\" data-live", "id=\"sources\" data-live"];
        let parts = ["&lt;b&gt;7", "1,234", ">2<", "2 s", "in 3 s", "upstream shop, /x/{id}"];
        for part in parts.into_iter().chain(regions) {
            assert!(html.contains(part), "{part}: {html}");
        }
        let none = content(&[], &[], now).into_string();
        assert!(none.contains("There are none.") && none.contains("No source is registered"), "{none}");
    }
}
