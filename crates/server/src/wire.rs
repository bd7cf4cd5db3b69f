//! The wire format: the JSON that callers send, parsed field by field so that each error names its
//! field, and the JSON they get. No type of another crate is ever serialized directly.

pub(crate) mod cursor;
pub(crate) mod deployment;
pub(crate) mod deployment_request;
pub(crate) mod error;
pub(crate) mod field;
pub(crate) mod generation;
pub(crate) mod key;
pub(crate) mod limit;
pub(crate) mod model;
pub(crate) mod object;
pub(crate) mod outcome_filter;
pub(crate) mod problems;
pub(crate) mod provider;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod submission;
pub(crate) mod time;
pub(crate) mod work;
