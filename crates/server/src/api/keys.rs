//! Idempotency keys for operators: list, show without bodies, release, expire, complete. It needs
//! the keys and the caller's name, and nothing else of a server.

use axum::Json;
use axum::extract::{Extension, Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tidegate_core::Time;
use tidegate_core::shared::record::{ForgetOutcome, ForgetTarget};
use tidegate_idempotency::{CallerScope, IdempotencyKey, KeyAdmin, KeyFilter, RecordName, RecordingOutcome};
use tidegate_store::{Clock, WallClock};

use super::HandlerResult;
use crate::edge::auth::Caller;
use crate::edge::content::RequestBody;
use crate::edge::query::{Query, bad_parameter};
use crate::error::{Error, ErrorCode, Result};
use crate::wire::cursor;
use crate::wire::error::ambiguous_response;
use crate::wire::key::{FreedKeyOut, KeyNameOut, KeyOut, KeysOut, STATES, read_answer, state};
use crate::wire::object::truncate_name;
use crate::wire::time::Timestamp;

/// How many pages are read for one page of keys in one state.
const READS_MAX: usize = 20;
/// How many keys with the same text are searched at once.
const SAME_MAX: usize = 1_000;
/// How many of those are listed.
const CANDIDATES_SHOWN_MAX: usize = 20;

pub(super) async fn list(State(keys): State<KeyAdmin>, mut query: Query) -> HandlerResult {
    let limit = query.limit();
    let key = query.read("key", |text| parse_key(text, "key"));
    let scope = query.read("scope", parse_scope);
    let wanted = query.read("state", |word| match STATES.contains(&word) {
        true => Ok(word.to_owned()),
        false => Err(bad_parameter("state", &format!("must be one of {}", STATES.join(", ")))),
    });
    let texts = [
        key.as_ref().map(IdempotencyKey::as_str),
        scope.as_ref().map(CallerScope::as_str),
        wanted.as_deref(),
    ];
    let list = texts.map(|text| text.map_or_else(String::new, |text| format!("={text}"))).join(" ");
    let list = format!("keys {list}");
    let mut after = query.read("cursor", |text| cursor::read_text(text, &list));
    query.finish()?;
    let (which, now) = (KeyFilter { scope, key }, WallClock.now());
    let mut found = Vec::new();
    for _ in 0..READS_MAX {
        let page = keys.list(&which, after, limit - found.len()).await.map_err(Error::from)?;
        let fits = |word: &str| wanted.as_deref().is_none_or(|wanted| wanted == word);
        found.extend(page.keys.into_iter().filter(|listed| fits(state(listed.state, now))));
        after = page.next;
        if after.is_none() || found.len() >= limit {
            break;
        }
    }
    let lines = found.iter().map(|listed| KeyOut::line(listed, now)).collect();
    let next_cursor = after.map(|next| cursor::write_text(&next, &list));
    Ok(Json(KeysOut { keys: lines, next_cursor }).into_response())
}

pub(super) async fn show(
    State(keys): State<KeyAdmin>,
    Path(text): Path<String>,
    query: Query,
) -> HandlerResult {
    let name = match find_key(&keys, &text, query).await? {
        KeyMatch::One(name) => name,
        KeyMatch::Several(names) => return Ok(ambiguous_key(&names)),
    };
    let shown = keys.show(&name).await.map_err(Error::from)?.ok_or_else(|| no_such_key(&name.key))?;
    Ok(Json(KeyOut::whole(&shown, WallClock.now())).into_response())
}

pub(super) async fn release(
    State(keys): State<KeyAdmin>,
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    query: Query,
) -> HandlerResult {
    forget_key(&keys, &caller, &text, query, ForgetTarget::Claim).await
}

pub(super) async fn expire(
    State(keys): State<KeyAdmin>,
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    query: Query,
) -> HandlerResult {
    forget_key(&keys, &caller, &text, query, ForgetTarget::Answer).await
}

pub(super) async fn complete(
    State(keys): State<KeyAdmin>,
    Extension(Caller(who)): Extension<Caller>,
    Path(text): Path<String>,
    query: Query,
    body: RequestBody,
) -> HandlerResult {
    let (seen, query) = take_seen(query);
    let name = match find_key(&keys, &text, query).await? {
        KeyMatch::One(name) => name,
        KeyMatch::Several(names) => return Ok(ambiguous_key(&names)),
    };
    check_seen(&keys, &name, seen).await?;
    let body = body.read().await?;
    let answer = read_answer(&body)?;
    let now = WallClock.now();
    let stands = match keys.complete(&name, answer, now, &who).await.map_err(Error::from)? {
        RecordingOutcome::Recorded => {
            let shown = keys.show(&name).await.map_err(Error::from)?.ok_or_else(|| no_such_key(&name.key))?;
            return Ok(Json(KeyOut::whole(&shown, now)).into_response());
        }
        RecordingOutcome::Absent => return Err(no_such_key(&name.key).into()),
        RecordingOutcome::InWork => "is processing: its response may still come. Wait for it, or release it.",
        RecordingOutcome::HasAnswer => "has a response already. Expire it to have the request run again.",
    };
    Err(Error::new(ErrorCode::NotNow, format!("The key {:?} {stands}", name.key.as_str())).into())
}

async fn forget_key(
    keys: &KeyAdmin,
    Caller(who): &Caller,
    text: &str,
    query: Query,
    what: ForgetTarget,
) -> HandlerResult {
    let (seen, query) = take_seen(query);
    let name = match find_key(keys, text, query).await? {
        KeyMatch::One(name) => name,
        KeyMatch::Several(names) => return Ok(ambiguous_key(&names)),
    };
    check_seen(keys, &name, seen).await?;
    let (forgot, state, stands) = match what {
        ForgetTarget::Claim => {
            let stands = "has a response: there is no claim to release. Expire it instead.";
            (keys.release(&name, who).await, "released", stands)
        }
        ForgetTarget::Answer => {
            let stands =
                "has no response yet: it is processing or its outcome is unknown. Release it instead.";
            (keys.expire(&name, who).await, "expired", stands)
        }
    };
    match forgot.map_err(Error::from)? {
        ForgetOutcome::Gone => Ok(Json(FreedKeyOut { name: KeyNameOut::new(&name), state }).into_response()),
        ForgetOutcome::Absent => Err(no_such_key(&name.key).into()),
        ForgetOutcome::Mismatch => {
            let message = format!("The key {:?} {stands}", name.key.as_str());
            Err(Error::new(ErrorCode::NotNow, message).into())
        }
    }
}

/// When the use of the key began that a command is about, if it says so.
fn take_seen(mut query: Query) -> (Option<Time>, Query) {
    (query.time("created_at"), query)
}

/// Refuses a command about an earlier use of a key: what an operator saw is gone, and this one is
/// of another request.
async fn check_seen(keys: &KeyAdmin, name: &RecordName, seen: Option<Time>) -> Result<()> {
    let Some(seen) = seen else { return Ok(()) };
    let shown = keys.show(name).await.map_err(Error::from)?.ok_or_else(|| no_such_key(&name.key))?;
    // Times are shown in milliseconds.
    if Timestamp(shown.summary.created).to_string() == Timestamp(seen).to_string() {
        return Ok(());
    }
    let message =
        format!("The key {:?} was used again since; look at it before you decide.", name.key.as_str());
    Err(Error::new(ErrorCode::NotNow, message).field("created_at"))
}

enum KeyMatch {
    One(RecordName),
    Several(Vec<RecordName>),
}

/// Finds the key of a request: by all its parts, or by searching for the only one that matches.
async fn find_key(keys: &KeyAdmin, text: &str, mut query: Query) -> Result<KeyMatch> {
    let key = parse_key(text, "key")?;
    let scope = query.read("scope", parse_scope);
    let (method, path) = (query.take("method"), query.take("path"));
    query.finish()?;
    let method = method.map(|method| method.to_ascii_uppercase());
    if let (Some(scope), Some(method), Some(path)) = (&scope, &method, &path) {
        let name = RecordName::new(scope.clone(), method, path, key);
        return name
            .map(KeyMatch::One)
            .ok_or_else(|| bad_parameter("path", "must be as a list shows it, without spaces"));
    }
    let which = KeyFilter { scope, key: Some(key.clone()) };
    let page = keys.list(&which, None, SAME_MAX).await?;
    let fits = |asked: &Option<String>, has: &str| asked.as_deref().is_none_or(|asked| asked == has);
    let names = page.keys.into_iter().map(|listed| listed.name);
    let mut names: Vec<_> =
        names.filter(|name| fits(&method, &name.method) && fits(&path, &name.path)).collect();
    if page.next.is_some() && names.len() < 2 {
        let message = "There are too many keys to search: give scope, method and path.";
        return Err(Error::new(ErrorCode::KeyNotUnique, message).field("scope"));
    }
    match names.len() {
        0 => Err(no_such_key(&key)),
        1 => Ok(KeyMatch::One(names.swap_remove(0))),
        _ => Ok(KeyMatch::Several(names)),
    }
}

fn ambiguous_key(names: &[RecordName]) -> Response {
    let count = names.len();
    let message = format!("{count} requests use this key: select one with scope, method and path.");
    let told: Vec<_> = names.iter().take(CANDIDATES_SHOWN_MAX).map(KeyNameOut::new).collect();
    ambiguous_response(Error::new(ErrorCode::KeyNotUnique, message), json!(told))
}

fn no_such_key(key: &IdempotencyKey) -> Error {
    let message = format!("There is no key {:?} that matches; expired keys are removed.", key.as_str());
    Error::new(ErrorCode::NoKey, message).field("key")
}

fn parse_key(text: &str, field: &str) -> Result<IdempotencyKey> {
    IdempotencyKey::printable(text)
        .ok_or_else(|| bad_parameter(field, "must be 1 to 255 printable ASCII characters"))
}

/// Parses a scope by its name, or as lists show it: `-` for all callers, `~` and digits for one
/// that is stored as a hash.
fn parse_scope(text: &str) -> Result<CallerScope> {
    if text != "-" && !text.starts_with('~') {
        return Ok(CallerScope::named(text));
    }
    let name = RecordName::parse(&format!("{text} - / -"));
    name.map(|name| name.scope)
        .ok_or_else(|| bad_parameter("scope", &format!("cannot be {:?}", truncate_name(text))))
}
