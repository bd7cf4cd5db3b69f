//! Discord's refusals: a status and a code, in its words. The form reports its own errors.

use std::time::Duration;

use hyper::StatusCode;
use serde_json::{Value, json};

/// A refused call.
#[derive(Clone, Debug, PartialEq)]
pub enum DiscordRefusal {
    /// A refusal with this status and body.
    Plain(StatusCode, Value),
    /// A refusal by a limit that no header announces, for this long.
    Hidden(Duration),
}

/// A call that succeeded.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedCall {
    /// Its status.
    pub status: StatusCode,
    /// Its body; `None` is none.
    pub body: Option<Value>,
    /// The id of what was written; `None` for a read.
    pub wrote: Option<u64>,
}

/// The result of a call.
pub type CallResult = Result<CompletedCall, DiscordRefusal>;

impl CompletedCall {
    /// Creates the result of a read.
    #[must_use]
    pub const fn read(body: Value) -> Self {
        Self { status: StatusCode::OK, body: Some(body), wrote: None }
    }

    /// Creates the result of a write that is shown.
    #[must_use]
    pub const fn wrote(status: StatusCode, id: u64, body: Value) -> Self {
        Self { status, body: Some(body), wrote: Some(id) }
    }

    /// Creates the result of a write that is not shown.
    #[must_use]
    pub const fn no_content(id: u64) -> Self {
        Self { status: StatusCode::NO_CONTENT, body: None, wrote: Some(id) }
    }
}

/// The error codes for missing objects and forbidden calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscordErrorCode {
    /// No such channel.
    UnknownChannel,
    /// No such member.
    UnknownMember,
    /// No such message.
    UnknownMessage,
    /// No such overwrite.
    UnknownOverwrite,
    /// No such role.
    UnknownRole,
    /// The guild has the maximum number of roles.
    TooManyRoles(usize),
    /// The guild has the maximum number of channels.
    TooManyChannels(usize),
    /// The channel has the maximum number of overwrites.
    TooManyOverwrites,
    /// More than one channel would change its category.
    TooManyMoves,
    /// The caller cannot see it.
    MissingAccess,
    /// Another user posted it.
    OthersMessage,
    /// A message without content.
    EmptyMessage,
    /// A channel that takes no messages.
    NoText,
    /// The caller may not do it.
    MissingPermissions,
    /// A kind of channel that does not support this.
    WrongType,
    /// A role that does not support this.
    InvalidRole,
    /// A version that does not exist.
    InvalidVersion,
    /// A body that is not JSON.
    NoJson,
    /// A user agent that is not admitted.
    Blocked,
}

impl DiscordErrorCode {
    const fn parts(self) -> (u16, u64, &'static str) {
        match self {
            Self::UnknownChannel => (404, 10_003, "Unknown Channel"),
            Self::UnknownMember => (404, 10_007, "Unknown Member"),
            Self::UnknownMessage => (404, 10_008, "Unknown Message"),
            Self::UnknownOverwrite => (404, 10_009, "Unknown Overwrite"),
            Self::UnknownRole => (404, 10_011, "Unknown Role"),
            Self::TooManyRoles(_) => (400, 30_005, "Maximum number of guild roles reached"),
            Self::TooManyChannels(_) => (400, 30_013, "Maximum number of guild channels reached"),
            Self::TooManyOverwrites => {
                (400, 30_060, "Maximum number of channel permission overwrites reached (1000)")
            }
            Self::TooManyMoves => (400, 40_009, "Only one channel can change its parent in one request"),
            Self::Blocked => (403, 40_333, "internal network error"),
            Self::MissingAccess => (403, 50_001, "Missing Access"),
            Self::OthersMessage => (403, 50_005, "Cannot edit a message authored by another user"),
            Self::EmptyMessage => (400, 50_006, "Cannot send an empty message"),
            Self::NoText => (400, 50_008, "Cannot send messages in a non-text channel"),
            Self::MissingPermissions => (403, 50_013, "Missing Permissions"),
            Self::WrongType => (400, 50_024, "Cannot execute action on this channel type"),
            Self::InvalidRole => (400, 50_028, "Invalid Role"),
            Self::InvalidVersion => (400, 50_041, "Invalid API version"),
            Self::NoJson => (400, 50_109, "The request body contains invalid JSON."),
        }
    }
}

impl From<DiscordErrorCode> for DiscordRefusal {
    fn from(code: DiscordErrorCode) -> Self {
        let (status, number, message) = code.parts();
        let message = match code {
            DiscordErrorCode::TooManyRoles(most) | DiscordErrorCode::TooManyChannels(most) => {
                format!("{message} ({most})")
            }
            _ => message.to_owned(),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        Self::Plain(status, json!({ "message": message, "code": number }))
    }
}

/// Returns the body of a refusal without a code of its own, such as `404: Not Found`.
#[must_use]
pub fn status_body(status: StatusCode) -> Value {
    let reason = status.canonical_reason().unwrap_or_default();
    json!({ "message": format!("{}: {reason}", status.as_u16()), "code": 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bodies as clients read them.
    #[test]
    fn a_code_has_its_status_and_body() {
        let DiscordRefusal::Plain(status, body) = DiscordErrorCode::TooManyRoles(250).into() else {
            panic!("hidden")
        };
        assert_eq!(status, 400);
        assert_eq!(
            body.to_string(),
            r#"{"code":30005,"message":"Maximum number of guild roles reached (250)"}"#
        );
        assert_eq!(
            status_body(StatusCode::UNAUTHORIZED).to_string(),
            r#"{"code":0,"message":"401: Unauthorized"}"#
        );
    }
}
