//! Entities that are being asked for: how much is asked, who waits and until when, and which
//! sources there are. It is read-only and never shows data.

mod words;

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use tidegate_hydration::FlightView;

use super::parts::count;
use super::view::View;
use super::words::Language;
use crate::hydration::SourceOrigin;
use crate::state::ServerState;

/// How many flights are shown.
const ROWS: usize = 200;

pub(crate) async fn show(State(server): State<Arc<ServerState>>, headers: HeaderMap) -> Response {
    let view = View::at(Language::preferred(&headers), server.clock.now());
    let flights = server.entities.hydrator.flights(None, ROWS + 1);
    let sources = server.entities.registered().into_iter();
    let sources: Vec<_> = sources.map(|(entity_type, origin)| (entity_type, origin.redacted())).collect();
    view.live_page(view.language.words().flights, &content(&view, &flights, &sources))
}

fn content(view: &View, flights: &[FlightView], sources: &[(String, SourceOrigin)]) -> Markup {
    let words = view.language.flight_words();
    html! {
        h1 { (view.language.words().flights) }
        p.sentence { (words.about) }
        section #open data-live {
            h2 { (words.open) }
            @if flights.is_empty() { p.quiet { (words.none) } } @else { (table(view, flights)) }
            @if flights.len() > ROWS { p { (words.more) " " code { "tidegate flight list" } } }
        }
        section #sources data-live {
            h2 { (words.sources) }
            @if sources.is_empty() { p.quiet { (words.no_sources) } } @else { (source_table(view, sources)) }
        }
    }
}

fn table(view: &View, flights: &[FlightView]) -> Markup {
    let words = view.language.flight_words();
    html! {
        table.cards {
            caption.hidden { (view.language.words().flights) }
            thead {
                tr {
                    th scope="col" { (words.entity_type) }
                    th.c-name scope="col" { (words.entity) }
                    th scope="col" { (words.tenant) }
                    th scope="col" { (words.asked_for) }
                    th.number scope="col" { (words.questions) }
                    th.number scope="col" { (words.waiting) }
                    th.number scope="col" { (words.deferred) }
                    th.number scope="col" { (words.since) }
                    th.number scope="col" { (words.until) }
                    th.c-name scope="col" { (words.answer) }
                }
            }
            tbody {
                @for flight in flights.iter().take(ROWS) {
                    tr {
                        td { (flight.key.entity_type()) }
                        th scope="row" { (flight.key.id()) }
                        td data-label=(words.tenant) { (flight.key.tenant()) }
                        td data-label=(words.asked_for) { (flight.mode.name()) }
                        td.number data-label=(words.questions) { (flight.questions) }
                        td.number data-label=(words.waiting) { (count(flight.waiting as u64)) }
                        td.number data-label=(words.deferred) { (count(flight.deferred as u64)) }
                        td.number data-label=(words.since) { (view.ago(flight.opened)) }
                        td.number data-label=(words.until) { (view.within(flight.until)) }
                        td.why { @if flight.failure.is_some() { (words.no_answer) } @else { (words.expected) } }
                    }
                }
            }
        }
    }
}

fn source_table(view: &View, sources: &[(String, SourceOrigin)]) -> Markup {
    let words = view.language.flight_words();
    html! {
        table.cards {
            caption.hidden { (words.sources) }
            thead { tr { th.c-name scope="col" { (words.entity_type) } th scope="col" { (words.answered_by) } } }
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
    use tidegate_core::Time;
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
        let (flights, sources) = ([flight], [("customer".to_owned(), origin)]);
        let view = View::at(Language::English, now);
        let html = content(&view, &flights, &sources).into_string();
        let regions = ["id=\"open\" data-live", "id=\"sources\" data-live"];
        let parts = ["&lt;b&gt;7", "1,234", ">2<", "2 s", "in 3 s", "upstream shop, /x/{id}"];
        for part in parts.into_iter().chain(regions) {
            assert!(html.contains(part), "{part}: {html}");
        }
        let russian = content(&View::at(Language::Russian, now), &flights, &sources).into_string();
        for part in ["Запросы сущностей", "через 3 с", "ожидается", "upstream shop, /x/{id}"]
        {
            assert!(russian.contains(part), "{part}: {russian}");
        }
        let none = content(&view, &[], &[]).into_string();
        assert!(none.contains("There are none.") && none.contains("No source is registered"), "{none}");
    }
}
