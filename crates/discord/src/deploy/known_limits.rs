//! What the queue knows of Discord's limits so far, for a plan's time estimate.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate::Engine;
use tidegate_core::LimitName;
use tidegate_core::fact::LimitShape;
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;

use super::error::Result;
use crate::Id;
use crate::dialect::GLOBAL_PER_S_DEFAULT;
use crate::plan::{KnownLimits, Rate};

/// The assumed duration of a call.
const LATENCY_MS: u64 = 100;

/// Loads the pace of all calls and the usage of hidden quotas. For a route, Discord reports how
/// many calls are left and until when, not how long its windows are: no time follows from that.
pub(super) async fn load(engine: &Engine, upstream: &str, guild: Id) -> Result<KnownLimits> {
    Ok(read(&engine.limits().await?, upstream, guild))
}

/// The same, from limits that were loaded.
pub(super) fn read(all: &[LimitView], upstream: &str, guild: Id) -> KnownLimits {
    let known = UpstreamLimits { all, upstream };
    let mut limits = KnownLimits::documented(LATENCY_MS);
    let used = |view: &LimitView| match view.shape {
        LimitShape::Window { limit, .. } => {
            u32::try_from(limit.saturating_sub(view.level) / MICRO).unwrap_or(u32::MAX)
        }
        _ => 0,
    };
    let guild = guild.to_string();
    let creates = known.with_prefix("role-creates ").find(|(id, _)| **id == guild);
    limits.role_creates_used = creates.map_or(0, |(_, view)| used(view));
    let renames = known.with_prefix("renames ").filter_map(|(id, view)| Some((id.parse().ok()?, used(view))));
    limits.renames_used = renames.collect::<BTreeMap<_, _>>();
    limits.global = global_rate(&known).unwrap_or(limits.global);
    limits
}

struct UpstreamLimits<'a> {
    all: &'a [LimitView],
    upstream: &'a str,
}

impl<'a> UpstreamLimits<'a> {
    /// Yields the limits whose names start with `start` below the upstream's, with the rest of the
    /// name.
    fn with_prefix(&self, start: &str) -> impl Iterator<Item = (&'a str, &'a LimitView)> {
        let start: Arc<str> = LimitName::new(self.upstream, start).into();
        self.all.iter().filter_map(move |view| Some((view.name.strip_prefix(&*start)?, view)))
    }
}

/// Returns the pace of all calls, in whole calls per second.
fn global_rate(known: &UpstreamLimits<'_>) -> Option<Rate> {
    let (_, view) = known.with_prefix("global").find(|(rest, _)| rest.is_empty())?;
    let LimitShape::Drip { refill_per_s, .. } = view.shape else { return None };
    let calls = u32::try_from(refill_per_s / MICRO).unwrap_or(GLOBAL_PER_S_DEFAULT);
    Some(Rate { calls: calls.max(1), per_ms: 1_000 })
}
