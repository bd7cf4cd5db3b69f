//! Generations: a gallery with the progress of each, in the language of the browser.

pub(crate) mod detail;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::{OperationId, Seq, Time};
use tidegate_dispatch::{Generation, GenerationPage, GenerationQuery, GenerationStatus};

use super::parts::time_ago;
use super::view::escape;
use super::words::{Language, Words};
use super::{Frame, error_page, framed};
use crate::api::generations as api;
use crate::api::parse_id;
use crate::edge::query::Query;
use crate::error::{Error, ErrorCode, Result};
use crate::state::{PartitionState, SharedPartition};
use crate::wire::generation::result_path;

/// The most generations of one page.
const SHOWN_MAX: usize = 24;
/// The most characters of a prompt that are shown as a title.
const TITLE_LEN_MAX: usize = 200;
/// The statuses that the gallery can be narrowed to.
const FILTERS: [GenerationStatus; 5] = [
    GenerationStatus::Queued,
    GenerationStatus::Processing,
    GenerationStatus::Completed,
    GenerationStatus::Failed,
    GenerationStatus::Canceled,
];

/// The page of a server that has no models: not an error, every server links to it.
pub(super) fn without_models(title: &str, language: Language) -> Response {
    let content = html! {
        h1 { (title) }
        p.quiet { (language.words().no_models) }
    };
    framed(&Frame { title, language, regions: None }, &content).into_response()
}

pub(crate) async fn list(State(app): State<SharedPartition>, headers: HeaderMap, query: Query) -> Response {
    let language = Language::preferred(&headers);
    let words = language.words();
    match read_page(&app, query).await {
        Ok(found) => {
            let content = gallery(&found, app.server.clock.now(), language);
            framed(&Frame { title: words.generations, language, regions: Some("") }, &content).into_response()
        }
        Err(error) if error.code == ErrorCode::UnknownModel => without_models(words.generations, language),
        Err(error) => error_page(&error),
    }
}

/// What the gallery shows.
struct GalleryPage {
    wanted: GenerationQuery,
    page: GenerationPage,
    /// The newest generation when the page was opened; `None` on a later page.
    through: Option<OperationId>,
    /// How many have come since then, up to as many as a page has.
    newer: usize,
}

async fn read_page(app: &PartitionState, mut query: Query) -> Result<GalleryPage> {
    let mut wanted = api::read_query(&mut query);
    wanted.before = api::page_cursor(&mut query, &wanted);
    let through = query.read("through", parse_id).filter(|_| wanted.before.is_none());
    query.finish()?;
    wanted.limit = wanted.limit.min(SHOWN_MAX);
    let generations = app.generations()?;
    // An open page shows the same generations as long as no one asks for the new ones.
    let after = |id: OperationId| OperationId::new(Time::ZERO, id.partition(), Seq(id.seq().0 + 1));
    let window = GenerationQuery { before: through.map(after).or(wanted.before), ..wanted.clone() };
    let mut page = generations.list(&window).await.map_err(Error::from)?;
    let newer = match through {
        Some(id) => {
            let newest = generations.list(&wanted).await.map_err(Error::from)?;
            newest.generations.iter().filter(|one| one.id.seq() > id.seq()).count()
        }
        None => 0,
    };
    // Pages have neither inputs nor files.
    let whole = join_all(page.generations.iter().map(|one| generations.get(one.id))).await;
    for (one, whole) in page.generations.iter_mut().zip(whole) {
        if let Ok(whole) = whole {
            *one = whole;
        }
    }
    let newest = page.generations.first().map(|one| one.id);
    let through = through.or_else(|| newest.filter(|_| wanted.before.is_none()));
    Ok(GalleryPage { wanted, page, through, newer })
}

