//! Entities that are being asked for, by all nodes: how much is asked, who waits and until when,
//! and which sources there are. It is read-only and never shows data.

mod words;

use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::error_page;
use super::parts::count;
use super::view::{View, items, number, text, time_in};
use crate::api::local::LocalApi;
use crate::edge::auth::CallerTenant;
use crate::hydration::SourceOrigin;

/// How many flights are shown.
const ROWS: usize = 200;

pub(crate) async fn show(
    State(api): State<LocalApi>,
    caller: Option<Extension<CallerTenant>>,
    headers: HeaderMap,
) -> Response {
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
    let view = View::new(&headers, &api);
    view.live_page(view.language.words().flights, &content(&view, &page, &flights, &sources))
}

fn content(view: &View, page: &Value, flights: &[&Value], sources: &[(String, SourceOrigin)]) -> Markup {
    let words = view.language.flight_words();
    let unreachable: Vec<_> = items(page, "unreachable").iter().filter_map(Value::as_str).collect();
    html! {
        h1 { (view.language.words().flights) }
        p.sentence { (words.about) }
        section #open data-live {
            h2 { (words.open) }
            @if flights.is_empty() { p.quiet { (words.none) } } @else { (table(view, flights)) }
            @if page["next_cursor"].is_string() { p { (words.more) " " code { "tidegate flight list" } } }
            @if !unreachable.is_empty() { p { (words.unreachable) " " (unreachable.join(", ")) "." } }
        }
        section #sources data-live {
            h2 { (words.sources) }
            @if sources.is_empty() { p.quiet { (words.no_sources) } } @else { (source_table(view, sources)) }
        }
    }
}

fn table(view: &View, flights: &[&Value]) -> Markup {
    let words = view.language.flight_words();
    html! {
        table.cards {
            caption.hidden { (view.language.words().flights) }
            thead {
                tr {
                    th scope="col" { (words.entity_type) }
                    th.c-name scope="col" { (words.entity) }
                    th scope="col" { (words.tenant) }
                    th scope="col" { (words.node) }
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
                @for flight in flights {
                    tr {
                        td { (text(flight, "entity_type")) }
                        th scope="row" { (text(flight, "entity_id")) }
                        td data-label=(words.tenant) { (text(flight, "tenant")) }
                        td data-label=(words.node) { (text(flight, "node")) }
                        td data-label=(words.asked_for) { (text(flight, "hydration_mode")) }
                        td.number data-label=(words.questions) { (number(flight, "questions")) }
                        td.number data-label=(words.waiting) { (count(number(flight, "waiting"))) }
                        td.number data-label=(words.deferred) { (count(number(flight, "deferred"))) }
                        td.number data-label=(words.since) { @if let Some(opened) = time_in(flight, "opened_at") { (view.ago(opened)) } }
                        td.number data-label=(words.until) { @if let Some(until) = time_in(flight, "until") { (view.within(until)) } }
                        td.why { @if flight["unanswered"] == true { (words.no_answer) } @else { (words.expected) } }
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
    use serde_json::json;
    use tidegate_core::Time;

    use super::*;
    use crate::page::words::Language;
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
        let sources = [("customer".to_owned(), origin)];
        let view = View::at(Language::English, now);
        let html = content(&view, &page, &[&flight], &sources).into_string();
        let regions = ["id=\"open\" data-live", "id=\"sources\" data-live"];
        let parts =
            ["&lt;b&gt;7", "1,234", ">2<", "2 s", "in 3 s", "upstream shop, /x/{id}", "berlin", "paris"];
        for part in parts.into_iter().chain(regions) {
            assert!(html.contains(part), "{part}: {html}");
        }
        let view_in_russian = View::at(Language::Russian, now);
        let russian = content(&view_in_russian, &page, &[&flight], &sources).into_string();
        for part in ["Запросы сущностей", "через 3 с", "ожидается", "upstream shop, /x/{id}"]
        {
            assert!(russian.contains(part), "{part}: {russian}");
        }
        let none = content(&view, &json!({}), &[], &[]).into_string();
        assert!(none.contains("There are none.") && none.contains("No source is registered"), "{none}");
    }
}
