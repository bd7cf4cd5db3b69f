//! The audit log as a page: who commanded what, when and why.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::action::Action;
use super::error_page;
use super::parts::{count, group, operation_link, why_cell};
use super::view::{View, escape, items, number, text, time_in};
use crate::api::local::LocalApi;
use crate::audit::detail::changed_ids;
use crate::edge::query::Query;
use crate::error::Result;

/// The entries of a page.
const ROWS: usize = 50;
/// The last commands that the page of an operation has.
const DECISIONS: usize = 10;
/// The changed operations that a row names; the others unfold.
const NAMED: usize = 3;

pub(crate) async fn list(State(api): State<LocalApi>, headers: HeaderMap, mut query: Query) -> Response {
    let view = View::new(&headers, &api);
    let (cursor, operation) = (query.take("cursor"), query.take("operation"));
    let cursor = cursor.map_or_else(String::new, |text| format!("&cursor={}", escape(&text)));
    let only = operation.as_deref().map_or_else(String::new, |id| format!("&operation={}", escape(id)));
    let read = async {
        query.finish()?;
        api.get(&format!("/v1/audit?limit={ROWS}{only}{cursor}")).await
    };
    match read.await {
        Ok(page) => view.live_page(view.words.audit, &content(&view, operation.as_deref(), &page)),
        Err(error) => error_page(&error),
    }
}

/// Reads the last commands that changed an operation.
pub(super) async fn read_about(api: &LocalApi, id: &str) -> Result<Value> {
    api.get(&format!("/v1/audit?limit={DECISIONS}&operation={}", escape(id))).await
}

fn content(view: &View, operation: Option<&str>, page: &Value) -> Markup {
    let (words, entries) = (view.words, items(page, "entries"));
    let only = operation.map_or_else(String::new, |id| format!("&operation={}", escape(id)));
    html! {
        h1 { (words.audit) }
        p.quiet { (words.audit_about) }
        @if let Some(id) = operation {
            p { (words.operation) " " (operation_link(id)) " · " a href="/audit" { (words.show_all) } }
        }
        section #audit data-live {
            @if entries.is_empty() { p.quiet { (words.no_commands) } }
            @else { (table(view, entries)) }
        }
        @if let Some(next) = page["next_cursor"].as_str() {
            p { a href={ "/audit?cursor=" (escape(next)) (only) } { (words.older) } }
        }
    }
}

