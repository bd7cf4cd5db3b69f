//! The control interface at `/_sim/…`: counts, limits, faults, the clock, and changes of guilds as
//! an operator. Discord has none of it.

use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tidegate_core::Time;

use super::fault_switch::{FaultRule, FaultSwitch};
use super::request::DiscordRequest;
use super::route::limit_named;
use super::sim_state::DiscordSimState;
use super::snowflake;
use crate::server::json as answer;

const KNOWN: &str = "there are GET stats, log, limits, quirks, stop and guilds/{id}; POST limits, quirks, global, \
shared, reset, stop, clock and guilds/{id}; DELETE stop; and any route of the API under hand/";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DurationBody {
    for_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedLimitBody {
    limit: String,
    for_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BotRoleBody {
    bot_permissions: Option<String>,
    bot_position: Option<u64>,
}

/// The side effect of a control call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlEffect {
    /// None.
    Nothing,
    /// Cuts the hanging calls.
    Lift,
    /// Advances the clock.
    Forward(Duration),
}

type ControlResult = Result<(Value, ControlEffect), (StatusCode, String)>;

/// Handles a call to `/_sim/…`; also returns its side effect.
pub fn control(
    world: &mut DiscordSimState,
    request: &Request<Bytes>,
    now: Time,
) -> (Response<Bytes>, ControlEffect) {
    let path = request.uri().path().strip_prefix("/_sim/").unwrap_or_default();
    if let Some(path) = path.strip_prefix("hand/") {
        let reply = world.handle_as_operator(&DiscordRequest::of(request), &format!("/{path}"), now);
        return (reply.to_response(), ControlEffect::Nothing);
    }
    match handle(world, request, path, now) {
        Ok((reply, after)) => (answer(StatusCode::OK, &reply), after),
        Err((status, error)) => (answer(status, &json!({ "error": error })), ControlEffect::Nothing),
    }
}

fn handle(world: &mut DiscordSimState, request: &Request<Bytes>, path: &str, now: Time) -> ControlResult {
    let quiet = |reply: Value| Ok((reply, ControlEffect::Nothing));
    match (request.method(), path) {
        (&Method::GET, "stats") => quiet(json!(world.stats())),
        (&Method::GET, "limits") => quiet(json!(world.limits)),
        (&Method::GET, "quirks") => quiet(json!(world.quirks)),
        (&Method::GET, "stop") => quiet(json!(world.stop)),
        (&Method::GET, "log") => {
            let after = request.uri().query().and_then(|query| query.strip_prefix("after="));
            let after = after.unwrap_or("0").parse().map_err(|_| bad_request("after is a number"))?;
            quiet(json!({ "writes": world.writes(after) }))
        }
        (&Method::POST, "limits") => {
            world.limits = world.limits.with(&read(request)?).map_err(bad_request)?;
            quiet(json!(world.limits))
        }
        (&Method::POST, "quirks") => {
            world.quirks = read(request)?;
            quiet(json!(world.quirks))
        }
        (&Method::POST, "global") => {
            let DurationBody { for_ms } = read(request)?;
            world.limiter.close(now.after(Duration::from_millis(for_ms)));
            quiet(json!({}))
        }
        (&Method::POST, "shared") => {
            let SharedLimitBody { limit, for_ms } = read(request)?;
            let limit =
                limit_named(&limit).ok_or_else(|| bad_request(format!("no route has a limit {limit:?}")))?;
            world.limiter.exhaust_shared(limit, now.after(Duration::from_millis(for_ms)));
            quiet(json!({}))
        }
        (&Method::POST, "reset") => {
            world.limiter.reset();
            quiet(json!({}))
        }
        (&Method::POST, "stop") => {
            let order: FaultRule = read(request)?;
            if order.write == 0 {
                return Err(bad_request("the next write is 1"));
            }
            world.stop = FaultSwitch::new(order);
            Ok((json!(world.stop), ControlEffect::Lift))
        }
        (&Method::DELETE, "stop") => {
            let reached = world.stop;
            world.stop = FaultSwitch::default();
            Ok((json!(reached), ControlEffect::Lift))
        }
        (&Method::POST, "clock") => {
            let DurationBody { for_ms } = read(request)?;
            Ok((json!({}), ControlEffect::Forward(Duration::from_millis(for_ms))))
        }
        (method, path) => match path.strip_prefix("guilds/").and_then(snowflake::parse) {
            Some(guild) => handle_guild(world, method, guild, request),
            None => Err((StatusCode::NOT_FOUND, KNOWN.to_owned())),
        },
    }
}

fn handle_guild(
    world: &mut DiscordSimState,
    method: &Method,
    guild: u64,
    request: &Request<Bytes>,
) -> ControlResult {
    if *method == Method::POST {
        let BotRoleBody { bot_permissions, bot_position } = read(request)?;
        let bits = bot_permissions.map(|bits| bits.parse()).transpose();
        let bits = bits.map_err(|_| bad_request("permissions are a decimal number in quotes"))?;
        world.set_bots(guild, bits, bot_position);
    } else if *method != Method::GET {
        return Err((StatusCode::NOT_FOUND, KNOWN.to_owned()));
    }
    let dump = world
        .dump(guild)
        .ok_or_else(|| (StatusCode::NOT_FOUND, format!("no call has named the guild {guild} yet")))?;
    Ok((dump, ControlEffect::Nothing))
}

fn read<T: DeserializeOwned>(request: &Request<Bytes>) -> Result<T, (StatusCode, String)> {
    serde_json::from_slice(request.body()).map_err(|error| bad_request(error.to_string()))
}

fn bad_request(error: impl Into<String>) -> (StatusCode, String) {
    (StatusCode::BAD_REQUEST, error.into())
}
