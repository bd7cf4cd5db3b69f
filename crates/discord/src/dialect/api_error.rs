//! Classifies a refusal by the code in Discord's error body, and builds the message for people:
//! Discord's own words, without the parts of the request they repeat.

use serde::Deserialize;
use serde_json::Value;
use tidegate_core::FaultClass;
use tidegate_upstream::Method;

use super::route::Route;

/// Most form problems reported.
const PROBLEMS_MAX: usize = 6;
/// Deepest nesting of a form.
const DEPTH_MAX: usize = 16;
/// Characters kept of each of Discord's sentences.
const WORDS_MAX: usize = 160;

/// The body of a refusal, as far as it could be parsed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ApiError {
    #[serde(default)]
    pub code: u64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    errors: Value,
}

impl ApiError {
    /// Parses a body; one that cannot be read yields an empty error.
    pub(super) fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_default()
    }

    /// Returns whether the body gives a reason.
    pub(super) fn has_reason(&self) -> bool {
        self.code > 0 || !self.message.is_empty()
    }

    /// Returns whether the requested data is still being prepared, so that the call can be
    /// repeated.
    pub(super) const fn is_not_ready(&self) -> bool {
        matches!(self.code, 110_000..=119_999)
    }

    /// Returns the class for its code; `None` leaves the decision to the status.
    pub(super) const fn class(&self) -> Option<FaultClass> {
        match self.code {
            10_000..=19_999 => Some(FaultClass::NotFound),
            40_001 | 40_333 | 50_001 | 50_013 | 60_003 => Some(FaultClass::Forbidden),
            30_000..=39_999 | 40_009 | 50_024 | 50_028 | 50_035 | 50_074 | 50_109 => {
                Some(FaultClass::Validation)
            }
            40_060 => Some(FaultClass::Conflict),
            _ => None,
        }
    }

    /// Describes the refusal, to follow a colon.
    pub(super) fn describe(&self, route: &Route) -> String {
        let mut text = if self.message.is_empty() {
            "no reason was given".to_owned()
        } else {
            strip_quoted(&self.message)
        };
        if self.code > 0 {
            text.push_str(&format!(" (code {})", self.code));
        }
        let mut problems = Vec::new();
        flatten(&self.errors, "", 0, &mut problems);
        if !problems.is_empty() {
            text.push_str(": ");
            text.push_str(&problems.join("; "));
        }
        if let Some(permission) = self.missing_permission(route) {
            text.push_str(&format!("; it needs {permission}"));
        }
        text
    }

    /// Returns the permission the bot lacks, as far as the route shows.
    fn missing_permission(&self, route: &Route) -> Option<&'static str> {
        match self.code {
            50_001 => Some("to see it (View Channel), or to be in the guild"),
            50_013 => required_permission(route),
            60_003 => Some("two-factor authentication of the bot's owner"),
            _ => None,
        }
    }
}

/// Returns the permission that a change on a route needs.
fn required_permission(route: &Route) -> Option<&'static str> {
    let template = route.template.as_str();
    let writes = !matches!(route.method, Method::Get | Method::Head);
    match template {
        _ if !writes => Some("View Channel or Read Message History"),
        _ if template.starts_with("/guilds/{guild}/roles") || template.contains("/roles/") => {
            Some("Manage Roles, and a role of its own above the one in question")
        }
        _ if template.contains("/permissions/") => {
            Some("Manage Roles in that channel, and every permission it gives")
        }
        _ if template.starts_with("/guilds/{guild}/channels") || template == "/channels/{channel}" => {
            Some("Manage Channels, and Manage Roles where overwrites are set")
        }
        _ if template.contains("/webhooks") => Some("Manage Webhooks"),
        _ if template.contains("/pins") => Some("Pin Messages"),
        _ if template.contains("/reactions") => Some("Add Reactions"),
        _ if template.contains("/bans") || template.ends_with("/bulk-ban") => Some("Ban Members"),
        _ if template.contains("/threads") => Some("Create or Manage Threads"),
        _ if template.contains("/messages")
            && route.method == Method::Post
            && !template.ends_with("/bulk-delete") =>
        {
            Some("Send Messages, and what the message has in it")
        }
        _ if template.contains("/messages") => Some("Manage Messages"),
        "/guilds/{guild}" => Some("Manage Server"),
        _ => None,
    }
}

