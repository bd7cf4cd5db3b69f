//! What is told and changed at `/_sim/…`: counts, limits, stops, the clock, and guilds by hand. Discord has none of
//! it.

use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tidegate_core::Time;

use super::arrival::Arrival;
use super::route::limit_named;
use super::snowflake;
use super::stop::{Order, Stop};
use super::world::World;
use crate::server::json as answer;

const KNOWN: &str = "there are GET stats, log, limits, stop and guilds/{id}; POST limits, global, shared, reset, stop, \
clock and guilds/{id}; DELETE stop; and any route of the API under hand/";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct For {
    for_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shared {
    limit: String,
    for_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bots {
    bot_permissions: Option<String>,
    bot_position: Option<u64>,
}

/// What follows besides the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Nothing.
    Nothing,
    /// What hangs is cut.
    Lift,
    /// The clock goes forward.
    Forward(Duration),
}

type Told = Result<(Value, After), (StatusCode, String)>;

/// Answers a call to `/_sim/…`, with what follows.
pub fn control(world: &mut World, request: &Request<Bytes>, now: Time) -> (Response<Bytes>, After) {
    let path = request.uri().path().strip_prefix("/_sim/").unwrap_or_default();
    if let Some(path) = path.strip_prefix("hand/") {
        let told = world.by_hand(&Arrival::of(request), &format!("/{path}"), now);
        return (told.response(), After::Nothing);
    }
    match tell(world, request, path, now) {
        Ok((told, after)) => (answer(StatusCode::OK, &told), after),
        Err((status, error)) => (answer(status, &json!({ "error": error })), After::Nothing),
    }
}

fn tell(world: &mut World, request: &Request<Bytes>, path: &str, now: Time) -> Told {
    let quiet = |told: Value| Ok((told, After::Nothing));
    match (request.method(), path) {
        (&Method::GET, "stats") => quiet(json!(world.stats())),
        (&Method::GET, "limits") => quiet(json!(world.limits)),
        (&Method::GET, "stop") => quiet(json!(world.stop)),
        (&Method::GET, "log") => {
            let after = request.uri().query().and_then(|query| query.strip_prefix("after="));
            let after = after.unwrap_or("0").parse().map_err(|_| bad("after is a number"))?;
            quiet(json!({ "writes": world.writes(after) }))
        }
        (&Method::POST, "limits") => {
            world.limits = world.limits.with(&read(request)?).map_err(bad)?;
            quiet(json!(world.limits))
        }
        (&Method::POST, "global") => {
            let For { for_ms } = read(request)?;
            world.gate.close(now.after(Duration::from_millis(for_ms)));
            quiet(json!({}))
        }
        (&Method::POST, "shared") => {
            let Shared { limit, for_ms } = read(request)?;
            let limit = limit_named(&limit).ok_or_else(|| bad(format!("no route has a limit {limit:?}")))?;
            world.gate.share(limit, now.after(Duration::from_millis(for_ms)));
            quiet(json!({}))
        }
        (&Method::POST, "reset") => {
            world.gate.reset();
            quiet(json!({}))
        }
        (&Method::POST, "stop") => {
            let order: Order = read(request)?;
            if order.write == 0 {
                return Err(bad("the next write is 1"));
            }
            world.stop = Stop::new(order);
            Ok((json!(world.stop), After::Lift))
        }
        (&Method::DELETE, "stop") => {
            let reached = world.stop;
            world.stop = Stop::default();
            Ok((json!(reached), After::Lift))
        }
        (&Method::POST, "clock") => {
            let For { for_ms } = read(request)?;
            Ok((json!({}), After::Forward(Duration::from_millis(for_ms))))
        }
        (method, path) => match path.strip_prefix("guilds/").and_then(snowflake::parse) {
            Some(guild) => of_guild(world, method, guild, request),
            None => Err((StatusCode::NOT_FOUND, KNOWN.to_owned())),
        },
    }
}

fn of_guild(world: &mut World, method: &Method, guild: u64, request: &Request<Bytes>) -> Told {
    if *method == Method::POST {
        let Bots { bot_permissions, bot_position } = read(request)?;
        let bits = bot_permissions.map(|bits| bits.parse()).transpose();
        let bits = bits.map_err(|_| bad("permissions are a decimal number in quotes"))?;
        world.set_bots(guild, bits, bot_position);
    } else if *method != Method::GET {
        return Err((StatusCode::NOT_FOUND, KNOWN.to_owned()));
    }
    let dump = world
        .dump(guild)
        .ok_or_else(|| (StatusCode::NOT_FOUND, format!("no call has named the guild {guild} yet")))?;
    Ok((dump, After::Nothing))
}

fn read<T: DeserializeOwned>(request: &Request<Bytes>) -> Result<T, (StatusCode, String)> {
    serde_json::from_slice(request.body()).map_err(|error| bad(error.to_string()))
}

fn bad(error: impl Into<String>) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, error.into())
}
