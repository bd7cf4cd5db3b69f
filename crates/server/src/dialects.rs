//! Each upstream with how it is spoken to: the one place where a dialect is chosen. What a dialect does is not known here.

use std::sync::Arc;

use tidegate_shopify::ShopifyDialect;
use tidegate_upstream::http::{Dialect, Plain, UpstreamConfig};

use crate::config::Config;

/// Upstreams with their dialects, which the queue and the paced proxy share.
pub(crate) type Dialects = Vec<(UpstreamConfig, Arc<dyn Dialect>)>;

pub(crate) fn of(config: &Config) -> Dialects {
    let with = |upstream: &UpstreamConfig| {
        let dialect: Arc<dyn Dialect> = match config.shopify.get(&upstream.name) {
            Some(shop) => {
                let dialect = ShopifyDialect::new(&upstream.name, shop.bulk_at_once);
                Arc::new(dialect.at(&upstream.base_url).at_most(shop.at_once))
            }
            None => Arc::new(Plain::new(&upstream.name, &upstream.limits)),
        };
        (upstream.clone(), dialect)
    };
    config.upstreams.iter().map(with).collect()
}
