//! The registry of error codes: one number for each thing that can go wrong, in every crate and on
//! every surface, with a page under `docs/errors/`. It is at the bottom so that every layer can
//! name its own codes; how a code is shown, for example its HTTP status, is decided where it is
//! shown.

use std::fmt;

/// A stable code. Numbers are never reused for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The request is malformed: invalid JSON, a missing or unknown field.
    Malformed,
    /// A field is out of its bounds.
    Invalid,
    /// No such upstream is configured.
    UnknownUpstream,
    /// No executor handles operations of this kind.
    UnknownKind,
    /// The request is too large.
    TooLarge,
    /// It costs more than a limit can ever hold.
    TooCostly,
    /// It names a limit that does not exist.
    UnknownLimit,
    /// The known limits do not let it start before its deadline.
    TooLate,
    /// The key belongs to a different request.
    KeyConflict,
    /// There is no such operation.
    NoOperation,
    /// There is no such group.
    NoGroup,
    /// There is no such limit.
    NoLimit,
    /// The current state does not allow it.
    NotNow,
    /// The cursor was not made by this server.
    BadCursor,
    /// No valid token was sent.
    Unauthorized,
    /// The token does not allow this.
    Forbidden,
    /// The store cannot be written now; nothing was accepted.
    StoreUnavailable,
    /// The server is stopping.
    Stopping,
    /// The batch has too many operations.
    BatchTooLong,
    /// The configuration cannot be used.
    BadConfig,
    /// There is no such page or method.
    NoRoute,
    /// The data cannot be used: locked by another process, damaged, or of a newer version.
    StoreRefused,
    /// A bug: something that must not happen did.
    Internal,
    /// There is no such idempotency key.
    NoKey,
    /// Several requests use the same idempotency key.
    KeyNotUnique,
    /// No response came within the time to wait for one.
    NotInTime,
    /// There is no upstream response to return.
    NoAnswer,
    /// The template of a deployment is invalid.
    BadTemplate,
    /// There is no such deployment.
    NoDeployment,
    /// No such model is configured.
    UnknownModel,
    /// The input of a generation does not fit its model.
    BadInput,
    /// The user has too many generations, or creates them too fast.
    TooManyGenerations,
    /// There is no such provider.
    NoProvider,
    /// The generation has no such result.
    NoResult,
}

impl ErrorCode {
    /// All codes, by number.
    pub const ALL: [Self; 34] = [
        Self::Malformed,
        Self::Invalid,
        Self::UnknownUpstream,
        Self::UnknownKind,
        Self::TooLarge,
        Self::TooCostly,
        Self::UnknownLimit,
        Self::TooLate,
        Self::KeyConflict,
        Self::NoOperation,
        Self::NoGroup,
        Self::NoLimit,
        Self::NotNow,
        Self::BadCursor,
        Self::Unauthorized,
        Self::Forbidden,
        Self::StoreUnavailable,
        Self::Stopping,
        Self::BatchTooLong,
        Self::BadConfig,
        Self::NoRoute,
        Self::StoreRefused,
        Self::Internal,
        Self::NoKey,
        Self::KeyNotUnique,
        Self::NotInTime,
        Self::NoAnswer,
        Self::BadTemplate,
        Self::NoDeployment,
        Self::UnknownModel,
        Self::BadInput,
        Self::TooManyGenerations,
        Self::NoProvider,
        Self::NoResult,
    ];

    /// The title of the code, the same in every case.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Malformed => "Malformed request",
            Self::Invalid => "Value out of bounds",
            Self::UnknownUpstream => "Unknown upstream",
            Self::UnknownKind => "Unknown kind",
            Self::TooLarge => "Too large",
            Self::TooCostly => "Costs more than a limit holds",
            Self::UnknownLimit => "Unknown limit",
            Self::TooLate => "Cannot start before its deadline",
            Self::KeyConflict => "Key used for another request",
            Self::NoOperation => "No such operation or generation",
            Self::NoGroup => "No such group",
            Self::NoLimit => "No such limit, bucket or lease",
            Self::NotNow => "Not possible in this state",
            Self::BadCursor => "Invalid cursor",
            Self::Unauthorized => "No valid token",
            Self::Forbidden => "Not allowed",
            Self::StoreUnavailable => "Not available now",
            Self::Stopping => "Server is stopping",
            Self::BatchTooLong => "Batch too long",
            Self::BadConfig => "Invalid configuration",
            Self::NoRoute => "No such route or method",
            Self::StoreRefused => "Store cannot be used",
            Self::Internal => "Internal error",
            Self::NoKey => "No such idempotency key",
            Self::KeyNotUnique => "Several requests use this key",
            Self::NotInTime => "No answer in time",
            Self::NoAnswer => "No answer from the upstream",
            Self::BadTemplate => "Invalid template",
            Self::NoDeployment => "No such deployment",
            Self::UnknownModel => "Unknown model",
            Self::BadInput => "Input does not fit the model",
            Self::TooManyGenerations => "Too many generations",
            Self::NoProvider => "No such provider",
            Self::NoResult => "No such result",
        }
    }

    /// Its number, which is its position in the list.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16 + 1
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TG{:04}", self.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_their_places() {
        for (place, code) in ErrorCode::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(code.number()), place + 1, "{code:?}");
        }
        assert_eq!(ErrorCode::NoLimit.to_string(), "TG0012");
    }
}
