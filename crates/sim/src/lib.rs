//! Simulators: upstreams on loopback that enforce their own limits by their own clock, count what oversteps them,
//! and fail and cut as they are told, from a seed. They print nothing and know nothing of Tidegate.

pub mod chance;
pub mod discord;
pub mod http;
pub mod rate;
pub mod seen;
pub mod server;
pub mod shopify;
pub mod stats;

pub use discord::{DiscordSim, DiscordSimOptions};
pub use http::{HttpSim, HttpSimOptions};
pub use shopify::{ShopifySim, ShopifySimOptions};
pub use stats::Stats;
