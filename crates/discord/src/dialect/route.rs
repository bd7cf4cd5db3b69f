//! The route of a call: its path with the ids taken out, and the one id that its limit is counted
//! by. Only words that Discord uses in paths survive in a template, so that no id, code or token
//! ever gets into the name of a limit.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_upstream::Method;

use super::path_words::PATH_WORDS;

/// A route, and the resource it is counted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub method: Method,
    /// As in `/guilds/{guild}/roles/{role}`.
    pub template: String,
    /// The channel, guild or webhook that its limit is counted by; empty for none. Contains a token
    /// only as a hash.
    pub major: String,
    /// Whether the call authenticates with a token in its path instead of the bot's.
    pub has_token: bool,
    /// Whether it responds to an interaction: the global limit does not count those.
    pub is_interaction: bool,
}

/// More segments than any route has.
const SEGMENTS_MAX: usize = 16;
/// A longer number is not an id.
const ID_LEN_MAX: usize = 20;
/// The first characters of an interaction token: `interaction:` in base64.
const INTERACTION: &str = "aW50ZXJhY3Rpb246";

impl Route {
    /// Parses a path, with or without a version prefix and a query.
    pub(super) fn of(method: Method, path: &str) -> Self {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let path = split_version(path).map_or(path, |(_, rest)| rest);
        let segments = segments(path);
        let first = segments.first().map_or("", |first| &**first);
        let id = segments.get(1).map_or("", |id| &**id);
        let token = segments.get(2).filter(|_| matches!(first, "webhooks" | "interactions") && is_id(id));
        let mut template = String::new();
        let mut before = "";
        for (place, segment) in segments.iter().enumerate() {
            template.push('/');
            let is_token = place == 2 && token.is_some();
            template.push_str(if is_token { "{token}" } else { template_segment(segment, before) });
            before = segment;
        }
        let major = match (first, token) {
            ("webhooks", Some(token)) => format!("{id}-{}", hash_token(token)),
            ("channels" | "guilds" | "webhooks" | "interactions", _) if is_id(id) => id.to_owned(),
            _ => String::new(),
        };
        let is_interaction =
            token.is_some_and(|token| first == "interactions" || token.starts_with(INTERACTION));
        Self { method, template, major, has_token: token.is_some(), is_interaction }
    }

    /// Returns the key under which a bucket hash is stored.
    pub(super) fn key(&self) -> String {
        format!("{} {}", self.method, self.template)
    }

    /// Returns whether it has this method and template.
    pub(super) fn matches(&self, method: Method, template: &str) -> bool {
        self.method == method && self.template == template
    }
}

/// Splits the version off a path such as `/api/v10/gateway` or `/v10/gateway`.
pub(super) fn split_version(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/api").unwrap_or(path).strip_prefix('/')?;
    let (version, behind) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    is_version(version).then_some((version, if behind.is_empty() { "/" } else { behind }))
}

/// Returns whether a text is a version, as in `v10`.
pub(super) fn is_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|digits| (1..=3).contains(&digits.len()) && is_id(digits))
}

fn is_id(segment: &str) -> bool {
    (1..=ID_LEN_MAX).contains(&segment.len()) && segment.bytes().all(|b| b.is_ascii_digit())
}

/// Splits a path into segments as a URL finally has them.
fn segments(path: &str) -> Vec<Cow<'_, str>> {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match percent_decode_str(segment).decode_utf8_lossy() {
            here if here.is_empty() || here == "." => {}
            up if up == ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    segments.truncate(SEGMENTS_MAX);
    segments
}

/// Returns the word or placeholder for a segment.
fn template_segment(segment: &str, before: &str) -> &'static str {
    if let Some(word) = PATH_WORDS.iter().find(|word| **word == segment) {
        return word;
    }
    match before {
        _ if !is_id(segment) => "{x}",
        "channels" => "{channel}",
        "guilds" => "{guild}",
        "webhooks" => "{webhook}",
        "roles" => "{role}",
        "messages" | "pins" => "{message}",
        "permissions" => "{overwrite}",
        "members" | "users" | "bans" | "recipients" | "thread-members" => "{user}",
        _ => "{id}",
    }
}