/// Collects the problems in the nested errors of a form, each with its path.
fn flatten(errors: &Value, at: &str, depth: usize, problems: &mut Vec<String>) {
    let Some(fields) = errors.as_object().filter(|_| depth < DEPTH_MAX) else { return };
    for (field, inner) in fields {
        if problems.len() >= PROBLEMS_MAX {
            return;
        }
        if field == "_errors" {
            let list = inner.as_array().map_or(&[][..], Vec::as_slice);
            for error in list.iter().take(PROBLEMS_MAX - problems.len()) {
                let text = |key| error.get(key).and_then(Value::as_str).unwrap_or_default();
                let place = if at.is_empty() { "the body" } else { at };
                problems.push(format!(
                    "{place}: {} ({})",
                    strip_quoted(text("message")),
                    strip_quoted(text("code"))
                ));
            }
        } else {
            let field = strip_quoted(field);
            let at = if at.is_empty() { field } else { format!("{at}.{field}") };
            flatten(inner, &at, depth + 1, problems);
        }
    }
}

/// Removes a sentence's full stop and what it quotes: that may come from the caller.
fn strip_quoted(words: &str) -> String {
    let mut text = String::new();
    for (nth, part) in words.split('"').enumerate() {
        if nth > 0 {
            text.push('"');
        }
        text.push_str(if nth % 2 == 1 { "…" } else { part });
    }
    let text = text.trim().trim_end_matches('.');
    text.chars().filter(|c| !c.is_control()).take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(method: Method, path: &str, body: &str) -> (Option<FaultClass>, String) {
        let refused = ApiError::read(body.as_bytes());
        (refused.class(), refused.describe(&Route::of(method, path)))
    }

    /// OPS-10: codes map to classes, a refusal names the permission, and a form lists each problem
    /// with its path.
    #[test]
    fn ops_10_refusals_are_told_by_code() {
        use FaultClass::{Forbidden, NotFound, Validation};
        let table = [
            (r#"{"code":10011,"message":"Unknown Role"}"#, Some(NotFound), "Unknown Role (code 10011)"),
            (
                r#"{"code":30005,"message":"Maximum number of server roles reached (250)"}"#,
                Some(Validation),
                "Maximum number of server roles reached (250) (code 30005)",
            ),
            (
                r#"{"code":50013,"message":"Missing Permissions"}"#,
                Some(Forbidden),
                "Missing Permissions (code 50013); it needs Manage Roles, and a role of its own above the one in question",
            ),
            (
                r#"{"code":50001,"message":"Missing Access"}"#,
                Some(Forbidden),
                "Missing Access (code 50001); it needs to see it (View Channel), or to be in the guild",
            ),
            (
                r#"{"code":50035,"message":"Invalid Form Body","errors":{"name":{"_errors":[{"code":"BASE_TYPE_BAD_LENGTH","message":"Must be between 1 and 100 in length."}]},"overwrites":{"0":{"id":{"_errors":[{"code":"NUMBER_TYPE_COERCE","message":"Value \"hunter2\" is not snowflake."}]}}}}}"#,
                Some(Validation),
                "Invalid Form Body (code 50035): name: Must be between 1 and 100 in length (BASE_TYPE_BAD_LENGTH); overwrites.0.id: Value \"…\" is not snowflake (NUMBER_TYPE_COERCE)",
            ),
            (r#"{"code":0,"message":"401: Unauthorized"}"#, None, "401: Unauthorized"),
            ("<html>", None, "no reason was given"),
        ];
        for (body, class, sentence) in table {
            let (found, words) = described(Method::Patch, "/guilds/1/roles/2", body);
            assert_eq!((found, words.as_str()), (class, sentence), "{body}");
        }
        let missing = r#"{"code":50013,"message":"Missing Permissions"}"#;
        for (method, path, needs) in [
            (Method::Post, "/guilds/1/channels", "Manage Channels"),
            (Method::Put, "/channels/1/permissions/2", "Manage Roles in that channel"),
            (Method::Post, "/channels/1/messages", "Send Messages"),
            (Method::Delete, "/channels/1/messages/2", "Manage Messages"),
            (Method::Put, "/guilds/1/members/2/roles/3", "Manage Roles"),
        ] {
            let words = described(method, path, missing).1;
            assert!(words.contains(needs), "{path}: {words}");
        }
    }

    /// However many problems a form has, the message stays short.
    #[test]
    fn a_large_refusal_is_cut() {
        let mut deep = String::from(r#"{"_errors":[{"message":"x"}]}"#);
        for _ in 0..50 {
            deep = format!(r#"{{"a":{deep}}}"#);
        }
        let many: Vec<_> = (0..99).map(|n| format!(r#""f{n}":{{"_errors":[{{"message":"y"}}]}}"#)).collect();
        for errors in [deep, format!("{{{}}}", many.join(","))] {
            let body = format!(r#"{{"code":50035,"message":"{}","errors":{errors}}}"#, "m".repeat(9_000));
            assert!(described(Method::Post, "/guilds/1/roles", &body).1.len() < 400);
        }
    }
}
