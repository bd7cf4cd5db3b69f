//! The Shopify simulator over loopback, with an ordinary client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod bulk;
mod caller;
mod faults;
mod golden;
mod graphql;
mod keys;
mod rest;
