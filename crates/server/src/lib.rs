//! The HTTP server: the API, the live page, metrics and the configuration. It chooses store and dialects and turns
//! the wire into calls to the engine; it decides nothing about an operation.

mod alone;
mod api;
mod app;
pub mod backend;
mod by_path;
mod carriers;
pub mod config;
mod deploying;
mod dialects;
mod edge;
mod front;
mod gate;
mod listen;
mod pacing;
mod page;
mod proxy;
mod server;
mod telemetry;
mod wire;
mod work;

pub use alone::Alone;
pub use api::keys_router;
pub use config::Config;
pub use proxy::ProxyServer;
pub use server::Server;
pub use wire::deployment::deployment;
