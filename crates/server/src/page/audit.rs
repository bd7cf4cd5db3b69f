//! The audit log as a page: who commanded what, when and why.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::error_page;
use super::parts::{group, operation_link, why_cell};
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
                    th.c-state scope="col" { (words.when) }
                    th.c-time scope="col" { (words.who) }
                    th.c-left scope="col" { (words.command) }
                    th.c-name scope="col" { (words.subject) }
                    th scope="col" { (words.reason) }
                    th.c-id scope="col" { (words.outcome) }
                }
            }
            tbody { @for entry in entries { (row(view, entry)) } }
        }
    }
}

/// One command. What does not fit in its cell is in the tooltip too.
fn row(view: &View, entry: &Value) -> Markup {
    let (by, node, name) = (text(entry, "by"), text(entry, "node"), text(entry, "subject"));
    let who = if node.is_empty() { by.to_owned() } else { format!("{by} · {node}") };
    let detail = text(entry, "detail");
    let command = format!("{} {detail}", text(entry, "action"));
    html! {
        tr {
            td { @if let Some(at) = time_in(entry, "at") { (view.ago(at)) " " (view.words.ago) } }
            th scope="row" title=(who) { (by) }
            td.wrap title=(command.trim_end()) { (command.trim_end()) }
            td title=[(!name.is_empty()).then_some(name)] { (subject(entry, name)) }
            (why_cell(text(entry, "reason")))
            (outcome(view, number(entry, "status")))
        }
    }
}

fn subject(entry: &Value, name: &str) -> Markup {
    html! {
        @match text(entry, "kind") {
            "operations" if !name.is_empty() => (operation_link(name)),
            "groups" => (group(name)),
            kind => { (kind) " " (name) }
        }
    }
}

fn outcome(view: &View, status: u64) -> Markup {
    let (class, glyph, said) = match status {
        200..300 => ("done", "✓", view.words.done.to_owned()),
        _ => ("failed", "✕", format!("{} ({status})", view.words.refused)),
    };
    html! { td title=(said) { span class={ "state " (class) } { span aria-hidden="true" { (glyph) } " " (said) } } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::Time;

    use super::super::words::Language;
    use super::*;

    #[test]
    fn what_may_be_cut_off_is_in_a_tooltip() {
        let view = View::at(Language::English, Time::ZERO);
        let entry = json!({
            "by": "anna", "node": "a", "action": "resolve_all", "detail": "as failed", "kind": "operations",
            "subject": "", "reason": "It was a test.", "status": 409,
        });
        let html = row(&view, &entry).into_string();
        for all in ["anna · a", "resolve_all as failed", "It was a test.", "refused (409)"] {
            assert!(html.contains(&format!("title=\"{all}\"")), "{all}: {html}");
        }
        assert!(!html.contains("title=\"\""), "{html}");
    }
}
