//! Sets limits: from the configuration at startup, by an operator at run time, or by an operation
//! that opens its own.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use super::Model;
use super::limit::Limit;
use crate::bounds;
use crate::fact::{Fact, LimitShape, LimitSource};
use crate::time::Time;

/// Opened limits that are examined for each new one: more than one, so that they never pile up.
const RETIRED_AT_ONCE: usize = 4;
/// A limit of which nothing is known: one call goes ahead and finds out.
const UNKNOWN_WINDOW: LimitShape = LimitShape::Window { limit: 0, period: Duration::ZERO };

/// Why a limit was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitRefusal {
    /// There is no limit of that name, and only the configuration creates one.
    Unknown,
    /// Only the configuration may turn a bucket, a cap or a breaker into another kind, or give a
    /// gate a budget.
    OtherKind,
    /// There are too many limits already.
    TooMany,
    /// A figure is zero or out of bounds.
    OutOfBounds,
    /// It is open already.
    NotClosed,
}

impl Model {
    /// Sets a limit from the configuration. An operator's override stands until the configuration
    /// itself changes. Returns `false` when nothing had to change.
    ///
    /// # Errors
    /// Returns why the limit was not set.
    pub fn configure(
        &mut self,
        now: Time,
        name: &Arc<str>,
        shape: LimitShape,
        facts: &mut Vec<Fact>,
    ) -> Result<bool, LimitRefusal> {
        if self.by_limit.get(name).is_some_and(|ix| self.limits[ix.at()].configured == Some(shape)) {
            return Ok(false);
        }
        if self.limits.len() >= bounds::LIMITS_MAX && !self.by_limit.contains_key(name) {
            return Err(LimitRefusal::TooMany);
        }
        self.set(now, name, shape, LimitSource::Config, facts).map(|()| true)
    }

    /// Removes limits that are no longer in the configuration, unless they are in use, still have
    /// state to keep, or an operator set them.
    pub fn retain_configured(&mut self, now: Time, kept: &[(Arc<str>, LimitShape)], facts: &mut Vec<Fact>) {
        let now = self.now(now);
        let kept: BTreeSet<&str> = kept.iter().map(|(name, _)| &**name).collect();
        let has_gone = |limit: &Limit| {
            limit.configured.is_some()
                && limit.source != LimitSource::Operator
                && !kept.contains(&*limit.name)
                && limit.is_idle(now)
        };
        let gone: Vec<_> =
            self.limits.iter().map(|(_, limit)| limit).filter(|limit| has_gone(limit)).collect();
        let gone: Vec<Arc<str>> = gone.into_iter().map(|limit| Arc::clone(&limit.name)).collect();
        for limit in gone {
            self.decide(facts, Fact::LimitGone { limit, at: now });
        }
    }

    /// Changes the figures of an existing limit on behalf of an operator.
    ///
    /// # Errors
    /// Returns why the limit was not set.
    pub fn set_limit(
        &mut self,
        now: Time,
        name: &Arc<str>,
        shape: LimitShape,
        facts: &mut Vec<Fact>,
    ) -> Result<(), LimitRefusal> {
        if !self.by_limit.contains_key(name) {
            return Err(LimitRefusal::Unknown);
        }
        self.set(now, name, shape, LimitSource::Operator, facts)
    }

    /// Removes an operator's override: the limit has the figures of the configuration again, and
    /// learns from there. One that was never configured is learned again from the next response;
    /// figures that an operation assumes return with the next operation.
    ///
    /// # Errors
    /// When there is no such limit.
    pub fn reset_limit(
        &mut self,
        now: Time,
        name: &Arc<str>,
        facts: &mut Vec<Fact>,
    ) -> Result<(), LimitRefusal> {
        let known = self.by_limit.get(name).map(|ix| self.limits[ix.at()].configured);
        match known.ok_or(LimitRefusal::Unknown)? {
            Some(shape) => self.set(now, name, shape, LimitSource::Config, facts),
            None => self.set(now, name, UNKNOWN_WINDOW, LimitSource::Learned, facts),
        }
    }

    /// Reopens a limit that an upstream had closed. Of a breaker it ends the cooldown: one call
    /// goes first, and the others follow when it succeeds.
    ///
    /// # Errors
    /// When there is no such limit.
    pub fn thaw(&mut self, now: Time, name: &Arc<str>, facts: &mut Vec<Fact>) -> Result<(), LimitRefusal> {
        let now = self.now(now);
        if !self.by_limit.contains_key(name) {
            return Err(LimitRefusal::Unknown);
        }
        self.decide(facts, Fact::Thawed { limit: Arc::clone(name), at: now });
        self.rearm(now);
        Ok(())
    }

