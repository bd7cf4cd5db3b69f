//! Generations: create, show, list, cancel, why one waits, and the files of a result.

pub(crate) mod events;
pub(crate) mod ledger;
pub(crate) mod models;
pub(crate) mod providers;
pub(crate) mod webhooks;

use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, HeaderMap, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use tidegate_core::OperationId;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_dispatch::{
    Generation, GenerationPage, GenerationQuery, GenerationStatus, Generations, NewGeneration,
};
use tidegate_idempotency::HEADER;

use super::{HandlerResult, parse_id};
use crate::edge::auth::Caller;
use crate::edge::content::{RequestBody, explain_format};
use crate::edge::query::Query;
use crate::edge::request_id::RequestId;
use crate::error::{Error, ErrorCode, Result};
use crate::state::{PartitionState, SharedPartition};
use crate::wire::cursor;
use crate::wire::field::Field;
use crate::wire::generation::{GenerationOut, GenerationPageOut, GenerationReasonOut, parse_status};
use crate::wire::object::{Fields, read};

const NAMES: [&str; 4] = ["model_id", "input", "user_id", "notify_url"];
/// The longest id of a user, in bytes.
const USER_LEN_MAX: usize = 128;
/// How long a browser may keep a file of a result, which never changes.
const RESULT_CACHE: HeaderValue = HeaderValue::from_static("private, max-age=31536000, immutable");

impl PartitionState {
    /// The generations of this partition.
    ///
    /// # Errors
    /// When no model is configured.
    pub(crate) fn generations(&self) -> Result<&Generations> {
        self.generations.as_ref().ok_or_else(|| {
            let message = "There are no generations: no [model.NAME] is configured.";
            Error::new(ErrorCode::UnknownModel, message)
        })
    }
}

pub(super) async fn create(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    headers: HeaderMap,
    body: RequestBody,
) -> HandlerResult {
    let generations = app.generations()?;
    let body = body.read().await?;
    let mut new = parse(&body, &caller).map_err(|error| explain_format(error, &headers))?;
    if let Some((service, url)) = app.server.generations.as_ref().zip(new.notify_url.as_deref()) {
        service.check_notify_url(url)?;
    }
    new.request_id = Some(request_id.to_string());
    // The same key of another caller is another key.
    new.idempotency_key = headers.get(HEADER).map(|key| {
        let name = Fingerprint::of("idempotency key").part(caller.0.as_bytes()).part(key.as_bytes());
        hex(&name.finish())
    });
    let mut created = generations.create(&new).await.map_err(Error::from)?;
    if !created.deduplicated {
        // As it was accepted, although a worker may have it by now.
        created.generation.status = GenerationStatus::Queued;
        (created.generation.provider, created.generation.processing_since) = (None, None);
    }
    let location = [(LOCATION, format!("/api/generations/{}", created.generation.id))];
    let status = if created.deduplicated { StatusCode::OK } else { StatusCode::ACCEPTED };
    let out = GenerationOut::whole(&created.generation).created(created.deduplicated);
    Ok((status, location, Json(out)).into_response())
}

fn parse(body: &[u8], caller: &Caller) -> Result<NewGeneration> {
    let Fields { values, mut problems } = read(body, &NAMES)?;
    let field = |index: usize| Field { name: NAMES[index], raw: values[index] };
    let model = problems.check(field(0).required_text());
    let input = problems.check(field(1).object().map(str::to_owned));
    let user = problems.check(field(2).text());
    if let Some(user) = &user {
        problems.check(field(2).check_len(user, 1..=USER_LEN_MAX));
    }
    let notify_url = problems.check(field(3).text());
    problems.finish()?;
    let input = serde_json::from_str(&input).map_err(|_| {
        let message = "The field \"input\" has numbers or characters that cannot be represented.";
        Error::new(ErrorCode::Malformed, message).field("input")
    })?;
    let user = user.unwrap_or_else(|| caller.0.to_string());
    let mut new = NewGeneration::new(user, model, input);
    new.notify_url = notify_url;
    Ok(new)
}

pub(super) async fn show(State(app): State<SharedPartition>, Path(text): Path<String>) -> HandlerResult {
    let one = find(&app, &text).await?;
    Ok(Json(GenerationOut::whole(&one)).into_response())
}

/// Finds the generation of an id in a path.
pub(crate) async fn find(app: &PartitionState, text: &str) -> Result<Generation> {
    let id = parse_generation_id(text)?;
    app.generations()?.get(id).await.map_err(Error::from)
}