/// Hashes a token beyond recognition.
fn hash_token(token: &str) -> String {
    hex(&Fingerprint::of("discord token").part(token.as_bytes()).finish()[..8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(path: &str) -> (String, String) {
        let route = Route::of(Method::Get, path);
        (route.template, route.major)
    }

    /// LIM-7, OPS-21: limits are per route and per channel, guild or webhook; other ids make no
    /// difference.
    #[test]
    fn lim_7_a_route_is_its_template_and_its_major() {
        let table = [
            ("/guilds/12/roles/34", "/guilds/{guild}/roles/{role}", "12"),
            ("/api/v10/guilds/12/roles/34?x=56", "/guilds/{guild}/roles/{role}", "12"),
            ("/v10/guilds/12", "/guilds/{guild}", "12"),
            (
                "/channels/1/messages/2/reactions/%F0%9F%91%8D/@me",
                "/channels/{channel}/messages/{message}/reactions/{x}/@me",
                "1",
            ),
            ("/channels/%31%32/messages", "/channels/{channel}/messages", "12"),
            ("/channels/1/permissions/2", "/channels/{channel}/permissions/{overwrite}", "1"),
            ("/applications/7/guilds/8/commands/9", "/applications/{id}/guilds/{guild}/commands/{id}", ""),
            ("/users/@me/guilds/5/member", "/users/@me/guilds/{guild}/member", ""),
            ("/guilds/9/../../channels/./1/messages", "/channels/{channel}/messages", "1"),
            ("/invites/abcDEF", "/invites/{x}", ""),
            ("/webhooks/3", "/webhooks/{webhook}", "3"),
            ("/channels/oops/messages", "/channels/{x}/messages", ""),
            ("/guilds/123456789012345678901", "/guilds/{x}", ""),
            ("/", "", ""),
        ];
        for (path, template, major) in table {
            assert_eq!(told(path), (template.to_owned(), major.to_owned()), "{path}");
        }
    }

    /// LIM-7: a webhook is also counted by its token, of which only a hash is seen; responses to
    /// interactions are outside the global limit.
    #[test]
    fn lim_7_tokens_are_told_apart_and_never_shown() {
        let (template, one) = told("/webhooks/3/s3cret/messages/4");
        let other = told("/webhooks/3/0ther/messages/4").1;
        assert_eq!(template, "/webhooks/{webhook}/{token}/messages/{message}");
        assert!(one.starts_with("3-") && other.starts_with("3-") && one != other && !one.contains("s3cret"));
        let route = |path| Route::of(Method::Post, path);
        assert!(route("/interactions/5/tok/callback").is_interaction);
        assert!(route("/webhooks/5/aW50ZXJhY3Rpb246MTIz/messages/@original").is_interaction);
        let webhook = route("/webhooks/5/tok");
        assert!(webhook.has_token && !webhook.is_interaction && !route("/webhooks/5").has_token);
        assert_eq!(route("/interactions/5/tok/callback").template, "/interactions/{id}/{token}/callback");
    }

    proptest! {
        /// LIM-7: whatever the path, a template holds nothing but Discord's words and placeholders,
        /// and a token is neither in it nor in the major parameter.
        #[test]
        fn lim_7_no_id_and_no_token_survives(
            segments in prop::collection::vec("[0-9]{1,22}|[A-Za-z0-9_%.-]{1,70}|channels|guilds|webhooks|@me", 0..20),
            token in "[A-Za-z0-9_-]{24,80}", id in "[0-9]{1,20}",
        ) {
            let route = Route::of(Method::Put, &format!("/{}", segments.join("/")));
            for part in route.template.split('/').skip(1) {
                prop_assert!(PATH_WORDS.contains(&part) || part.starts_with('{'), "{}", route.template);
            }
            prop_assert!(route.major.is_empty() || segments.contains(&route.major) || route.has_token);
            let webhook = Route::of(Method::Post, &format!("/webhooks/{id}/{token}/messages/{id}"));
            prop_assert!(!webhook.template.contains(&token) && !webhook.major.contains(&token));
        }
    }

    #[test]
    fn versions_are_split_off() {
        assert_eq!(split_version("/api/v10/gateway?x"), Some(("v10", "/gateway?x")));
        assert_eq!(split_version("/v9"), Some(("v9", "/")));
        assert_eq!(split_version("/voice/regions"), None);
        assert_eq!(split_version("/apiv10/x"), None);
        assert_eq!(split_version("/api/gateway"), None);
    }
}
