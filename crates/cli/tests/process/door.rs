//! The door of the server and of the proxy as outsiders find it: web pages of other sites, and
//! connections that ask for nothing.

mod browser;
pub(crate) mod silent;