/// Parses the id in a path.
fn parse_generation_id(text: &str) -> Result<OperationId> {
    parse_id(text).map_err(|mut error| {
        error.message =
            error.message.replace("an operation", "a generation").replace("operation", "generation");
        error
    })
}

pub(super) async fn list(State(app): State<SharedPartition>, mut query: Query) -> HandlerResult {
    let mut wanted = read_query(&mut query);
    let list = list_name(&wanted);
    wanted.before = query.read("cursor", |text| read_cursor(text, &list));
    query.finish()?;
    let page = app.generations()?.list(&wanted).await.map_err(Error::from)?;
    let generations = page.generations.iter().map(GenerationOut::line).collect();
    let next_cursor = next_cursor(&page, &wanted);
    Ok(Json(GenerationPageOut { generations, next_cursor }).into_response())
}

/// Reads the filter of a list, without its cursor.
pub(crate) fn read_query(query: &mut Query) -> GenerationQuery {
    GenerationQuery {
        user: query.take("user_id"),
        status: query.read("status", parse_status),
        before: None,
        limit: query.limit(),
    }
}

/// What a cursor belongs to.
fn list_name(wanted: &GenerationQuery) -> String {
    let status = wanted.status.map_or("", |status| status.as_str());
    format!("generations {status} {}", wanted.user.as_deref().unwrap_or_default())
}

/// The cursor of the next page, if there is one.
pub(crate) fn next_cursor(page: &GenerationPage, wanted: &GenerationQuery) -> Option<String> {
    page.next.map(|id| cursor::write_text(&id.to_string(), &list_name(wanted)))
}

/// Reads the cursor of a list whose entries are found by the ids of operations.
fn read_cursor(text: &str, list: &str) -> Result<OperationId> {
    cursor::read_text(text, list)?.parse().map_err(|_| cursor::bad_cursor())
}

/// Reads the cursor of a page of generations.
pub(crate) fn page_cursor(query: &mut Query, wanted: &GenerationQuery) -> Option<OperationId> {
    let list = list_name(wanted);
    query.read("cursor", |text| read_cursor(text, &list))
}

pub(super) async fn cancel(
    State(app): State<SharedPartition>,
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    body: RequestBody,
) -> HandlerResult {
    let id = parse_generation_id(&text)?;
    body.read_empty().await?;
    let one = app.generations()?.cancel(id).await.map_err(Error::from)?;
    tracing::info!(generation = %id, by = &*caller.0, "a generation was canceled");
    Ok(Json(GenerationOut::whole(&one)).into_response())
}

pub(super) async fn why(State(app): State<SharedPartition>, Path(text): Path<String>) -> HandlerResult {
    let id = parse_generation_id(&text)?;
    let reason = app.generations()?.why(id).await.map_err(Error::from)?;
    Ok(Json(GenerationReasonOut::new(&reason)).into_response())
}

pub(super) async fn result(
    State(app): State<SharedPartition>,
    Path((text, index)): Path<(String, String)>,
) -> HandlerResult {
    let one = find(&app, &text).await?;
    let missing = || {
        let message = format!("The generation has no result {index:?}; it has {}.", one.files.len());
        Error::new(ErrorCode::NoResult, message)
    };
    let file = index.parse::<usize>().ok().and_then(|index| one.files.get(index)).ok_or_else(missing)?;
    let Some(service) = &app.server.generations else { return Err(missing().into()) };
    let stored = service.dispatch.storage().get(&file.key).await.map_err(|error| {
        let message = format!("The result cannot be read now: {error}.");
        Error::new(ErrorCode::StoreUnavailable, message).with_source(error)
    })?;
    let gone = || Error::new(ErrorCode::NoResult, "The result is no longer in the storage.");
    let stored = stored.ok_or_else(gone)?;
    // Its type is a provider's word: only pictures and videos are shown by a browser.
    let kind = HeaderValue::from_str(&stored.content_type).ok().filter(|_| is_media(&stored.content_type));
    let shown = if kind.is_some() { "inline" } else { "attachment" };
    let kind = kind.unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, RESULT_CACHE),
        (CONTENT_DISPOSITION, HeaderValue::from_static(shown)),
        (
            ETAG,
            HeaderValue::from_str(&format!("\"{}\"", file.key)).unwrap_or(HeaderValue::from_static("\"\"")),
        ),
    ];
    Ok((headers, stored.bytes).into_response())
}

/// Whether a content type is a picture or a video, and not a document with scripts.
fn is_media(kind: &str) -> bool {
    (kind.starts_with("image/") && !kind.starts_with("image/svg")) || kind.starts_with("video/")
}
