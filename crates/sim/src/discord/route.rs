//! Finds the route of a request: its template, its limit and the ids in its path. It looks at no
//! body.

use hyper::Method;
use tidegate_core::fingerprint::{Fingerprint, hex};

use super::refusal::{DiscordErrorCode, DiscordRefusal, status_body};
use super::{form, snowflake};

/// The endpoints of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table below tells what each one is")]
pub enum DiscordEndpoint {
    Gateway,
    GatewayBot,
    Me,
    Application,
    Guild,
    Member,
    Roles,
    RoleCreate,
    RolePositions,
    Role,
    RoleEdit,
    RoleDelete,
    Channels,
    ChannelCreate,
    ChannelPositions,
    Channel,
    ChannelEdit,
    ChannelDelete,
    OverwritePut,
    OverwriteDelete,
    Messages,
    MessageCreate,
    Message,
    MessageEdit,
    MessageDelete,
}

/// A route.
#[derive(Debug, PartialEq, Eq)]
pub struct EndpointRoute {
    /// The HTTP method.
    pub method: Method,
    /// The path template.
    pub template: &'static str,
    /// The endpoint.
    pub call: DiscordEndpoint,
    /// Its limit, which others may share; `None` for none.
    pub limit: Option<&'static str>,
    /// What its hash is derived from. Others may have the same hash and count separately.
    hashed: &'static str,
}

const fn route(
    method: Method,
    template: &'static str,
    call: DiscordEndpoint,
    limit: &'static str,
    hashed: &'static str,
) -> EndpointRoute {
    EndpointRoute { method, template, call, limit: Some(limit), hashed }
}

/// All routes. The two lists show one hash and count separately; overwrites, and a role's edits and
/// removal, show one hash and count together.
static ROUTES: [EndpointRoute; 26] = {
    use Method as M;
    [
        EndpointRoute {
            method: M::GET,
            template: "/gateway",
            call: DiscordEndpoint::Gateway,
            limit: None,
            hashed: "",
        },
        route(M::GET, "/gateway/bot", DiscordEndpoint::GatewayBot, "gateway-bot", "gateway-bot"),
        route(M::GET, "/users/@me", DiscordEndpoint::Me, "me", "me"),
        route(M::GET, "/oauth2/applications/@me", DiscordEndpoint::Application, "application", "oauth2"),
        route(M::GET, "/applications/@me", DiscordEndpoint::Application, "application", "application"),
        route(M::GET, "/guilds/{guild}", DiscordEndpoint::Guild, "guild", "guild"),
        route(M::GET, "/guilds/{guild}/members/{user}", DiscordEndpoint::Member, "member", "member"),
        route(M::GET, "/guilds/{guild}/roles", DiscordEndpoint::Roles, "roles-list", "lists"),
        route(M::POST, "/guilds/{guild}/roles", DiscordEndpoint::RoleCreate, "role-create", "role-create"),
        route(
            M::PATCH,
            "/guilds/{guild}/roles",
            DiscordEndpoint::RolePositions,
            "role-positions",
            "role-positions",
        ),
        route(M::GET, "/guilds/{guild}/roles/{role}", DiscordEndpoint::Role, "roles-list", "lists"),
        route(M::PATCH, "/guilds/{guild}/roles/{role}", DiscordEndpoint::RoleEdit, "role-edit", "role-edit"),
        route(
            M::DELETE,
            "/guilds/{guild}/roles/{role}",
            DiscordEndpoint::RoleDelete,
            "role-edit",
            "role-edit",
        ),
        route(M::GET, "/guilds/{guild}/channels", DiscordEndpoint::Channels, "channels-list", "lists"),
        route(
            M::POST,
            "/guilds/{guild}/channels",
            DiscordEndpoint::ChannelCreate,
            "channel-create",
            "channel-create",
        ),
        route(
            M::PATCH,
            "/guilds/{guild}/channels",
            DiscordEndpoint::ChannelPositions,
            "channel-positions",
            "positions",
        ),
        route(M::GET, "/channels/{channel}", DiscordEndpoint::Channel, "channel-get", "channel-get"),
        route(M::PATCH, "/channels/{channel}", DiscordEndpoint::ChannelEdit, "channel-edit", "channel-edit"),
        route(
            M::DELETE,
            "/channels/{channel}",
            DiscordEndpoint::ChannelDelete,
            "channel-delete",
            "channel-delete",
        ),
        route(
            M::PUT,
            "/channels/{channel}/permissions/{overwrite}",
            DiscordEndpoint::OverwritePut,
            OVERWRITES,
            OVERWRITES,
        ),
        route(
            M::DELETE,
            "/channels/{channel}/permissions/{overwrite}",
            DiscordEndpoint::OverwriteDelete,
            OVERWRITES,
            OVERWRITES,
        ),
        route(M::GET, "/channels/{channel}/messages", DiscordEndpoint::Messages, MESSAGES, MESSAGES),
        route(
            M::POST,
            "/channels/{channel}/messages",
            DiscordEndpoint::MessageCreate,
            "message-create",
            "post",
        ),
        route(M::GET, "/channels/{channel}/messages/{message}", DiscordEndpoint::Message, MESSAGES, MESSAGES),
        route(
            M::PATCH,
            "/channels/{channel}/messages/{message}",
            DiscordEndpoint::MessageEdit,
            "message-edit",
            "patch",
        ),
        route(
            M::DELETE,
            "/channels/{channel}/messages/{message}",
            DiscordEndpoint::MessageDelete,
            "message-delete",
            "gone",
        ),
    ]
};

