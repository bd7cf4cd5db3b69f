//! Plain HTTP: limits that are configured by hand, and costs given by the caller. Nothing is
//! learned from a response. Kinds of remote workers have such limits too.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::bounds::UPSTREAM_NAME_LEN_MAX;
use tidegate_core::bucket::default_margin;
use tidegate_core::fact::LimitShape;
use tidegate_core::{Charge, LimitName};

use super::config::{LimitConfig, LimitKind};
use super::dialect::{Dialect, LimitDefinition};
use crate::port::FieldRefusal;
use crate::request::HttpRequest;

/// The dialect of an upstream without one of its own.
#[derive(Clone, Debug)]
pub struct PlainDialect(ConfiguredLimits);

/// The limits that are configured for an upstream, or for a kind: a gate with its name, which it
/// closes when it asks to wait, and those that have figures.
#[derive(Clone, Debug)]
pub struct ConfiguredLimits {
    gate: Arc<str>,
    limits: Vec<Limit>,
}

/// One limit: the name callers use, the name the model uses, and its shape.
#[derive(Clone, Debug)]
struct Limit {
    short: String,
    name: Arc<str>,
    shape: LimitShape,
}

impl PlainDialect {
    /// Creates the dialect of an upstream with these limits, which were validated.
    #[must_use]
    pub fn new(upstream: &str, limits: &[LimitConfig]) -> Self {
        Self(ConfiguredLimits::new(upstream, limits))
    }
}

impl Dialect for PlainDialect {
    fn limits(&self) -> Vec<LimitDefinition> {
        self.0.definitions()
    }

    fn charges(&self, _: &HttpRequest, cost: &BTreeMap<String, u64>) -> Result<Vec<Charge>, FieldRefusal> {
        self.0.charges(cost)
    }
}

impl ConfiguredLimits {
    /// Creates the limits of an upstream or a kind, which were validated.
    #[must_use]
    pub fn new(owner: &str, limits: &[LimitConfig]) -> Self {
        let limits = limits.iter().map(|limit| Limit::of(owner, limit)).collect();
        Self { gate: Arc::from(owner), limits }
    }

    /// All of them, with their shapes.
    #[must_use]
    pub fn definitions(&self) -> Vec<LimitDefinition> {
        let gate = (Arc::clone(&self.gate), LimitShape::Gate);
        let limits = self.limits.iter().map(|limit| (Arc::clone(&limit.name), limit.shape));
        std::iter::once(gate).chain(limits).collect()
    }

    /// Charges the gate, then every limit: the caller's cost, or one token by default.
    ///
    /// # Errors
    /// Names a limit in the cost that does not exist.
    pub fn charges(&self, cost: &BTreeMap<String, u64>) -> Result<Vec<Charge>, FieldRefusal> {
        let known: Vec<_> = self.limits.iter().map(|limit| limit.short.as_str()).collect();
        refuse_unknown_limits(&self.gate, &known, cost)?;
        let gate = Charge::tokens(Arc::clone(&self.gate), 1);
        let limits = self.limits.iter().map(|limit| {
            Charge::tokens(Arc::clone(&limit.name), cost.get(&limit.short).copied().unwrap_or(1))
        });
        Ok(std::iter::once(gate).chain(limits).collect())
    }
}

/// Refuses a cost for a limit that its owner, an upstream or a kind, does not have.
///
/// # Errors
/// Names the limit.
pub fn refuse_unknown_limits(
    owner: &str,
    known: &[&str],
    cost: &BTreeMap<String, u64>,
) -> Result<(), FieldRefusal> {
    let Some(stranger) = cost.keys().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
    let stranger: String = stranger.chars().take(UPSTREAM_NAME_LEN_MAX).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    let message = format!("{owner} has no limit called {stranger:?}; it has: {known}.");
    Err(FieldRefusal::new(format!("cost.{stranger}"), message))
}

impl Limit {
    fn of(upstream: &str, config: &LimitConfig) -> Self {
        let shape = match config.kind {
            LimitKind::Drip { .. } => {
                let (capacity, refill_per_s) = config.kind.micro_tokens();
                LimitShape::Drip { capacity, refill_per_s, margin: default_margin(capacity, refill_per_s) }
            }
            LimitKind::AtOnce { at_once } => LimitShape::Cap { at_once },
        };
        Self { short: config.name.clone(), name: LimitName::new(upstream, &config.name).into(), shape }
    }
}
