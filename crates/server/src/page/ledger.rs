//! The ledger: attempts at providers, newest first, and which of them may be billed twice.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tidegate_core::Time;
use tidegate_dispatch::LedgerEntry;

use super::generations::without_models;
use super::parts::{count, id_link, time_ago, why_cell};
use super::view::escape;
use super::words::{Language, Words};
use super::{Frame, error_page, framed};
use crate::api::generations::ledger::LedgerQuery;
use crate::edge::query::Query;
use crate::error::{ErrorCode, Result};
use crate::state::{PartitionState, SharedPartition};

/// How many pages are searched for one that is not empty.
const PAGES_MAX: usize = 20;

pub(crate) async fn show(State(app): State<SharedPartition>, headers: HeaderMap, query: Query) -> Response {
    let language = Language::preferred(&headers);
    let words = language.words();
    match read(&app, query).await {
        Ok((wanted, entries, next)) => {
            let content = content(wanted, &entries, next.as_deref(), app.server.clock.now(), words);
            framed(&Frame { title: words.ledger, language, regions: Some("") }, &content).into_response()
        }
        Err(error) if error.code == ErrorCode::UnknownModel => without_models(words.ledger, language),
        Err(error) => error_page(&error),
    }
}

async fn read(
    app: &PartitionState,
    mut query: Query,
) -> Result<(LedgerQuery, Vec<LedgerEntry>, Option<String>)> {
    let wanted = LedgerQuery::read(&mut query);
    query.finish()?;
    let (page, next) = wanted.first_page(app, PAGES_MAX).await?;
    Ok((wanted, page.entries, next))
}

fn content(
    wanted: LedgerQuery,
    entries: &[LedgerEntry],
    next: Option<&str>,
    now: Time,
    words: &Words,
) -> Markup {
    let filter = if wanted.only_doubtful() { "&may_be_double=true" } else { "" };
    html! {
        h1 { (words.ledger) }
        p {
            @if wanted.only_doubtful() { a href="/ledger" { (words.show_all) } }
            @else { a href="/ledger?may_be_double=true" { (words.only_doubtful) } }
        }
        section #ledger data-live {
            @if entries.is_empty() {
                p.quiet { @if next.is_some() { (words.no_attempts_yet) } @else { (words.no_attempts) } }
            }
            @else { (attempts_table(entries, now, words, true)) }
        }
        @if let Some(cursor) = next {
            p { a href={ "/ledger?cursor=" (escape(cursor)) (filter) } { (words.more) } }
        }
    }
}

/// Attempts as a table; `is_mixed` when they are of several generations.
pub(super) fn attempts_table(entries: &[LedgerEntry], now: Time, words: &Words, is_mixed: bool) -> Markup {
    html! {
        table.cards.rows {
            caption { (words.costs_about) }
            thead {
                tr {
                    @if is_mixed { th.c-id scope="col" { (words.generation) } }
                    th.number scope="col" { (words.attempt) }
                    th.c-id scope="col" { (words.provider) }
                    th.c-state scope="col" { (words.outcome) }
                    th.c-time scope="col" { (words.submitted) }
                    th.number scope="col" { (words.cost) }
                    th.c-id scope="col" { (words.job) }
                    th scope="col" { (words.reason) }
                }
            }
            tbody { @for entry in entries { (row(entry, now, words, is_mixed)) } }
        }
    }
}

fn row(entry: &LedgerEntry, now: Time, words: &Words, is_mixed: bool) -> Markup {
    let id = entry.generation.to_string();
    html! {
        tr {
            @if is_mixed { th scope="row" { (id_link("/generations/", &id)) } }
            td.number data-label=(words.attempt) { (entry.attempt) }
            td { (entry.provider) " · " (entry.key) }
            td.why {
                span {
                    (words.attempt_outcome(entry.outcome))
                    @if entry.may_be_billed_twice { " " strong.doubt { (words.billed_twice) } }
                }
            }
            td { (time_ago(entry.submitted_at, now, words)) }
            td.number data-label=(words.cost) { @if let Some(cost) = entry.cost { (count(cost)) } }
            td { @if let Some(job) = &entry.external_id { code title=(job) { (job) } } }
            (why_cell(entry.reason.as_deref().unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An empty page before the end is not the end.
    #[test]
    fn an_empty_page_says_whether_older_attempts_were_searched() {
        let wanted = LedgerQuery::read(&mut Query::parse("may_be_double=true"));
        let shown = |next| content(wanted, &[], next, Time::ZERO, Language::English.words()).into_string();
        let (searched, ended) = (shown(Some("cursor-1")), shown(None));
        let href = "/ledger?cursor=cursor-1&amp;may_be_double=true";
        assert!(searched.contains("None so far") && searched.contains(href), "{searched}");
        assert!(ended.contains("There are none.") && !ended.contains("cursor="), "{ended}");
    }
}
