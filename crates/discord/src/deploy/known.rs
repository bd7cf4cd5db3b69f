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
use crate::plan::{Limits, ROUTES, Rate};

/// How long a call is taken to last.
const LATENCY_MS: u64 = 100;

/// Figures that were learned, and what is used of hidden quotas. A route of one channel stands for that of another: their
/// figures are the same as long as Discord says nothing else.
pub(super) async fn limits(engine: &Engine, upstream: &str, guild: Id) -> Result<Limits> {
    let all = engine.limits().await?;
    let known = Known { all: &all, upstream };
    let mut limits = Limits::documented(LATENCY_MS);
    for (method, template) in ROUTES {
        let name = format!("{method} {template} ");
        let found = known.with(&name).filter_map(|(_, view)| rate(view)).next();
        limits.routes.extend(found.map(|rate| ((method, template), rate)));
    }
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

fn rate(view: &LimitView) -> Option<Rate> {
    match view.shape {
        Shape::Window { limit, period } if limit >= MICRO && !period.is_zero() => {
            let calls = u32::try_from(limit / MICRO).ok()?;
            Some(Rate { calls, per_ms: u64::try_from(period.as_millis()).ok()? })
        }
        _ => None,
    }
}

/// The pace of all calls, in whole calls of a second.
fn global(known: &Known<'_>) -> Option<Rate> {
    let (_, view) = known.with("global").find(|(rest, _)| rest.is_empty())?;
    let Shape::Drip { refill_per_s, .. } = view.shape else { return None };
    let calls = u32::try_from(refill_per_s / MICRO).unwrap_or(GLOBAL_PER_S_DEFAULT);
    Some(Rate { calls: calls.max(1), per_ms: 1_000 })
}
