//! How Discord says no: a status and a code, in its words. What is wrong with a form is the form's business.

use std::time::Duration;

use hyper::StatusCode;
use serde_json::{Value, json};

/// A call that is not done.
#[derive(Clone, Debug, PartialEq)]
pub enum DiscordRefusal {
    /// With this status and body.
    Plain(StatusCode, Value),
    /// By a limit that no header tells of, for this long.
    Hidden(Duration),
}

/// What came of a call that was done.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedCall {
    /// Its status.
    pub status: StatusCode,
    /// Its body; `None` is none.
    pub body: Option<Value>,
    /// What was written; `None` is nothing.
    pub wrote: Option<u64>,
}

/// What comes of a call.
pub type CallResult = Result<CompletedCall, DiscordRefusal>;

impl CompletedCall {
    /// Something was read.
    #[must_use]
    pub const fn read(body: Value) -> Self {
        Self { status: StatusCode::OK, body: Some(body), wrote: None }
    }

    /// Something was written and is shown.
    #[must_use]
    pub const fn wrote(status: StatusCode, id: u64, body: Value) -> Self {
        Self { status, body: Some(body), wrote: Some(id) }
    }

    /// Something was written and is not shown.
    #[must_use]
    pub const fn no_content(id: u64) -> Self {
        Self { status: StatusCode::NO_CONTENT, body: None, wrote: Some(id) }
    }
}

/// Something that is not there, or that must not be, by its code.
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
    /// As many roles as a guild may have.
    TooManyRoles(usize),
    /// As many channels as a guild may have.
    TooManyChannels(usize),
    /// As many overwrites as a channel may have.
    TooManyOverwrites,
    /// More than one channel would change its category.
    TooManyMoves,
    /// The caller cannot see it.
    MissingAccess,
    /// Somebody else wrote it.
    OthersMessage,
    /// A message with nothing in it.
    EmptyMessage,
    /// A channel that takes no messages.
    NoText,
    /// The caller may not do it.
    MissingPermissions,
    /// A kind of channel for which that cannot be done.
    WrongType,
    /// A role for which that cannot be done.
    InvalidRole,
    /// A version that is not there.
    InvalidVersion,
    /// A body that is no JSON.
    NoJson,
    /// Not an agent that is let in.
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

/// A refusal that has no code of its own, such as `404: Not Found`.
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
