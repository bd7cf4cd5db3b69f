//! Simulators: upstreams on loopback that enforce their own limits by their own clock, count what
//! exceeds them, and fail and cut connections as configured, from a seed. They print nothing and
//! know nothing of Tidegate.

pub mod discord;
pub mod effect_history;
pub mod http;
pub mod providers;
pub mod server;
pub mod shopify;
pub mod stats;
pub mod timestamp;
pub mod token_bucket;

pub use discord::{DiscordSim, DiscordSimOptions};
pub use http::{HttpSim, HttpSimOptions};
pub use providers::{Provider, ProviderSim, ProviderSimOptions};
pub use shopify::{ShopifySim, ShopifySimOptions};
pub use stats::Stats;
pub use tidegate_core::rng;
