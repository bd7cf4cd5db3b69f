//! A kind whose operations remote workers execute: checks them when they are submitted, and sends
//! nothing. The payload is any JSON, which only the workers understand.

use std::collections::BTreeMap;

use tidegate_core::{OnUnknown, Verdict};

use crate::http::plain::refuse_unknown_limits;
use crate::http::{ConfiguredLimits, LimitConfig, LimitDefinition};
use crate::port::{Call, CallFuture, CallRequirements, FieldRefusal, Outcome, Upstream, is_same_json};

/// The configuration of a kind that remote workers execute.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RemoteKindConfig {
    /// Its name.
    pub name: String,
    /// Whether an operation may run again when its worker died, and no one knows how far it came.
    pub repeatable: bool,
    /// The limits that every operation charges, besides the gate. Without any there is no gate
    /// either.
    pub limits: Vec<LimitConfig>,
}

impl RemoteKindConfig {
    /// Creates the configuration of a kind whose operations may run again, without limits.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), repeatable: true, limits: Vec::new() }
    }

    /// Sets whether an operation may run again when its worker died.
    #[must_use]
    pub const fn with_repeatable(mut self, repeatable: bool) -> Self {
        self.repeatable = repeatable;
        self
    }

    /// Sets its limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Vec<LimitConfig>) -> Self {
        self.limits = limits;
        self
    }
}

/// Checks operations of a kind that remote workers execute.
#[derive(Clone, Debug)]
pub struct RemoteKind {
    name: String,
    repeatable: bool,
    limits: Option<ConfiguredLimits>,
}

impl RemoteKind {
    /// Creates the check of a kind.
    #[must_use]
    pub fn new(config: &RemoteKindConfig) -> Self {
        let limits = ConfiguredLimits::new(&config.name, &config.limits);
        let limits = (!config.limits.is_empty()).then_some(limits);
        Self { name: config.name.clone(), repeatable: config.repeatable, limits }
    }

    /// Its limits, with their shapes.
    #[must_use]
    pub fn limits(&self) -> Vec<LimitDefinition> {
        self.limits.as_ref().map(ConfiguredLimits::definitions).unwrap_or_default()
    }
}

impl Upstream for RemoteKind {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        if serde_json::from_slice::<serde::de::IgnoredAny>(payload).is_err() {
            return Err(FieldRefusal::new("payload", "The payload must be JSON."));
        }
        let charges = match &self.limits {
            Some(limits) => limits.charges(cost)?,
            None => refuse_unknown_limits(&self.name, &[], cost).map(|()| Vec::new())?,
        };
        let on_unknown = if self.repeatable { OnUnknown::Repeat } else { OnUnknown::Ask };
        Ok(CallRequirements::new(charges).with_on_unknown(on_unknown))
    }

    fn difference(&self, one: &[u8], other: &[u8]) -> Option<&'static str> {
        (!is_same_json(one, other)).then_some("payload")
    }

    /// Sends nothing: its operations are handed to remote workers.
    fn carry<'a>(&'a self, _: Call<'a>) -> CallFuture<'a> {
        Box::pin(std::future::ready(Outcome::unanswered(Verdict::Returned)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::LimitKind;

    #[test]
    fn a_payload_is_any_json_and_charges_the_limits_of_its_kind() {
        let slots = LimitConfig::new("slots", LimitKind::AtOnce { at_once: 2 });
        let limited = RemoteKind::new(&RemoteKindConfig::new("resize").with_limits(vec![slots]));
        let checked = limited.check(b"[1, null]", &BTreeMap::new()).unwrap();
        let charged: Vec<_> = checked.charges.iter().map(|charge| &*charge.limit).collect();
        assert_eq!(charged, ["resize", "resize/slots"]);
        assert_eq!(checked.on_unknown, OnUnknown::Repeat);
        assert_eq!(limited.check(b"nonsense", &BTreeMap::new()).unwrap_err().field, "payload");
        let free = RemoteKind::new(&RemoteKindConfig::new("scan").with_repeatable(false));
        let checked = free.check(b"7", &BTreeMap::new()).unwrap();
        assert_eq!((checked.charges.len(), checked.on_unknown), (0, OnUnknown::Ask));
        let cost = BTreeMap::from([("slots".to_owned(), 2)]);
        assert_eq!(free.check(b"7", &cost).unwrap_err().field, "cost.slots");
        assert_eq!(free.difference(b"{\"a\":1,\"b\":2}", b"{\"b\":2, \"a\":1}"), None);
        assert_eq!(free.difference(b"1", b"2"), Some("payload"));
    }
}
