//! The checks that every request passes before a handler sees it: authentication, origin, request
//! id, size, and idempotency.

pub(crate) mod auth;
pub(crate) mod auth_failures;
pub(crate) mod completion_token;
pub(crate) mod content;
pub(crate) mod guard;
pub(crate) mod idempotency;
pub(crate) mod login;
pub(crate) mod node_secret;
pub(crate) mod origin;
pub(crate) mod prefer;
pub(crate) mod query;
pub(crate) mod repeated_submission;
pub(crate) mod request_id;
mod revocation;
pub(crate) mod tokens;
