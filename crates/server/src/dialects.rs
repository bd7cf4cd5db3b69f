//! Chooses the dialect of each upstream. This is the only module that does; it does not know what a
//! dialect does.

use std::sync::Arc;

use tidegate_discord::dialect::INVALID_MAX;
use tidegate_discord::{DiscordDialect, DiscordSettings};
use tidegate_shopify::ShopifyDialect;
use tidegate_upstream::http::{Dialect, PlainDialect, UpstreamConfig};

use crate::config::{Config, DiscordConfig};

/// Upstreams with their dialects, which the queue and the paced proxy share.
pub(crate) type Dialects = Vec<(UpstreamConfig, Arc<dyn Dialect>)>;

pub(crate) fn from_config(config: &Config) -> Dialects {
    let with = |upstream: &UpstreamConfig| (upstream.clone(), dialect(config, upstream));
    config.upstreams.iter().map(with).collect()
}

fn dialect(config: &Config, upstream: &UpstreamConfig) -> Arc<dyn Dialect> {
    let name = upstream.name.as_str();
    if let Some(shop) = config.shopify.get(name) {
        let dialect = ShopifyDialect::new(name, shop.bulk_at_once);
        return Arc::new(dialect.with_base_url(&upstream.base_url).with_at_once(shop.at_once));
    }
    if let Some(bot) = config.discord.get(name) {
        return Arc::new(DiscordDialect::new(name, &upstream.base_url, discord_settings(config, bot)));
    }
    Arc::new(PlainDialect::new(name, &upstream.limits))
}

/// The settings of a bot. Each bot belongs to one partition, wherever it is called from, so shares
/// of the limits of their address need no common partition.
fn discord_settings(config: &Config, bot: &DiscordConfig) -> DiscordSettings {
    let even = INVALID_MAX / config.discord.len().max(1) as u64;
    let (invalid_max, at_once) = (bot.invalid_max.unwrap_or(even), bot.at_once);
    DiscordSettings::default()
        .with_global_per_s(bot.global_per_s)
        .with_invalid_max(invalid_max)
        .with_at_once(at_once)
}
