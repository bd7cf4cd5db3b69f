//! Upstreams and kinds that are gone from the configuration while operations for them wait. The
//! limits of such an upstream are still in the log, and no configured limit has their name.

use tidegate_core::LimitName;
use tidegate_core::fact::LimitShape;
use tidegate_core::model::{ActiveOperation, Cause};
use tidegate_store::Clock;

use super::Owner;

impl Owner {
    /// The upstream that a group waits for because it is not configured: its limits are closed, and
    /// none of them is.
    pub(crate) fn unconfigured_upstream<'a>(&self, cause: &'a Cause) -> Option<&'a str> {
        let Cause::Bucket { name, frozen: true, .. } = cause else { return None };
        Some(LimitName::parse(name).upstream()).filter(|upstream| !self.is_configured(upstream))
    }

    /// Logs which upstreams with accepted operations are not configured, and how many those are.
    pub(crate) fn warn_of_unconfigured_upstreams(&self) {
        let (mut operations, mut upstreams) = (0, Vec::new());
        for limit in self.model.limits(self.clock.now()) {
            // Each operation charges the gate of its upstream once.
            if limit.shape == LimitShape::Gate && limit.users > 0 && !self.is_configured(&limit.name) {
                operations += limit.users;
                upstreams.push(format!("{} ({})", limit.name, limit.users));
            }
        }
        if operations > 0 {
            let upstreams = upstreams.join(", ");
            tracing::warn!(
                operations,
                upstreams,
                "accepted operations wait for upstreams that are not configured"
            );
        }
    }

    /// Logs which kinds with accepted operations are not configured, and how many those are.
    pub(crate) fn warn_of_missing_kinds(&self) {
        let kinds: Vec<&str> = self.model.missing_kinds().map(AsRef::as_ref).collect();
        if kinds.is_empty() {
            return;
        }
        let is_missing = |active: &ActiveOperation| kinds.contains(&&*active.kind);
        let operations = self.model.actives(None).filter(is_missing).count();
        if operations > 0 {
            let kinds = kinds.join(", ");
            tracing::warn!(operations, kinds, "accepted operations wait for kinds that are not configured");
        }
    }

    pub(crate) fn is_configured(&self, upstream: &str) -> bool {
        self.limits.iter().any(|(name, _)| LimitName::parse(name).upstream() == upstream)
    }
}
