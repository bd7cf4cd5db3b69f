//! Commands that call a running server over HTTP.

mod bulk;
pub(crate) mod cluster;
mod filter;
pub(crate) mod flight;
pub(crate) mod generation;
pub(crate) mod group;
pub(crate) mod key;
pub(crate) mod ledger;
pub(crate) mod limit;
pub(crate) mod op;
pub(crate) mod provider;
pub(crate) mod submit;