    /// The same for one that is closed.
    ///
    /// # Errors
    /// When there is no such limit, or it is open.
    pub fn thaw_closed(
        &mut self,
        now: Time,
        name: &Arc<str>,
        facts: &mut Vec<Fact>,
    ) -> Result<(), LimitRefusal> {
        let limit = self.limit(name, self.now(now)).ok_or(LimitRefusal::Unknown)?;
        if limit.frozen_until.is_none() {
            return Err(LimitRefusal::NotClosed);
        }
        self.thaw(now, name, facts)
    }

    /// Creates the limits that an operation opens, where no limit of that name exists.
    pub(super) fn open(
        &mut self,
        now: Time,
        opens: &[(Arc<str>, LimitShape)],
        facts: &mut Vec<Fact>,
    ) -> Result<(), LimitRefusal> {
        // Retire first, so that none of the limits it charges is removed again.
        let missing = opens.iter().filter(|(name, _)| !self.by_limit.contains_key(name)).count();
        for _ in 0..missing {
            self.retire(now, facts);
        }
        for (name, shape) in opens {
            let known = self.by_limit.get(name).map(|ix| self.limits[ix.at()].shape());
            // One that was reset takes up the assumed figures again.
            let is_reset = known == Some(UNKNOWN_WINDOW) && *shape != UNKNOWN_WINDOW;
            if known.is_some() && !is_reset {
                continue;
            }
            if known.is_none() && self.limits.len() >= bounds::LIMITS_MAX {
                return Err(LimitRefusal::TooMany);
            }
            self.set(now, name, *shape, LimitSource::Learned, facts)?;
        }
        Ok(())
    }

    /// Removes some opened limits that have no state to keep, when there are many.
    fn retire(&mut self, now: Time, facts: &mut Vec<Fact>) {
        for _ in 0..RETIRED_AT_ONCE {
            if self.opened.len() <= bounds::OPENED_KEPT {
                return;
            }
            let next = self.opened.range((Bound::Excluded(self.looked_at), Bound::Unbounded)).next();
            let Some(ix) = next.or_else(|| self.opened.first()).copied() else { return };
            self.looked_at = ix;
            let limit = &self.limits[ix.at()];
            if limit.is_at_rest(now) {
                let limit = Arc::clone(&limit.name);
                self.decide(facts, Fact::LimitGone { limit, at: now });
            }
        }
    }

    fn set(
        &mut self,
        now: Time,
        name: &Arc<str>,
        shape: LimitShape,
        source: LimitSource,
        facts: &mut Vec<Fact>,
    ) -> Result<(), LimitRefusal> {
        let now = self.now(now);
        if !is_sane(shape) || name.is_empty() || name.len() > bounds::LIMIT_LEN_MAX {
            return Err(LimitRefusal::OutOfBounds);
        }
        if let Some(ix) = self.by_limit.get(name) {
            let known = &self.limits[ix.at()];
            if source == LimitSource::Operator && kind_of(known.shape()) != kind_of(shape) {
                return Err(LimitRefusal::OtherKind);
            }
        }
        self.decide(facts, Fact::LimitSet { limit: Arc::clone(name), shape, source, at: now });
        self.rearm(now);
        Ok(())
    }
}

/// The kind of a limit; an operator's figures do not change it.
const fn kind_of(shape: LimitShape) -> u8 {
    match shape {
        LimitShape::Drip { .. } | LimitShape::Window { .. } => 0,
        LimitShape::Gate => 1,
        LimitShape::Cap { .. } => 2,
        LimitShape::Breaker { .. } => 3,
    }
}

fn is_sane(shape: LimitShape) -> bool {
    let most = bounds::TOKENS_MAX * crate::operation::MICRO;
    match shape {
        LimitShape::Drip { capacity, refill_per_s, margin } => {
            (1..=most).contains(&capacity) && (1..=most).contains(&refill_per_s) && margin < capacity
        }
        LimitShape::Window { limit, .. } => limit <= most,
        LimitShape::Gate => true,
        LimitShape::Cap { at_once } => at_once > 0,
        LimitShape::Breaker { ladder } => ladder.0.iter().all(|step| *step <= bounds::RETRY_AFTER_MAX),
    }
}
