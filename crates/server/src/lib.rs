//! The HTTP server: the API, the live status page, metrics and the configuration. It chooses the
//! store and the dialects and turns requests into calls to the engine; it decides nothing about an
//! operation.

mod api;
mod audit;
pub mod backend;
mod bus;
pub mod config;
mod confirmation;
mod deployment_runner;
mod dialects;
mod dismissals;
mod edge;
mod error;
mod executors;
mod file_watch;
mod generations;
mod history;
mod hydration;
mod key_store;
mod limit_history;
mod listen;
mod node_runtime;
mod pacing;
mod page;
mod path_map;
mod proxy;
mod routing;
mod server;
mod standalone;
mod state;
mod telemetry;
mod wire;
mod work;

pub use api::keys_router;
pub use config::Config;
pub use error::{Error, ErrorCode, Result};
pub use executors::{ModelWatch, built_in_executors, check_worker_keys};
pub use proxy::ProxyServer;
pub use server::Server;
pub use standalone::StandaloneEngine;
pub use wire::deployment::{deployment_json, events_json};
