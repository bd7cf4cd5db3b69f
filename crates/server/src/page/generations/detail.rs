//! One generation: its pictures, what it waits for, and its attempts.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use tidegate_core::Time;
use tidegate_dispatch::{AttemptOutcome, Generation, GenerationReason, GenerationStatus, LedgerEntry};

use super::{is_picture, list_address, picture, placeholder, state_class, state_of, title_of};
use crate::api::generations as api;
use crate::error::{Error, Result};
use crate::page::actions::button;
use crate::page::ledger::attempts_table;
use crate::page::operation::actions_for;
use crate::page::parts::{operation_link, time_ago};
use crate::page::view::View;
use crate::page::words::{Language, Words};
use crate::page::{Frame, error_page, framed};
use crate::state::{PartitionState, SharedPartition};
use crate::wire::generation::result_path;
use crate::wire::time::Timestamp;

/// The most characters of an input that are shown.
const INPUT_LEN_MAX: usize = 4_000;

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
    let actions = actions_for(state_class(one.status));
    html! {
        h1.title { (title_of(one)) }
        section #status data-live {
            div.split {
                div { (results(one, words)) }
                div {
                    p.sentence role="status" { (state_of(one, words)) }
                    @if let Some(error) = &one.error { p { (words.reason) ": " (error) } }
                    @if has_failed_job(found) { p.quiet { (words.job_failed) } }
                    @if one.cancel_requested && !one.status.is_ended() { p { (words.cancel_requested) } }
                    @if !actions.is_empty() {
                        p.buttons { @for action in actions { (button(&View::at(language, now), *action, &one.id.to_string())) } }
                    }
                    (facts(one, now, language))
                }
            }
            @if !one.status.is_ended() { (waiting_for(&found.why, language)) }
            @if !found.attempts.is_empty() {
                h2 { (words.attempts) }
                div.wide { (attempts_table(&found.attempts, now, words, false)) }
            }
        }
    }
}

/// Whether a job failed that its provider had accepted.
fn has_failed_job(found: &GenerationDetails) -> bool {
    let is_job = |entry: &LedgerEntry| entry.outcome == AttemptOutcome::Failed && entry.external_id.is_some();
    found.one.status == GenerationStatus::Failed && found.attempts.iter().any(is_job)
}

/// Its files, or what is shown as long as there are none.
fn results(one: &Generation, words: &Words) -> Markup {
    html! {
        @if one.files.is_empty() {
            // As high as the picture and its caption.
            figure { span.picture { (placeholder(one, words)) } figcaption.quiet { "\u{a0}" } }
        }
        @for (index, file) in one.files.iter().enumerate() {
            figure {
                @if is_picture(one, index) { span.picture { (picture(one, index, words)) } }
                figcaption.quiet { a href=(result_path(one.id, index)) { (words.file) " " (index + 1) } " · " (file.content_type) }
            }
        }
    }
}

fn facts(one: &Generation, now: Time, language: Language) -> Markup {
    let words = language.words();
    let input = serde_json::to_string_pretty(&one.input).unwrap_or_default();
    let input: String = input.chars().take(INPUT_LEN_MAX).collect();
    html! {
        dl {
            dt { (words.model) } dd { (one.model) }
            dt { (words.user) } dd { a href=(list_address(Some(&one.user), None, None)) { (one.user) } }
            @if let Some(provider) = &one.provider { dt { (words.provider) } dd { (provider) } }
            @if let Some(position) = one.queue_position { dt { (words.position) } dd { (position) } }
            @if let Some(percent) = one.progress { dt { (words.progress) } dd { (percent) " %" } }
            dt { (words.created) } dd { (Timestamp(one.created_at)) " (" (time_ago(one.created_at, now, words)) ")" }
            @if let Some(at) = one.finished_at { dt { (words.ended) } dd { (Timestamp(at)) " (" (time_ago(at, now, words)) ")" } }
            @if !one.input.is_null() { dt { (words.input) } dd { pre { (input) } } }
            dt { (language.operator_words().operation) } dd { (operation_link(&one.id.to_string())) }
            dt { "API" } dd { a href={ "/api/generations/" (one.id) } { code { (one.id) } } " " (words.as_json) }
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
            div.wide {
                table.cards {
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
}
