//! What the queue knows of Discord's limits by now, for a plan that says how long it takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate::Engine;
use tidegate_core::fact::Shape;
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;

use super::error::Result;
use crate::Id;
use crate::dialect::GLOBAL_PER_S_DEFAULT;
use crate::plan::{Limits, Rate};

/// How long a call is taken to last.
const LATENCY_MS: u64 = 100;

/// The pace of all calls, and what is used of hidden quotas. Of a route Discord tells how many calls are left and until when,
/// not how long its windows are: no time follows from that.
pub(super) async fn limits(engine: &Engine, upstream: &str, guild: Id) -> Result<Limits> {
    let all = engine.limits().await?;
    let known = Known { all: &all, upstream };
    let mut limits = Limits::documented(LATENCY_MS);
    let used = |view: &LimitView| match view.shape {
        Shape::Window { limit, .. } => {
            u32::try_from(limit.saturating_sub(view.level) / MICRO).unwrap_or(u32::MAX)
        }
        _ => 0,
    };
    let guild = guild.to_string();
    let creates = known.with("role-creates ").find(|(id, _)| **id == guild);
    limits.role_creates_used = creates.map_or(0, |(_, view)| used(view));
    let renames = known.with("renames ").filter_map(|(id, view)| Some((id.parse().ok()?, used(view))));
    limits.renames_used = renames.collect::<BTreeMap<_, _>>();
    limits.global = global(&known).unwrap_or(limits.global);
    Ok(limits)
}

struct Known<'a> {
    all: &'a [LimitView],
    upstream: &'a str,
}

impl<'a> Known<'a> {
    /// Those whose names begin so below the upstream's, with the rest of the name.
    fn with(&self, start: &str) -> impl Iterator<Item = (&'a str, &'a LimitView)> {
        let start: Arc<str> = format!("{}/{start}", self.upstream).into();
        self.all.iter().filter_map(move |view| Some((view.name.strip_prefix(&*start)?, view)))
    }
}

/// The pace of all calls, in whole calls of a second.
fn global(known: &Known<'_>) -> Option<Rate> {
    let (_, view) = known.with("global").find(|(rest, _)| rest.is_empty())?;
    let Shape::Drip { refill_per_s, .. } = view.shape else { return None };
    let calls = u32::try_from(refill_per_s / MICRO).unwrap_or(GLOBAL_PER_S_DEFAULT);
    Some(Rate { calls: calls.max(1), per_ms: 1_000 })
}
