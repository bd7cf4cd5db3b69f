//! Idempotency keys for operators: listed, looked into without bodies, released, expired, completed.
//! It needs the keys and the caller's name, and nothing else of a server.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tidegate::{Code, Error, Result};
use tidegate_core::shared::record::{Forget, Forgot};
use tidegate_idempotency::{Key, Keys, Name, Recording, Scope, Which};
use tidegate_store::{Clock, WallClock};

use super::Answer;
use crate::edge::auth::Caller;
use crate::edge::content;
use crate::edge::query::{Query, bad};
use crate::wire::cursor;
use crate::wire::failure::among;
use crate::wire::key::{ChangedOut, KeyOut, KeysOut, NameOut, STATES, read_answer, state};
use crate::wire::object::shown;

/// How long the answer that an operator records may take to arrive.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// Pages that are read for one page of keys in one state.
const READS_MAX: usize = 20;
/// Keys of the same text that are looked for at once.
const SAME_MAX: usize = 1_000;
/// Of those, how many are told.
const TOLD_MAX: usize = 20;

pub(super) async fn list(State(keys): State<Keys>, mut query: Query) -> Answer {
    let limit = query.limit();
    let key = query.read("key", |text| key(text, "key"));
    let scope = query.read("scope", scope);
    let wanted = query.read("state", |word| match STATES.contains(&word) {
        true => Ok(word.to_owned()),
        false => Err(bad("state", &format!("must be one of {}", STATES.join(", ")))),
    });
    let texts = [key.as_ref().map(Key::as_str), scope.as_ref().map(Scope::as_str), wanted.as_deref()];
    let list = texts.map(|text| text.map_or_else(String::new, |text| format!("={text}"))).join(" ");
    let list = format!("keys {list}");
    let mut after = query.read("cursor", |text| cursor::read_text(text, &list));
    query.finish()?;
    let (which, now) = (Which { scope, key }, WallClock.now());
    let mut found = Vec::new();
    for _ in 0..READS_MAX {
        let page = keys.list(&which, after, limit - found.len()).await.map_err(Error::from)?;
        let fits = |word: &str| wanted.as_deref().is_none_or(|wanted| wanted == word);
        found.extend(page.keys.into_iter().filter(|listed| fits(state(listed.standing, now))));
        after = page.next;
        if after.is_none() || found.len() >= limit {
            break;
        }
    }
    let lines = found.iter().map(|listed| KeyOut::line(listed, now)).collect();
    let next_cursor = after.map(|next| cursor::write_text(&next, &list));
    Ok(Json(KeysOut { keys: lines, next_cursor }).into_response())
}

pub(super) async fn show(State(keys): State<Keys>, Path(text): Path<String>, query: Query) -> Answer {
    let name = match find(&keys, &text, query).await? {
        Found::One(name) => name,
        Found::Several(names) => return Ok(several(&names)),
    };
    let shown = keys.show(&name).await.map_err(Error::from)?.ok_or_else(|| absent(&name.key))?;
    Ok(Json(KeyOut::whole(&shown, WallClock.now())).into_response())
}

pub(super) async fn release(
    State(keys): State<Keys>,
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    query: Query,
) -> Answer {
    change(&keys, &caller, &text, query, Forget::Claim).await
}

pub(super) async fn expire(
    State(keys): State<Keys>,
    Extension(caller): Extension<Caller>,
    Path(text): Path<String>,
    query: Query,
) -> Answer {
    change(&keys, &caller, &text, query, Forget::Answer).await
}

pub(super) async fn complete(
    State(keys): State<Keys>,
    Extension(Caller(who)): Extension<Caller>,
    Path(text): Path<String>,
    query: Query,
    body: Body,
) -> Answer {
    let name = match find(&keys, &text, query).await? {
        Found::One(name) => name,
        Found::Several(names) => return Ok(several(&names)),
    };
    let body = content::read(body, content::SMALL_MAX, BODY_PATIENCE).await?;
    let answer = read_answer(&body)?;
    let now = WallClock.now();
    let stands = match keys.complete(&name, answer, now, &who).await.map_err(Error::from)? {
        Recording::Recorded => {
            let shown = keys.show(&name).await.map_err(Error::from)?.ok_or_else(|| absent(&name.key))?;
            return Ok(Json(KeyOut::whole(&shown, now)).into_response());
        }
        Recording::Absent => return Err(absent(&name.key).into()),
        Recording::InWork => "is in work: its answer may still come. Wait for it, or release it.",
        Recording::HasAnswer => "has an answer already. Expire it to have the request run again.",
    };
    Err(Error::new(Code::NotNow, format!("The key {:?} {stands}", name.key.as_str())).into())
}

