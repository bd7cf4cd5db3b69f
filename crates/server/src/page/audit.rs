//! The audit log as a page: who commanded what, when and why.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::error_page;
use super::parts::{group, operation_link};
use super::view::{View, escape, items, number, text, time_in};
use crate::api::local::LocalApi;
use crate::edge::query::Query;

/// The entries of a page.
const ROWS: usize = 50;

pub(crate) async fn list(State(api): State<LocalApi>, headers: HeaderMap, mut query: Query) -> Response {
    let view = View::new(&headers, &api);
    let cursor = query.take("cursor").map_or_else(String::new, |text| format!("&cursor={}", escape(&text)));
    let read = async {
        query.finish()?;
        api.get(&format!("/v1/audit?limit={ROWS}{cursor}")).await
    };
    match read.await {
        Ok(page) => view.live_page(view.words.audit, &content(&view, &page)),
        Err(error) => error_page(&error),
    }
}

fn content(view: &View, page: &Value) -> Markup {
    let (words, entries) = (view.words, items(page, "entries"));
    html! {
        h1 { (words.audit) }
        p.quiet { (words.audit_about) }
        section #audit data-live {
            @if entries.is_empty() { p.quiet { (words.no_commands) } }
            @else { (table(view, entries)) }
        }
        @if let Some(next) = page["next_cursor"].as_str() {
            p { a href={ "/audit?cursor=" (escape(next)) } { (words.older) } }
        }
    }
}

fn table(view: &View, entries: &[Value]) -> Markup {
    let words = view.words;
    html! {
        table.cards {
            caption.hidden { (words.audit) }
            thead {
                tr {
                    th.c-time scope="col" { (words.when) }
                    th.c-time scope="col" { (words.who) }
                    th.c-name scope="col" { (words.command) }
                    th.c-name scope="col" { (words.subject) }
                    th scope="col" { (words.reason) }
                    th.c-time scope="col" { (words.outcome) }
                }
            }
            tbody {
                @for entry in entries {
                    tr {
                        td { @if let Some(at) = time_in(entry, "at") { (view.ago(at)) " " (words.ago) } }
                        th scope="row" title=(text(entry, "node")) { (text(entry, "by")) }
                        td { (text(entry, "action")) @if let Some(detail) = entry["detail"].as_str() { " " (detail) } }
                        td { (subject(entry)) }
                        td.why { (text(entry, "reason")) }
                        td { (outcome(view, number(entry, "status"))) }
                    }
                }
            }
        }
    }
}

fn subject(entry: &Value) -> Markup {
    let name = text(entry, "subject");
    html! {
        @match text(entry, "kind") {
            "operations" if !name.is_empty() => (operation_link(name)),
            "groups" => (group(name)),
            kind => { (kind) " " (name) }
        }
    }
}

fn outcome(view: &View, status: u64) -> Markup {
    html! {
        @if (200..300).contains(&status) { span.state.done { span aria-hidden="true" { "✓" } " " (view.words.done) } }
        @else { span.state.failed { span aria-hidden="true" { "✕" } " " (view.words.refused) " (" (status) ")" } }
    }
}
