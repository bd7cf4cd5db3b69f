//! What the queue knows of Discord's limits so far, for a plan's time estimate.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::LimitName;
use tidegate_core::fact::LimitShape;
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;

use super::error::Result;
use super::{DeployRequest, Deployer};
use crate::Id;
use crate::dialect::GLOBAL_PER_S_DEFAULT;
use crate::plan::{KnownLimits, Rate};

/// The methods of routes, with which the names of their limits start.
const METHODS: [&str; 5] = ["DELETE ", "GET ", "PATCH ", "POST ", "PUT "];

impl Deployer {
    /// Loads the pace of all calls, the limits of routes that earlier responses showed, in any
    /// guild, and the usage of hidden quotas.
    pub(super) async fn known_limits(&self, wanted: &DeployRequest) -> Result<KnownLimits> {
        let all = self.engine.limits().await?;
        let unused = KnownLimits::documented(self.call_times.typical_ms());
        Ok(from_views(&all, &wanted.upstream, wanted.guild, unused))
    }
}

fn from_views(all: &[LimitView], upstream: &str, guild: Id, mut limits: KnownLimits) -> KnownLimits {
    let known = UpstreamLimits { all, upstream };
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
    limits.routes = route_rates(&known);
    limits
}

/// Returns the limits of routes. Discord gives every guild and every channel the same; the longest
/// window that was seen of any of them is closest to the whole one.
fn route_rates(known: &UpstreamLimits<'_>) -> BTreeMap<String, Rate> {
    let mut rates = BTreeMap::<String, Rate>::new();
    for (name, view) in known.with_prefix("") {
        let Some((route, _)) = name.rsplit_once(' ') else { continue };
        let (LimitShape::Window { limit, .. }, Some(period)) = (view.shape, view.period) else { continue };
        let calls = u32::try_from(limit / MICRO).unwrap_or(u32::MAX);
        if calls == 0 || !METHODS.iter().any(|method| route.starts_with(method)) {
            continue;
        }
        let per_ms = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
        let rate = Rate { calls, per_ms };
        let longest = rates.entry(route.to_owned()).or_insert(rate);
        if per_ms > longest.per_ms {
            *longest = rate;
        }
    }
    rates
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
