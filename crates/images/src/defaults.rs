//! The limits that a provider starts with. A figure is the provider's own or it is unknown; the
//! source is next to it.

use std::time::Duration;

/// The cooldown after errors in a row. No provider documents one, so it is the same for all.
pub const COOLDOWN_LADDER: [Duration; 4] =
    [Duration::from_secs(10), Duration::from_secs(30), Duration::from_secs(60), Duration::from_secs(120)];

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The figure; `None` when the provider documents none.
    pub value: Option<u32>,
    /// Where it is from, or why there is none.
    pub source: &'static str,
}

impl Figure {
    /// A figure that the provider documents.
    #[must_use]
    pub const fn documented(value: u32, source: &'static str) -> Self {
        Self { value: Some(value), source }
    }

    /// A figure that the provider does not document.
    #[must_use]
    pub const fn unknown(source: &'static str) -> Self {
        Self { value: None, source }
    }
}

/// The limits of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderDefaults {
    /// How many jobs run at once.
    pub max_concurrent: Figure,
    /// How many submits a minute allows.
    pub rpm: Figure,
    /// The cooldown after errors in a row.
    pub cooldown: [Duration; 4],
    /// How long after a submit the first poll is due. Our choice: no provider documents one.
    pub poll_first: Duration,
    /// The longest time between polls. Our choice too.
    pub poll_max: Duration,
    /// How long the provider keeps a result; `None` when that is not documented.
    pub keeps_results: Option<Duration>,
}

impl ProviderDefaults {
    pub(crate) const fn new(max_concurrent: Figure, rpm: Figure, poll_s: (u64, u64)) -> Self {
        Self {
            max_concurrent,
            rpm,
            cooldown: COOLDOWN_LADDER,
            poll_first: Duration::from_secs(poll_s.0),
            poll_max: Duration::from_secs(poll_s.1),
            keeps_results: None,
        }
    }

    pub(crate) const fn keeping(mut self, keeps: Duration) -> Self {
        self.keeps_results = Some(keeps);
        self
    }
}
