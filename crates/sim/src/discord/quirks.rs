//! Ways in which a server differs from Discord, each off by default: a bot that meets such a server
//! must still end, and say what happened.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::channel::{CATEGORY, Channel};
use super::guild::{Actor, Guild};
use super::overwrite::Overwrite;
use super::refusal::{DiscordErrorCode, DiscordRefusal, status_body};
use super::route::{DiscordEndpoint, RouteTarget};
use super::window::WindowDecision;

/// The reason that a failing edit gives.
pub const BROKEN: &str = "Cannot read properties of undefined (reading 'id')";
/// Types of channels that only a guild with the community features has: announcement, stage, forum.
const COMMUNITY_TYPES: [u64; 3] = [5, 13, 15];

/// The quirks of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiscordQuirks {
    /// Whether the routes that order roles and channels are answered 404.
    pub no_orders: bool,
    /// Whether overwrites are accepted, shown in the response, and not kept.
    pub forget_overwrites: bool,
    /// Whether every edit fails with a 500 that gives a reason.
    pub broken_edits: bool,
    /// How much longer than the bucket's reset a 429 asks to wait, in milliseconds.
    pub longer_wait_ms: u64,
    /// Types of channels that are refused, by their numbers.
    pub refused_types: Vec<u64>,
    /// Whether headers always report that something is left.
    pub false_headers: bool,
    /// The permissions of bots that join, instead of Administrator.
    pub bot_permissions: Option<u64>,
    /// Whether guilds lack the community features.
    pub no_community: bool,
}

impl DiscordQuirks {
    /// Sets a quirk from text: `no_orders`, or with a value `longer_wait_ms=2000`.
    ///
    /// # Errors
    /// When there is no such quirk, or the value does not fit.
    pub fn set(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once('=').unwrap_or((text, "true"));
        let value = serde_json::from_str::<serde_json::Value>(value)
            .map_err(|_| format!("{value:?} is no value of {name}"))?;
        let mut all = serde_json::to_value(&*self).unwrap_or_default();
        all[name] = value;
        *self = serde_json::from_value(all).map_err(|error| error.to_string())?;
        Ok(())
    }

    /// Refuses a call that such a server does not carry out.
    ///
    /// # Errors
    /// The refusal.
    pub fn check(
        &self,
        target: &RouteTarget,
        actor: Actor,
        body: &serde_json::Value,
    ) -> Result<(), DiscordRefusal> {
        if actor == Actor::Operator {
            return Ok(());
        }
        let refuse = |status: u16, body| {
            let status = hyper::StatusCode::from_u16(status).unwrap_or_default();
            Err(DiscordRefusal::Plain(status, body))
        };
        let because = |message: String| serde_json::json!({ "message": message, "code": 0 });
        let wanted = body["type"].as_u64();
        match target.route.call {
            DiscordEndpoint::RolePositions | DiscordEndpoint::ChannelPositions if self.no_orders => {
                refuse(404, status_body(hyper::StatusCode::NOT_FOUND))
            }
            DiscordEndpoint::RoleEdit | DiscordEndpoint::ChannelEdit | DiscordEndpoint::MessageEdit
                if self.broken_edits =>
            {
                refuse(500, because(BROKEN.to_owned()))
            }
            DiscordEndpoint::ChannelCreate
                if wanted.is_some_and(|kind| self.refused_types.contains(&kind)) =>
            {
                refuse(400, because(format!("Channel type {} is not supported", wanted.unwrap_or(CATEGORY))))
            }
            DiscordEndpoint::ChannelCreate | DiscordEndpoint::ChannelEdit
                if self.no_community && wanted.is_some_and(|kind| COMMUNITY_TYPES.contains(&kind)) =>
            {
                Err(DiscordErrorCode::WrongType.into())
            }
            _ => Ok(()),
        }
    }

    /// Returns the overwrites of all channels before a call, if they are not to change.
    #[must_use]
    pub fn kept_overwrites(&self, actor: Actor, guild: &Guild) -> Option<BTreeMap<u64, Vec<Overwrite>>> {
        let overwrites = |channel: &Channel| (channel.id, channel.overwrites.clone());
        (self.forget_overwrites && actor != Actor::Operator)
            .then(|| guild.channels.values().map(overwrites).collect())
    }

    /// Returns what headers report of a limit.
    #[must_use]
    pub fn reported(&self, decision: Option<WindowDecision>) -> Option<WindowDecision> {
        let something = |decision: WindowDecision| WindowDecision {
            remaining: decision.limit.saturating_sub(1).max(1),
            ..decision
        };
        if self.false_headers { decision.map(something) } else { decision }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_are_set_by_name() {
        let mut quirks = DiscordQuirks::default();
        for text in ["no_orders", "longer_wait_ms=2000", "refused_types=[13,15]"] {
            quirks.set(text).unwrap();
        }
        assert!(quirks.no_orders && !quirks.broken_edits);
        assert_eq!((quirks.longer_wait_ms, quirks.refused_types.as_slice()), (2_000, [13, 15].as_slice()));
        for wrong in ["no_order", "no_orders=3", "longer_wait_ms=x"] {
            assert!(quirks.set(wrong).is_err(), "{wrong}");
        }
    }
}
