//! An operation as the model sees it: what it charges, its budget and its rules. What is sent, and what came
//! back, are bytes that the model never looks at.

use std::sync::Arc;
use std::time::Duration;

use crate::bounds;
use crate::fact::LimitShape;
use crate::time::Time;

/// One million of these are one token.
pub const MICRO: u64 = 1_000_000;

/// What an operation takes from one limit: micro-tokens of a bucket, or one place of a cap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Charge {
    /// The limit's name.
    pub limit: Arc<str>,
    /// How much of it, in micro-tokens. Ignored by a cap, which always gives one place.
    pub cost: u64,
    /// Whether nobody said so and it was worked out. An estimate proves nothing: it is never too much, and when it runs it
    /// takes at most what the limit holds then.
    pub estimated: bool,
}

impl Charge {
    /// A charge of whole tokens.
    #[must_use]
    pub fn tokens(limit: impl Into<Arc<str>>, tokens: u64) -> Self {
        Self { limit: limit.into(), cost: tokens.saturating_mul(MICRO), estimated: false }
    }

    /// A charge that was worked out, in micro-tokens.
    #[must_use]
    pub fn estimate(limit: impl Into<Arc<str>>, cost: u64) -> Self {
        Self { limit: limit.into(), cost, estimated: true }
    }
}

/// What follows when a request left and its answer never came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnUnknown {
    /// Safe to repeat: treated as a failure that may pass.
    Repeat,
    /// Taken again with the order to look first.
    Reconcile,
    /// The group waits for a person.
    #[default]
    Ask,
}

/// What follows for the group when its head has failed for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// The next one goes on.
    #[default]
    Skip,
    /// The group waits for a person.
    Hold,
}

/// What follows a failure in some groups, or of one kind, where a submission does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureRule {
    /// Only in this group; with `*` at its end, in all that begin so.
    pub group: Option<Arc<str>>,
    /// Only of this kind.
    pub kind: Option<Arc<str>>,
    /// What follows.
    pub on_failure: OnFailure,
}

impl FailureRule {
    fn applies_to(&self, group: &str, kind: &str) -> bool {
        let in_group = |pattern: &Arc<str>| match pattern.strip_suffix('*') {
            Some(start) => group.starts_with(start),
            None => **pattern == *group,
        };
        self.group.as_ref().is_none_or(in_group) && self.kind.as_ref().is_none_or(|own| **own == *kind)
    }
}

/// What follows a failure of an operation that does not say: what the first rule that fits it says.
#[must_use]
pub fn on_failure(rules: &[FailureRule], group: &str, kind: &str) -> OnFailure {
    rules
        .iter()
        .find(|rule| rule.applies_to(group, kind))
        .map_or_else(OnFailure::default, |rule| rule.on_failure)
}

/// How an operation is found again under the caller's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DedupeEntry {
    /// Hash of the key.
    pub key: u128,
    /// Hash of everything that must be the same for it to be the same request.
    pub fingerprint: u128,
    /// When the key is forgotten.
    pub expires: Time,
}

/// An operation that asks to be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The key inside which order holds.
    pub group: Arc<str>,
    /// Who carries it.
    pub kind: Arc<str>,
    /// What must be granted before it runs, all or nothing.
    pub charges: Vec<Charge>,
    /// Limits that are made like this if there are none of these names: those of an upstream that nobody can list in
    /// advance, such as one for each route and channel.
    pub opens: Vec<(Arc<str>, LimitShape)>,
    /// Not to be started after this time.
    pub deadline: Option<Time>,
    /// Not to be started before this time.
    pub not_before: Option<Time>,
    /// Attempts in all.
    pub max_attempts: u16,
    /// 0 is usual; higher goes earlier.
    pub priority: u8,
    /// What follows an unknown outcome.
    pub on_unknown: OnUnknown,
    /// What follows a failure.
    pub on_failure: OnFailure,
    /// The caller's key, if any.
    pub dedupe: Option<DedupeEntry>,
}