const OVERWRITES: &str = "overwrites";
const MESSAGES: &str = "messages-read";

/// A route and the ids in its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteTarget {
    /// The route.
    pub route: &'static EndpointRoute,
    /// The guild, where the path names one.
    pub guild: Option<u64>,
    /// The channel, where the path names one.
    pub channel: Option<u64>,
    /// The id of the object inside those, or 0.
    pub inner: u64,
}

impl RouteTarget {
    /// Finds the route of a method and a path without its version.
    ///
    /// # Errors
    /// When there is no such route.
    pub fn of(method: &Method, path: &str) -> Result<Self, DiscordRefusal> {
        let mut is_place = false;
        for route in &ROUTES {
            let Some(ids) = ids(route.template, path) else { continue };
            is_place = true;
            if route.method == *method {
                return Self::with(route, ids);
            }
        }
        let status = if is_place { 405 } else { 404 };
        let status = hyper::StatusCode::from_u16(status).unwrap_or_default();
        Err(DiscordRefusal::Plain(status, status_body(status)))
    }

    fn with(route: &'static EndpointRoute, ids: Vec<(&'static str, &str)>) -> Result<Self, DiscordRefusal> {
        let mut target = Self { route, guild: None, channel: None, inner: 0 };
        for (name, text) in ids {
            let id = snowflake::parse(text).ok_or_else(|| {
                let message = format!("Value \"{text}\" is not snowflake.");
                form::invalid(&format!("{name}_id"), "NUMBER_TYPE_COERCE", message)
            })?;
            match name {
                "guild" => target.guild = Some(id),
                "channel" => target.channel = Some(id),
                _ => target.inner = id,
            }
        }
        Ok(target)
    }

    /// Returns the id that its limit is counted by, besides the limit and the bot.
    #[must_use]
    pub fn major(&self) -> u64 {
        self.guild.or(self.channel).unwrap_or(0)
    }

    /// Returns its name in counts.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{} {}", self.route.method, self.route.template)
    }

    /// Returns its hash: the same in every guild and channel, and different from simulator to
    /// simulator.
    #[must_use]
    pub fn hash(&self, salt: u64) -> String {
        let hash = Fingerprint::of("sim discord bucket").part(&salt.to_be_bytes());
        hex(&hash.part(self.route.hashed.as_bytes()).finish()[..16])
    }
}

