//! The audit log as a page: who commanded what, when and why.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::error_page;
use super::parts::{group, operation_link};
use super::view::{View, items, number, text, time_in};
use crate::api::local::LocalApi;

/// The entries of the page.
const ROWS: usize = 200;

pub(crate) async fn list(State(api): State<LocalApi>, headers: HeaderMap) -> Response {
    let view = View::new(&headers, &api);
    match api.get(&format!("/v1/audit?limit={ROWS}")).await {
        Ok(page) => view.live_page(view.words.audit, &content(&view, items(&page, "entries"))),
        Err(error) => error_page(&error),
    }
}

fn content(view: &View, entries: &[Value]) -> Markup {
    let words = view.words;
    html! {
        h1 { (words.audit) }
        p.quiet { (words.audit_about) }
        section #audit data-live {
            @if entries.is_empty() { p.quiet { (words.no_commands) } }
            @else { (table(view, entries)) }
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
                        th scope="row" { (text(entry, "by")) }
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