impl Draft {
    /// A draft with every default: no charge, no deadline, eight attempts.
    #[must_use]
    pub fn new(group: impl Into<Arc<str>>, kind: impl Into<Arc<str>>) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
            charges: Vec::new(),
            opens: Vec::new(),
            deadline: None,
            not_before: None,
            max_attempts: bounds::ATTEMPTS_DEFAULT,
            priority: 0,
            on_unknown: OnUnknown::default(),
            on_failure: OnFailure::default(),
            dedupe: None,
        }
    }

    /// The first field that is out of bounds, with what is wrong with it.
    ///
    /// # Errors
    /// Names the field.
    pub fn validate(&self, now: Time) -> Result<(), InvalidField> {
        let far = now.after(bounds::HORIZON_MAX);
        let wrong = |field, problem| Err(InvalidField { field, problem });
        if self.group.is_empty() || self.group.len() > bounds::GROUP_LEN_MAX {
            return wrong("group", "must be 1 to 255 bytes long");
        }
        if self.group.chars().any(char::is_control) {
            return wrong("group", "must not hold control characters");
        }
        if self.kind.is_empty() || self.kind.len() > bounds::KIND_LEN_MAX {
            return wrong("kind", "must be 1 to 64 bytes long");
        }
        if self.max_attempts == 0 || self.max_attempts > bounds::ATTEMPTS_MAX {
            return wrong("max_attempts", "must be 1 to 1000");
        }
        if self.priority > bounds::PRIORITY_MAX {
            return wrong("priority", "must be 0 to 4");
        }
        if self.charges.len() > bounds::CHARGES_MAX {
            return wrong("cost", "names too many limits");
        }
        if self.opens.iter().any(|(name, _)| self.charges.iter().all(|charge| charge.limit != *name)) {
            return wrong("cost", "opens a limit that it does not charge");
        }
        if self.charges.iter().any(|c| c.limit.is_empty() || c.limit.len() > bounds::LIMIT_LEN_MAX) {
            return wrong("cost", "names a limit that is not 1 to 255 bytes long");
        }
        if self.charges.iter().any(|c| c.cost > bounds::TOKENS_MAX * MICRO) {
            return wrong("cost", "is larger than any limit can be");
        }
        if self.deadline.is_some_and(|at| at > far) {
            return wrong("deadline_ms", "is more than a year away");
        }
        if self.not_before.is_some_and(|at| at > far) {
            return wrong("delay_ms", "is more than a year away");
        }
        Ok(())
    }
}

/// A field of a draft that cannot be taken as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// Which one, as callers spell it.
    pub field: &'static str,
    /// What is wrong with it: "`field` `problem`" is a sentence.
    pub problem: &'static str,
}

/// The time left until `deadline`, at most `most`.
#[must_use]
pub fn time_left(deadline: Option<Time>, now: Time, most: Duration) -> Duration {
    deadline.map_or(most, |at| at.since(now).min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-25: the first rule that fits counts, by group, by kind, or by both.
    #[test]
    fn ops_25_the_first_rule_that_fits_counts() {
        let rule = |group: Option<&str>, kind: Option<&str>, on_failure| FailureRule {
            group: group.map(Arc::from),
            kind: kind.map(Arc::from),
            on_failure,
        };
        let rules = [
            rule(Some("shop:acme"), None, OnFailure::Skip),
            rule(Some("shop:*"), Some("http"), OnFailure::Hold),
            rule(None, Some("shopify.bulk"), OnFailure::Hold),
        ];
        let table = [
            ("shop:acme", "http", OnFailure::Skip),
            ("shop:acme", "shopify.bulk", OnFailure::Skip),
            ("shop:other", "http", OnFailure::Hold),
            ("shop:other", "test", OnFailure::Skip),
            ("guild:1", "http", OnFailure::Skip),
            ("guild:1", "shopify.bulk", OnFailure::Hold),
        ];
        for (group, kind, expected) in table {
            assert_eq!(on_failure(&rules, group, kind), expected, "{group} {kind}");
        }
        assert_eq!(on_failure(&[], "g", "http"), OnFailure::Skip);
    }
}
