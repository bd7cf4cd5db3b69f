//! An operation as the model sees it: its charges, its retry budget and its rules. The request and
//! the response are bytes that the model never inspects.

use std::sync::Arc;
use std::time::Duration;

use crate::alternatives::Alternatives;
use crate::bounds;
use crate::fact::LimitShape;
use crate::fault::Fault;
use crate::text::is_control;
use crate::time::Time;

/// The number of micro-tokens in one token.
pub const MICRO: u64 = 1_000_000;

/// What an operation takes from one limit: micro-tokens of a bucket, or one slot of a cap.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Charge {
    /// The limit's name.
    pub limit: Arc<str>,
    /// The cost, in micro-tokens. Ignored by a cap, which always grants one slot.
    pub cost: u64,
    /// Whether the cost was estimated rather than stated. An estimate proves nothing: it is never
    /// too costly, and when the operation runs it takes at most the limit's capacity at that time.
    pub estimated: bool,
}

impl Charge {
    /// Creates a charge of whole tokens.
    #[must_use]
    pub fn tokens(limit: impl Into<Arc<str>>, tokens: u64) -> Self {
        Self { limit: limit.into(), cost: tokens.saturating_mul(MICRO), estimated: false }
    }

    /// Creates an estimated charge, in micro-tokens.
    #[must_use]
    pub fn estimate(limit: impl Into<Arc<str>>, cost: u64) -> Self {
        Self { limit: limit.into(), cost, estimated: true }
    }
}

/// What to do when a request was sent and its response never came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnUnknown {
    /// Safe to repeat: treated as a transient failure.
    Repeat,
    /// Retry it, with the instruction to check first whether it took effect.
    Reconcile,
    /// The group waits for an operator.
    #[default]
    Ask,
}

impl OnUnknown {
    /// Its name in submissions.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Reconcile => "reconcile",
            Self::Ask => "ask",
        }
    }
}

/// What happens to the group when its head has failed for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// The next operation runs.
    #[default]
    Skip,
    /// The group waits for an operator.
    Hold,
}

impl OnFailure {
    /// Its name in submissions.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Hold => "hold",
        }
    }
}

/// The default for what follows a failure, for some groups or one kind, where a submission does not
/// specify it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureRule {
    /// Only in this group; with a trailing `*`, in all groups with that prefix.
    pub group: Option<Arc<str>>,
    /// Only for this kind.
    pub kind: Option<Arc<str>>,
    /// What follows the failure.
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

/// What follows a failure of an operation that does not specify it: the first matching rule
/// decides.
#[must_use]
pub fn on_failure(rules: &[FailureRule], group: &str, kind: &str) -> OnFailure {
    rules
        .iter()
        .find(|rule| rule.applies_to(group, kind))
        .map_or_else(OnFailure::default, |rule| rule.on_failure)
}

/// Identifies an operation by the caller's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DedupeEntry {
    /// Hash of the key.
    pub key: u128,
    /// Hash of everything that must match for two requests to be the same.
    pub fingerprint: u128,
    /// When the key is forgotten.
    pub expires: Time,
}

/// An operation submitted for acceptance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The key within which order is kept.
    pub group: Arc<str>,
    /// The kind of worker that executes it.
    pub kind: Arc<str>,
    /// What must be granted before it runs, all or nothing.
    pub charges: Vec<Charge>,
    /// Alternatives, one of which is used; what each charges is granted together with `charges`.
    /// `None` when there is only one way to execute it.
    pub alternatives: Option<Alternatives>,
    /// Limits to create with these shapes where no limit of that name exists: those of an upstream
    /// that cannot be listed in advance, such as one for each route and channel.
    pub opens: Vec<(Arc<str>, LimitShape)>,
    /// The time after which it must not start.
    pub deadline: Option<Time>,
    /// The time by which the known limits must let it start for it to be accepted; by default its
    /// deadline. Nothing depends on it later.
    pub start_by: Option<Time>,
    /// The time before which it must not start.
    pub not_before: Option<Time>,
    /// The maximum number of attempts.
    pub max_attempts: u16,
    /// 0 is the default; higher goes earlier.
    pub priority: u8,
    /// What to do after an unknown outcome.
    pub on_unknown: OnUnknown,
    /// What to do after a failure.
    pub on_failure: OnFailure,
    /// The caller's dedupe key, if any.
    pub dedupe: Option<DedupeEntry>,
    /// What an earlier run left that may have taken effect; for one that is accepted again.
    pub doubt: Option<Fault>,
    /// An operation whose key is forgotten before this time does not count as the same: its key was
    /// used for another one since.
    pub dedupe_from: Time,
}

impl Draft {
    /// Creates a draft with every default: no charge, no deadline, eight attempts.
    #[must_use]
    pub fn new(group: impl Into<Arc<str>>, kind: impl Into<Arc<str>>) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
            charges: Vec::new(),
            alternatives: None,
            opens: Vec::new(),
            deadline: None,
            start_by: None,
            not_before: None,
            max_attempts: bounds::ATTEMPTS_DEFAULT,
            priority: 0,
            on_unknown: OnUnknown::default(),
            on_failure: OnFailure::default(),
            dedupe: None,
            doubt: None,
            dedupe_from: Time::ZERO,
        }
    }

    /// What it charges, with any alternative.
    fn all_charges(&self) -> impl Iterator<Item = &Charge> {
        let alternatives = self.alternatives.iter().flat_map(|alternatives| &alternatives.list);
        self.charges.iter().chain(alternatives.flat_map(|alternative| &alternative.charges))
    }

    /// Checks every field against its bounds.
    ///
    /// # Errors
    /// Names the first field that is out of bounds, and the problem.
    pub fn validate(&self, now: Time) -> Result<(), InvalidField> {
        let far = now.after(bounds::HORIZON_MAX);
        let wrong = |field, problem| Err(InvalidField { field, problem });
        if self.group.is_empty() || self.group.len() > bounds::GROUP_LEN_MAX {
            return wrong("group", "must be 1 to 255 bytes long");
        }
        if self.group.chars().any(is_control) {
            return wrong("group", "must not hold control characters");
        }
        if matches!(&*self.group, "." | "..") {
            return wrong("group", "must not be . or .., which no URL can name");
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
        if let Some(alternatives) = &self.alternatives {
            alternatives.validate(self.charges.len())?;
        }
        if self.opens.iter().any(|(name, _)| self.all_charges().all(|charge| charge.limit != *name)) {
            return wrong("cost", "opens a limit that it does not charge");
        }
        if self.all_charges().any(|c| c.limit.is_empty() || c.limit.len() > bounds::LIMIT_LEN_MAX) {
            return wrong("cost", "names a limit that is not 1 to 255 bytes long");
        }
        if self.all_charges().any(|c| c.cost > bounds::TOKENS_MAX * MICRO) {
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

/// A field of a draft that is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// The field, as callers spell it.
    pub field: &'static str,
    /// The problem: "`field` `problem`" is a sentence.
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

    /// OPS-24: a group has a name that a URL can have and that shows as it is.
    #[test]
    fn ops_24_a_group_can_be_named() {
        let is_valid = |group: &str| Draft::new(group, "http").validate(Time::ZERO).is_ok();
        for group in ["shop:1", "a/b", "...", ".a", "п р", "%2e", "\u{200f}"] {
            assert!(is_valid(group), "{group:?}");
        }
        for group in ["", ".", "..", "a\nb", "a\u{202e}b", "a\u{2067}b"] {
            assert!(!is_valid(group), "{group:?}");
        }
    }

    /// OPS-25: the first matching rule counts, by group, by kind, or by both.
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