async fn change(keys: &Keys, Caller(who): &Caller, text: &str, query: Query, what: Forget) -> Answer {
    let name = match find(keys, text, query).await? {
        Found::One(name) => name,
        Found::Several(names) => return Ok(several(&names)),
    };
    let (forgot, state, stands) = match what {
        Forget::Claim => {
            let stands = "has an answer: there is no claim to release. Expire it instead.";
            (keys.release(&name, who).await, "released", stands)
        }
        Forget::Answer => {
            let stands =
                "has no answer yet: its request is in work, or nobody knows its outcome. Release it instead.";
            (keys.expire(&name, who).await, "expired", stands)
        }
    };
    match forgot.map_err(Error::from)? {
        Forgot::Gone => Ok(Json(ChangedOut { name: NameOut::new(&name), state }).into_response()),
        Forgot::Absent => Err(absent(&name.key).into()),
        Forgot::Otherwise => {
            let message = format!("The key {:?} {stands}", name.key.as_str());
            Err(Error::new(Code::NotNow, message).into())
        }
    }
}

enum Found {
    One(Name),
    Several(Vec<Name>),
}

/// The one key that a call is about: by all its parts at once, or by looking through the keys for the only one that fits.
async fn find(keys: &Keys, text: &str, mut query: Query) -> Result<Found> {
    let key = key(text, "key")?;
    let scope = query.read("scope", scope);
    let (method, path) = (query.take("method"), query.take("path"));
    query.finish()?;
    let method = method.map(|method| method.to_ascii_uppercase());
    if let (Some(scope), Some(method), Some(path)) = (&scope, &method, &path) {
        let name = Name::new(scope.clone(), method, path, key);
        return name.map(Found::One).ok_or_else(|| bad("path", "must be as a list shows it, without spaces"));
    }
    let which = Which { scope, key: Some(key.clone()) };
    let page = keys.list(&which, None, SAME_MAX).await?;
    let fits = |asked: &Option<String>, has: &str| asked.as_deref().is_none_or(|asked| asked == has);
    let names = page.keys.into_iter().map(|listed| listed.name);
    let mut names: Vec<_> =
        names.filter(|name| fits(&method, &name.method) && fits(&path, &name.path)).collect();
    if page.next.is_some() && names.len() < 2 {
        let message = "There are too many keys to look through: say scope, method and path.";
        return Err(Error::new(Code::KeyNotUnique, message).field("scope"));
    }
    match names.len() {
        0 => Err(absent(&key)),
        1 => Ok(Found::One(names.swap_remove(0))),
        _ => Ok(Found::Several(names)),
    }
}

fn several(names: &[Name]) -> Response {
    let count = names.len();
    let message = format!("{count} requests use this key: say which with scope, method and path.");
    let told: Vec<_> = names.iter().take(TOLD_MAX).map(NameOut::new).collect();
    among(Error::new(Code::KeyNotUnique, message), json!(told))
}

fn absent(key: &Key) -> Error {
    let message = format!("There is no key {:?} that fits; what has expired is forgotten.", key.as_str());
    Error::new(Code::NoKey, message).field("key")
}

fn key(text: &str, field: &str) -> Result<Key> {
    Key::printable(text).ok_or_else(|| bad(field, "must be 1 to 255 printable ASCII characters"))
}

/// A scope by its name, or as lists show it: `-` for everybody, `~` and digits for one that is kept as a hash.
fn scope(text: &str) -> Result<Scope> {
    if text != "-" && !text.starts_with('~') {
        return Ok(Scope::named(text));
    }
    let name = Name::parse(&format!("{text} - / -"));
    name.map(|name| name.scope).ok_or_else(|| bad("scope", &format!("cannot be {:?}", shown(text))))
}