fn gallery(found: &GalleryPage, now: Time, language: Language) -> Markup {
    let GalleryPage { wanted, page, through, newer } = found;
    let (words, all) = (language.words(), list_address(wanted.user.as_deref(), wanted.status, None));
    html! {
        h1 { (words.generations) @if let Some(user) = &wanted.user { " · " (user) } }
        (filters(wanted, words))
        section #generations data-live data-slots data-through=[*through] aria-label=(words.generations) {
            // The script counts here what it keeps out; the link loads the page anew.
            p.newcomers hidden data-newer=(newer) { a href=(all) { (language.operator_words().newcomers) } }
            @if page.generations.is_empty() {
                p.quiet { (words.no_generations) " " code { "tidegate generation create" } "." }
            } @else {
                ul.gallery { @for one in &page.generations { (card(one, now, words)) } }
            }
        }
        @if let Some(cursor) = api::next_cursor(page, wanted) {
            p { a href=(list_address(wanted.user.as_deref(), wanted.status, Some((wanted.limit, &cursor)))) { (words.more) } }
        }
    }
}

/// Links to the gallery with one status only, and to all of it.
fn filters(wanted: &GenerationQuery, words: &Words) -> Markup {
    let user = wanted.user.as_deref();
    let current = |status| (wanted.status == status && wanted.before.is_none()).then_some("page");
    html! {
        nav.filters aria-label=(words.status) {
            a href=(list_address(user, None, None)) aria-current=[current(None)] { (words.all) }
            @for status in FILTERS {
                a href=(list_address(user, Some(status), None)) aria-current=[current(Some(status))] { (words.status(status)) }
            }
            @if user.is_some() { a href="/generations" { (words.show_all) } }
        }
    }
}

/// The address of the gallery: of one user, with one status, after a cursor with so many to a page.
fn list_address(
    user: Option<&str>,
    status: Option<GenerationStatus>,
    after: Option<(usize, &str)>,
) -> String {
    let parts = [
        after.map(|(limit, cursor)| format!("limit={limit}&cursor={}", escape(cursor))),
        user.map(|user| format!("user_id={}", escape(user))),
        status.map(|status| format!("status={}", status.as_str())),
    ];
    let query: Vec<_> = parts.into_iter().flatten().collect();
    if query.is_empty() { "/generations".into() } else { format!("/generations?{}", query.join("&")) }
}

/// One generation of the gallery.
fn card(one: &Generation, now: Time, words: &Words) -> Markup {
    let title = title_of(one);
    html! {
        li id=(one.id) {
            a href={ "/generations/" (one.id) } {
                // The frame stays when the picture comes, and so does everything around it.
                span.picture { @if is_picture(one, 0) { (picture(one, 0, words)) } @else { (placeholder(one, words)) } }
                span.title title=(title) { (title) }
            }
            p { (state_of(one, words)) span.quiet { (one.user) } }
            p.quiet {
                span { (one.model) @if let Some(provider) = &one.provider { " · " (provider) } }
                (time_ago(one.created_at, now, words))
            }
        }
    }
}

/// What people know it by: its prompt, or its id.
fn title_of(one: &Generation) -> String {
    let prompt = one.input.get("prompt").and_then(Value::as_str).map(str::trim);
    let prompt = prompt.filter(|prompt| !prompt.is_empty());
    prompt.map_or_else(|| one.id.to_string(), |prompt| prompt.chars().take(TITLE_LEN_MAX).collect())
}

/// The status, never shown by colour alone.
fn state_of(one: &Generation, words: &Words) -> Markup {
    html! {
        span class={ "state " (state_class(one.status)) } {
            span aria-hidden="true" { (glyph(one.status)) } " " (words.status(one.status))
        }
    }
}

const fn glyph(status: GenerationStatus) -> &'static str {
    match status {
        GenerationStatus::Completed => "✓",
        GenerationStatus::Failed => "✕",
        GenerationStatus::Canceled => "⊘",
        GenerationStatus::Processing => "▶",
        GenerationStatus::Pending | GenerationStatus::Queued => "·",
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

/// What is shown where the picture will be: a spinner, the reason of the failure, or the type of a
/// result that is not a picture.
fn placeholder(one: &Generation, words: &Words) -> Markup {
    let said = match one.files.first() {
        Some(file) => Some(file.content_type.as_str()),
        None => one.error.as_deref().filter(|_| one.status.is_ended()),
    };
    html! {
        span class={ "blank " (state_class(one.status)) } {
            @if one.status.is_ended() {
                span.glyph aria-hidden="true" { (glyph(one.status)) }
                @if let Some(said) = said { span.reason title=(said) { (said) } }
            } @else {
                span.spinner role="img" aria-label=(words.status(one.status)) {}
            }
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
