//! How a consumer is set up, and what one read wants.

use std::sync::Arc;
use std::time::Duration;

use tidegate_bus::Bus;
use tidegate_core::hydration::{CorrelationId, FlightRules, HydrationMode};
use tidegate_store::SharedState;

use super::Hydrator;
use crate::copies::LocalCopies;
use crate::outcome::HydrationError;

/// Sets up a [`Hydrator`].
pub struct HydratorBuilder {
    pub(super) module: String,
    pub(super) bus: Arc<dyn Bus>,
    pub(super) copies: Arc<dyn LocalCopies>,
    pub(super) owned_types: Vec<String>,
    pub(super) only_type: Option<String>,
    pub(super) shared: Option<Arc<dyn SharedState>>,
    pub(super) rules: FlightRules,
}

impl HydratorBuilder {
    pub(super) fn new(module: &str, bus: Arc<dyn Bus>, copies: Arc<dyn LocalCopies>) -> Self {
        Self {
            module: module.to_owned(),
            bus,
            copies,
            owned_types: Vec::new(),
            only_type: None,
            shared: None,
            rules: FlightRules::default(),
        }
    }

    /// Names a type that the module owns: nothing is ever asked about it.
    #[must_use]
    pub fn owns(mut self, entity_type: &str) -> Self {
        self.owned_types.push(entity_type.to_owned());
        self
    }

    /// Receives events about this type only, instead of about all.
    #[must_use]
    pub fn only(mut self, entity_type: &str) -> Self {
        self.only_type = Some(entity_type.to_owned());
        self
    }

    /// Shares open questions and what was not found with other nodes through a store, so that one
    /// of them asks. All of them must be on the same bus.
    #[must_use]
    pub fn shared(mut self, store: Arc<dyn SharedState>) -> Self {
        self.shared = Some(store);
        self
    }

    /// Replaces times and bounds.
    #[must_use]
    pub fn rules(mut self, rules: FlightRules) -> Self {
        self.rules = rules;
        self
    }

    /// Starts the consumer. Returns once the bus has confirmed the subscription to answers, so the
    /// first question cannot leave too early.
    ///
    /// # Errors
    /// `Bus` when it could not be subscribed to.
    pub async fn start(self) -> Result<Hydrator, HydrationError> {
        Hydrator::start(self).await
    }
}

/// What a read does when there is no answer in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureMode {
    /// It fails with a temporary error, and the caller decides.
    #[default]
    FailFast,
    /// It continues with the copy that is there, marked as stale, or without one.
    Degrade,
}

/// What a read wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GetOptions {
    /// How much of the entity.
    pub mode: HydrationMode,
    /// How long to wait in total; by default `wait_timeout` of the rules.
    pub wait: Option<Duration>,
    /// The oldest copy that will do; by default any.
    pub max_age: Option<Duration>,
    /// What to do when there is no answer.
    pub on_failure: FailureMode,
    /// How long deferred work may wait.
    pub defer_for: Duration,
    /// The caller's id in logs and questions; by default a random one.
    pub correlation_id: Option<CorrelationId>,
}

impl Default for GetOptions {
    fn default() -> Self {
        Self {
            mode: HydrationMode::Full,
            wait: None,
            max_age: None,
            on_failure: FailureMode::FailFast,
            defer_for: Duration::from_secs(60),
            correlation_id: None,
        }
    }
}

impl GetOptions {
    /// Everything that the owner gives away.
    #[must_use]
    pub fn full() -> Self {
        Self::default()
    }

    /// What `mode` asks for.
    #[must_use]
    pub fn of(mode: HydrationMode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// Sets the total wait.
    #[must_use]
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Continues with what there is when no answer comes.
    #[must_use]
    pub const fn degrade(mut self) -> Self {
        self.on_failure = FailureMode::Degrade;
        self
    }
}