/// Returns the limit with that name, if a route uses it.
#[must_use]
pub fn limit_named(name: &str) -> Option<&'static str> {
    ROUTES.iter().filter_map(|route| route.limit).find(|limit| *limit == name)
}

/// Returns the path after the version.
///
/// # Errors
/// When there is none, or another version.
pub fn strip_version(path: &str) -> Result<&str, DiscordRefusal> {
    let not_found = hyper::StatusCode::NOT_FOUND;
    let rest = path.strip_prefix("/api/").ok_or(DiscordRefusal::Plain(not_found, status_body(not_found)))?;
    rest.strip_prefix("v10")
        .filter(|rest| rest.starts_with('/'))
        .ok_or_else(|| DiscordErrorCode::InvalidVersion.into())
}

/// Returns the ids in a path that matches a template.
fn ids<'a>(template: &'static str, path: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
    let (mut wanted, mut given) = (template.split('/'), path.split('/'));
    let mut ids = Vec::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(ids),
            (Some(wanted), Some(given)) => {
                match wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                    Some(name) if !given.is_empty() => ids.push((name, given)),
                    None if wanted == given => {}
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discord::limits::DiscordLimits;

    fn target(method: &Method, path: &str) -> RouteTarget {
        RouteTarget::of(method, path).unwrap()
    }

    #[test]
    fn a_path_gives_its_route_and_ids() {
        let found = target(&Method::PUT, "/channels/7/permissions/9");
        assert_eq!(
            (found.route.call, found.channel, found.inner),
            (DiscordEndpoint::OverwritePut, Some(7), 9)
        );
        assert_eq!(found.name(), "PUT /channels/{channel}/permissions/{overwrite}");
        for (method, path, status) in [
            (Method::GET, "/guilds", 404),
            (Method::POST, "/guilds", 404),
            (Method::PUT, "/guilds/1/roles", 405),
            (Method::GET, "/guilds/x/roles", 400),
            (Method::GET, "/guilds//roles", 404),
        ] {
            let refusal = RouteTarget::of(&method, path).unwrap_err();
            assert!(
                matches!(refusal, DiscordRefusal::Plain(found, _) if found == status),
                "{path}: {refusal:?}"
            );
        }
        assert_eq!(strip_version("/api/v10/users/@me"), Ok("/users/@me"));
        for path in ["/api/v9/users/@me", "/users/@me", "/api/v100/x", "/api/v10"] {
            assert!(strip_version(path).is_err(), "{path}");
        }
    }

    /// LIM-8: a hash does not depend on the guild, and is only a hint: some routes that share one
    /// count separately.
    #[test]
    fn lim_8_hashes_leave_the_major_parameter_out() {
        let hash = |method: &Method, path| target(method, path).hash(1);
        assert_eq!(hash(&Method::GET, "/guilds/1/roles"), hash(&Method::GET, "/guilds/2/roles"));
        assert_eq!(hash(&Method::GET, "/guilds/1/roles"), hash(&Method::GET, "/guilds/1/channels"));
        assert_ne!(hash(&Method::GET, "/guilds/1/roles"), hash(&Method::POST, "/guilds/1/roles"));
        assert_ne!(hash(&Method::GET, "/users/@me"), target(&Method::GET, "/users/@me").hash(2));
        let limit = |method: &Method, path| target(method, path).route.limit;
        assert_ne!(limit(&Method::GET, "/guilds/1/roles"), limit(&Method::GET, "/guilds/1/channels"));
        assert_eq!(
            limit(&Method::PUT, "/channels/1/permissions/2"),
            limit(&Method::DELETE, "/channels/1/permissions/2")
        );
    }

    #[test]
    fn every_limit_of_a_route_is_there() {
        let mut limits = DiscordLimits::default();
        for limit in ROUTES.iter().filter_map(|route| route.limit) {
            assert_eq!(limits.set(limit, 1, 1), Ok(()), "{limit}");
        }
    }
}
