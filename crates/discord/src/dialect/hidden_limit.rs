//! Limits that no header announces: only a 429 does, when it is too late. Their figures are what
//! people observed, so that calls wait for them beforehand.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::IgnoredAny;
use tidegate_core::fact::LimitShape;
use tidegate_core::operation::MICRO;
use tidegate_upstream::{Body, HttpRequest, Method};

use super::route::Route;

/// A hidden limit, counted per channel or guild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HiddenLimit {
    /// Changes of a channel's name or topic: 2 in 10 minutes.
    Renames,
    /// New roles of a guild: 250 in 48 hours.
    RoleCreates,
}

/// Added to each window: for Discord it begins when the first call arrives, which is after it was
/// sent.
const LATE: Duration = Duration::from_secs(5);

impl HiddenLimit {
    /// Returns the hidden limit that a request counts against, if any.
    pub(super) fn of(route: &Route, request: &HttpRequest) -> Option<Self> {
        if route.major.is_empty() {
            return None;
        }
        if route.matches(Method::Post, "/guilds/{guild}/roles") {
            return Some(Self::RoleCreates);
        }
        let renames = route.matches(Method::Patch, "/channels/{channel}") && renames(&request.body);
        renames.then_some(Self::Renames)
    }

    /// Returns the name of its limits, before the id.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Renames => "renames",
            Self::RoleCreates => "role-creates",
        }
    }

    /// Returns the shape of the limit.
    pub(super) fn shape(self) -> LimitShape {
        let (calls, period) = match self {
            Self::Renames => (2, Duration::from_secs(600)),
            Self::RoleCreates => (250, Duration::from_secs(48 * 3_600)),
        };
        LimitShape::Window { limit: calls * MICRO, period: period + LATE }
    }
}

/// Returns whether a body changes a name or a topic. One that cannot be read counts as such:
/// Discord may be able to read it.
fn renames(body: &Body) -> bool {
    let bytes = match body {
        Body::Empty => return false,
        Body::Json(json) => json.get().as_bytes(),
        Body::Text(text) => text.as_bytes(),
        Body::Bytes(bytes) => bytes,
    };
    let fields = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(bytes);
    fields.map_or(true, |fields| fields.contains_key("name") || fields.contains_key("topic"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-21, LIM-7: the route and the fields of the body decide which hidden limit a call counts
    /// against.
    #[test]
    fn ops_21_hidden_limits_are_by_route_and_fields() {
        let of = |method, path: &str, body: &str| {
            let body: Body = serde_json::from_str(body).unwrap();
            let request = HttpRequest::new(method, path).with_body(body);
            HiddenLimit::of(&Route::of(method, path), &request)
        };
        assert_eq!(of(Method::Patch, "/channels/1", r#"{"name":"a"}"#), Some(HiddenLimit::Renames));
        assert_eq!(
            of(Method::Patch, "/channels/1", r#"{"nsfw":true,"topic":null}"#),
            Some(HiddenLimit::Renames)
        );
        assert_eq!(of(Method::Patch, "/channels/1", r#"{"position":3}"#), None);
        assert_eq!(of(Method::Patch, "/channels/1", "null"), None);
        assert_eq!(of(Method::Patch, "/channels/1", r#""no json""#), Some(HiddenLimit::Renames));
        assert_eq!(of(Method::Post, "/guilds/1/roles", "{}"), Some(HiddenLimit::RoleCreates));
        assert_eq!(of(Method::Patch, "/guilds/1/roles", "[]"), None);
        assert_eq!(of(Method::Post, "/guilds/1/channels", r#"{"name":"a"}"#), None);
    }
}
