//! Generations: a list with the progress of each, and one with its pictures, what it waits for and
//! its attempts. In the language of the browser.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tidegate_core::Time;
use tidegate_dispatch::{
    Generation, GenerationPage, GenerationQuery, GenerationReason, GenerationStatus, LedgerEntry,
};

use super::ledger::attempts_table;
use super::parts::time_ago;
use super::words::{Language, Words};
use super::{Frame, error_page, framed};
use crate::api::generations as api;
use crate::edge::query::Query;
use crate::error::{Error, Result};
use crate::state::{PartitionState, SharedPartition};
use crate::wire::generation::result_path;
use crate::wire::time::Timestamp;

/// The most generations of one page.
const SHOWN_MAX: usize = 24;
/// The most characters of an input that are shown.
const INPUT_LEN_MAX: usize = 4_000;

pub(crate) async fn list(State(app): State<SharedPartition>, headers: HeaderMap, query: Query) -> Response {
    let language = Language::preferred(&headers);
    let words = language.words();
    match read_page(&app, query).await {
        Ok((wanted, page)) => {
            let content = gallery(&page, &wanted, app.server.clock.now(), words);
            framed(&Frame { title: words.generations, language, regions: Some("") }, &content).into_response()
        }
        Err(error) => error_page(&error),
    }
}

async fn read_page(app: &PartitionState, mut query: Query) -> Result<(GenerationQuery, GenerationPage)> {
    let mut wanted = api::read_query(&mut query);
    wanted.before = api::page_cursor(&mut query, &wanted);
    query.finish()?;
    wanted.limit = wanted.limit.min(SHOWN_MAX);
    let generations = app.generations()?;
    let mut page = generations.list(&wanted).await.map_err(Error::from)?;
    // Pages have neither files nor providers.
    let whole = join_all(page.generations.iter().map(|one| generations.get(one.id))).await;
    for (one, whole) in page.generations.iter_mut().zip(whole) {
        if let Ok(whole) = whole {
            *one = whole;
        }
    }
    Ok((wanted, page))
}

fn gallery(page: &GenerationPage, wanted: &GenerationQuery, now: Time, words: &Words) -> Markup {
    let is_filtered = wanted.user.is_some() || wanted.status.is_some() || wanted.before.is_some();
    html! {
        h1 { (words.generations) @if let Some(user) = &wanted.user { " · " (user) } }
        @if is_filtered { p { a href="/generations" { (words.show_all) } } }
        section #generations data-live aria-label=(words.generations) {
            @if page.generations.is_empty() {
                p.quiet { (words.no_generations) " " code { "tidegate generation create" } "." }
            } @else {
                ul.gallery { @for one in &page.generations { (card(one, now, words)) } }
            }
        }
        @if let Some(cursor) = api::next_cursor(page, wanted) { p { a href=(next_page(wanted, &cursor)) { (words.more) } } }
    }
}

fn next_page(wanted: &GenerationQuery, cursor: &str) -> String {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let user = wanted.user.as_deref().map(|user| format!("&user_id={}", encode(user)));
    let status = wanted.status.map(|status| format!("&status={}", status.as_str()));
    format!(
        "/generations?limit={}&cursor={}{}{}",
        wanted.limit,
        encode(cursor),
        user.unwrap_or_default(),
        status.unwrap_or_default()
    )
}

/// One generation of the list.
fn card(one: &Generation, now: Time, words: &Words) -> Markup {
    html! {
        li id=(one.id) {
            a href={ "/generations/" (one.id) } {
                @if is_picture(one, 0) { (picture(one, 0, words)) } @else { span.blank { (progress(one, words)) } }
            }
            p { (state_of(one, words)) }
            p.quiet {
                (one.model)
                @if let Some(provider) = &one.provider { " · " (provider) }
                " · " (time_ago(one.created_at, now, words))
            }
            @if let Some(error) = &one.error { p.why { (error) } }
        }
    }
}

/// The status, never shown by colour alone.
fn state_of(one: &Generation, words: &Words) -> Markup {
    let glyph = match one.status {
        GenerationStatus::Completed => "✓",
        GenerationStatus::Failed => "✕",
        GenerationStatus::Canceled => "⊘",
        GenerationStatus::Processing => "▶",
        GenerationStatus::Pending | GenerationStatus::Queued => "·",
    };
    html! {
        span class={ "state " (state_class(one.status)) } {
            span aria-hidden="true" { (glyph) } " " (words.status(one.status))
        }
    }
}

/// The class whose colour a status has.
const fn state_class(status: GenerationStatus) -> &'static str {
    match status {
        GenerationStatus::Pending | GenerationStatus::Queued => "queued",
        GenerationStatus::Processing => "running",
        GenerationStatus::Completed => "succeeded",
        GenerationStatus::Failed => "failed",
        GenerationStatus::Canceled => "canceled",
    }
}

