//! Who carries which kind of operation, and the limits that stand before anything is carried.

use std::sync::Arc;

use tidegate::{Code, Error, Executors, Result};
use tidegate_discord::deploy::Steps;
use tidegate_shopify::executor::{self, BulkUpstreams};
use tidegate_upstream::http::{Handover, MadeLimit, UpstreamConfig};
use tidegate_upstream::{HttpUpstreams, Refusal, Upstream};

use crate::config::Config;
use crate::dialects::Dialects;

/// What an engine is opened with.
pub(crate) struct Carriers {
    pub executors: Executors,
    pub limits: Vec<MadeLimit>,
}

pub(crate) fn of(config: &Config, dialects: Dialects, handover: Handover) -> Result<Carriers> {
    let upstreams = HttpUpstreams::with_dialects(dialects).map_err(unusable)?.handing_over(handover);
    let limits = upstreams.limits();
    let http: Arc<dyn Upstream> = Arc::new(upstreams);
    let mut executors = Executors::new();
    executors.insert(Arc::from("http"), Arc::clone(&http));
    let is_shop = |upstream: &&UpstreamConfig| config.shopify.contains_key(&upstream.name);
    let shops = BulkUpstreams::new(config.upstreams.iter().filter(is_shop)).map_err(unusable)?;
    // Each holds a worker until it has ended, and half of them are left for what is quick.
    let shops = shops.at_most(config.workers / 2);
    if !shops.is_empty() {
        executors.insert(Arc::from(executor::KIND), Arc::new(shops) as Arc<dyn Upstream>);
    }
    if !config.discord.is_empty() {
        executors.extend(Steps::executors(http));
    }
    Ok(Carriers { executors, limits })
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn unusable(refusal: Refusal) -> Error {
    Error::new(Code::BadConfig, refusal.to_string())
}