/// Who decided about an operation, when and why, on its page. Empty as long as no one did.
pub(super) fn decisions(view: &View, id: &str, page: &Value) -> Markup {
    let (entries, has_more) = (items(page, "entries"), page["next_cursor"].is_string());
    html! {
        section #decisions data-live {
            @if !entries.is_empty() || has_more { h2 { (view.words.decided) } }
            @if !entries.is_empty() { (table(view, entries)) }
            @if has_more { p { a href={ "/audit?operation=" (escape(id)) } { (view.words.older) } } }
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
    let (detail, changed) = changed_ids(text(entry, "detail"));
    let command = format!("{} {detail}", text(entry, "action"));
    html! {
        tr {
            td { @if let Some(at) = time_in(entry, "at") { (view.ago(at)) " " (view.words.ago) } }
            th scope="row" title=(who) { (by) }
            td.wrap title=(command.trim_end()) {
                (command_cell(view, entry, detail)) (named(&changed))
            }
            td title=[(!name.is_empty()).then_some(name)] { (subject(entry, name)) }
            (why_cell(text(entry, "reason")))
            (outcome(view, entry))
        }
    }
}

/// A command in the words of its button, with those of the API where they are others.
fn command_cell(view: &View, entry: &Value, detail: &str) -> Markup {
    let letters =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let action = text(entry, "action");
    html! {
        @match action_of(entry).map(|action| view.words.action(action).label) {
            Some(label) if letters(label) == letters(action) => { (label) " " span.quiet { (detail) } },
            Some(label) => { (label) " " span.quiet { (format!("{action} {detail}").trim_end()) } },
            None => { (format!("{action} {detail}").trim_end()) },
        }
    }
}

/// The action of the page that does the same as a command, so that both have the same words,
/// whichever client it came from.
pub(super) fn action_of(entry: &Value) -> Option<Action> {
    let detail = text(entry, "detail");
    let outcome = detail.strip_prefix("as ").and_then(|rest| rest.split(',').next());
    let outcome = outcome.map(|word| word.split(':').next().unwrap_or(word));
    Some(match (text(entry, "kind"), text(entry, "action"), outcome) {
        ("groups", "pause", _) => Action::Pause,
        ("groups", "resume", _) => Action::Resume,
        ("groups", "rerun_failed", _) => Action::RerunFailed,
        ("groups" | "generations", "dismiss", _) => Action::Dismiss,
        ("groups" | "generations", "restore", _) => Action::RestoreFailures,
        ("operations", "cancel", _) => Action::Cancel,
        ("operations", "rerun", _) => Action::Rerun,
        ("operations", "resolve", Some("succeeded")) => Action::Happened,
        ("operations", "resolve", Some("failed")) => Action::DidNotHappen,
        ("operations", "resolve", Some("repeat")) => Action::SendAgain,
        ("operations", "cancel_all", _) => Action::CancelAll,
        ("operations", "rerun_all", _) => Action::RerunAll,
        ("operations", "resolve_all", Some("succeeded")) => Action::AllHappened,
        ("operations", "resolve_all", Some("failed")) => Action::NoneHappened,
        ("operations", "resolve_all", Some("repeat")) => Action::SendAllAgain,
        ("limits", "set", _) if detail == "open true" => Action::OpenLimit,
        ("limits", "set", _) if detail == "reset true" => Action::ResetLimit,
        ("limits", "set", _) => Action::SetLimit,
        ("providers", "change", _) if detail.contains("open true") => Action::OpenProvider,
        ("keys", "release", _) => Action::ReleaseKey,
        ("keys", "expire", _) => Action::ExpireKey,
        ("keys", "complete", _) => Action::CompleteKey,
        _ => return None,
    })
}

/// Whether a command was carried out.
pub(super) fn is_done(entry: &Value) -> bool {
    matches!(number(entry, "status"), 200..300)
}

/// The operations that a command about several changed, each with a link.
fn named(ids: &[&str]) -> Markup {
    let (first, others) = ids.split_at(ids.len().min(NAMED));
    html! {
        @for id in first { " " (operation_link(id)) }
        @if !others.is_empty() {
            details {
                summary { "+" (count(others.len() as u64)) }
                @for id in others { (operation_link(id)) " " }
            }
        }
    }
}

fn subject(entry: &Value, name: &str) -> Markup {
    html! {
        @match text(entry, "kind") {
            "operations" if !name.is_empty() => (operation_link(name)),
            "groups" => (group(name)),
            "limits" => a href={ "/limits?name=" (escape(name)) } { (name) },
            "providers" => a href="/providers" { (name) },
            kind => { (kind) " " (name) }
        }
    }
}

fn outcome(view: &View, entry: &Value) -> Markup {
    let (status, detail) = (number(entry, "status"), text(entry, "detail"));
    let is_idle = detail == "0 changed" || detail.ends_with(": 0 changed");
    let (class, glyph, said) = match status {
        200..300 if is_idle => ("canceled", "·", view.words.changed_nothing.to_owned()),
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

    /// OPS-23: a command has the words of its button, whatever the API calls it.
    #[test]
    fn ops_23_a_command_has_the_words_of_its_button() {
        let view = View::at(Language::English, Time::ZERO);
        let table = [
            ("operations", "resolve", "as succeeded", "It happened"),
            ("operations", "resolve", "as failed", "It did not happen"),
            ("operations", "resolve", "as repeat", "Send again"),
            ("operations", "resolve_all", "as failed, group g: 2 changed", "None happened"),
            ("operations", "resolve_all", "as repeat: 2 changed", "Send all again"),
            ("groups", "rerun_failed", "2 changed", "Re-run failed"),
            ("groups", "restore", "group g", "Show again"),
            ("generations", "restore", "kind generation", "Show again"),
            ("limits", "set", "capacity 4", "Change"),
            ("limits", "set", "open true", "Open"),
            ("providers", "change", "open true", "Try again now"),
            ("limits", "set", "reset true", "As configured"),
            ("keys", "complete", "status 201", "Record response"),
        ];
        for (kind, action, detail, label) in table {
            let entry = json!({ "kind": kind, "action": action, "detail": detail, "status": 200 });
            let html = row(&view, &entry).into_string();
            let said = match action {
                "rerun_failed" => format!(">{label} <span class=\"quiet\">{detail}</span>"),
                _ => format!(">{label} <span class=\"quiet\">{action} {detail}</span>"),
            };
            assert!(html.contains(&said), "{said}: {html}");
        }
        let other = json!({ "kind": "providers", "action": "change", "status": 200 });
        assert!(row(&view, &other).into_string().contains(">change</td>"));
    }

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