/// A spinner while it is not finished.
fn progress(one: &Generation, words: &Words) -> Markup {
    html! {
        @if !one.status.is_ended() {
            span.spinner role="img" aria-label=(words.status(one.status)) {}
        }
    }
}

fn is_picture(one: &Generation, index: usize) -> bool {
    one.files.get(index).is_some_and(|file| file.content_type.starts_with("image/"))
}

fn picture(one: &Generation, index: usize, words: &Words) -> Markup {
    html! {
        img src=(result_path(one.id, index)) alt={ (words.picture) " " (one.model) } loading="lazy" decoding="async";
    }
}

pub(crate) async fn show(
    State(app): State<SharedPartition>,
    headers: HeaderMap,
    Path(text): Path<String>,
) -> Response {
    let language = Language::preferred(&headers);
    match read_one(&app, &text).await {
        Ok(found) => {
            let content = detail(&found, app.server.clock.now(), language);
            let regions = (!found.one.status.is_ended()).then_some("");
            let title = format!("{} {}", language.words().generation, found.one.id);
            framed(&Frame { title: &title, language, regions }, &content).into_response()
        }
        Err(error) => error_page(&error),
    }
}

/// A generation and what is known about it.
struct GenerationDetails {
    one: Generation,
    why: GenerationReason,
    attempts: Vec<LedgerEntry>,
}

async fn read_one(app: &PartitionState, text: &str) -> Result<GenerationDetails> {
    let one = api::find(app, text).await?;
    let generations = app.generations()?;
    let (why, attempts) =
        tokio::try_join!(generations.why(one.id), generations.ledger_of(one.id)).map_err(Error::from)?;
    Ok(GenerationDetails { one, why, attempts })
}

fn detail(found: &GenerationDetails, now: Time, language: Language) -> Markup {
    let (one, words) = (&found.one, language.words());
    html! {
        h1 { code { (one.id) } }
        section #status data-live aria-live="polite" {
            p.sentence { (progress(one, words)) " " (state_of(one, words)) }
            @if let Some(error) = &one.error { p.sentence { (words.reason) ": " (error) } }
            @if one.cancel_requested && !one.status.is_ended() { p { (words.cancel_requested) } }
            (files(one, words))
            (facts(one, now, words))
            @if !one.status.is_ended() { (waiting_for(&found.why, language)) }
            @if !found.attempts.is_empty() {
                h2 { (words.attempts) }
                (attempts_table(&found.attempts, now, words, false))
            }
        }
    }
}

fn files(one: &Generation, words: &Words) -> Markup {
    html! {
        @for (index, file) in one.files.iter().enumerate() {
            figure {
                @if is_picture(one, index) { (picture(one, index, words)) }
                figcaption { a href=(result_path(one.id, index)) { (words.file) " " (index + 1) } " · " (file.content_type) }
            }
        }
    }
}

fn facts(one: &Generation, now: Time, words: &Words) -> Markup {
    let input = serde_json::to_string_pretty(&one.input).unwrap_or_default();
    let input: String = input.chars().take(INPUT_LEN_MAX).collect();
    html! {
        dl {
            dt { (words.model) } dd { (one.model) }
            dt { (words.user) } dd { a href={ "/generations?user_id=" (utf8_percent_encode(&one.user, NON_ALPHANUMERIC)) } { (one.user) } }
            @if let Some(provider) = &one.provider { dt { (words.provider) } dd { (provider) } }
            @if let Some(position) = one.queue_position { dt { (words.position) } dd { (position) } }
            @if let Some(percent) = one.progress { dt { (words.progress) } dd { (percent) " %" } }
            dt { (words.created) } dd { (Timestamp(one.created_at)) " (" (time_ago(one.created_at, now, words)) ")" }
            @if let Some(at) = one.finished_at { dt { (words.ended) } dd { (Timestamp(at)) " (" (time_ago(at, now, words)) ")" } }
            @if !one.input.is_null() { dt { (words.input) } dd { pre { (input) } } }
            dt { "API" } dd { a href={ "/api/generations/" (one.id) } { (words.as_json) } }
        }
    }
}

/// Each provider of the chain, with its reason and time.
fn waiting_for(why: &GenerationReason, language: Language) -> Markup {
    let words = language.words();
    html! {
        h2 { (words.why_waiting) }
        // Sentences are the engine's; the table below says the same in every language.
        @if language == Language::English { p { (why.because) } }
        @if !why.providers.is_empty() {
            table {
                caption.hidden { (words.why_waiting) }
                thead { tr { th.c-name scope="col" { (words.provider) } th.c-name scope="col" { (words.key) } th.c-state scope="col" { (words.status) } th scope="col" { (words.until) } } }
                tbody {
                    @for one in &why.providers {
                        tr {
                            th scope="row" { (one.provider) }
                            td { (one.key) }
                            td title=(one.because) { (words.provider_state(one.state)) }
                            td { @if let Some(until) = one.until { (Timestamp(until)) } }
                        }
                    }
                }
            }
        }
    }
}
