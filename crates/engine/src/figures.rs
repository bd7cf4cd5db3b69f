//! The metrics of attempts: how they ended, what the upstream answered, how long it took. Their
//! labels are names in the configuration, so there are only so many.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{LimitName, Seq, Verdict};

use crate::carry::describe;
use crate::owner::Owner;

/// What is measured of one attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptFigures {
    /// How long its call took; `None` when this process made none.
    took: Option<Duration>,
    /// The status of the response.
    pub status: Option<u16>,
    /// The upstream or the provider, or else the kind, that it is counted under; `None` when its
    /// operation is not known any more.
    pub upstream: Option<Arc<str>>,
}

impl AttemptFigures {
    /// Measures a call.
    pub(crate) const fn of_call(took: Duration, status: Option<u16>) -> Self {
        Self { took: Some(took), status, upstream: None }
    }

    /// Counts the attempt, once its settlement is durable.
    pub(crate) fn count(&self, verdict: &Verdict) {
        let upstream = || self.upstream.clone().unwrap_or_else(|| "none".into());
        let (result, _) = describe(verdict);
        metrics::counter!("tidegate_attempts_total", "upstream" => upstream(), "result" => result)
            .increment(1);
        let Some(took) = self.took else { return };
        metrics::histogram!("tidegate_upstream_seconds", "upstream" => upstream()).record(took.as_secs_f64());
        let status = status_class(self.status);
        metrics::counter!("tidegate_responses_total", "upstream" => upstream(), "status" => status)
            .increment(1);
    }
}

/// The class of a status; 429 is a class of its own, because it says that a limit was missed.
const fn status_class(status: Option<u16>) -> &'static str {
    match status {
        None => "none",
        Some(429) => "429",
        Some(200..300) => "2xx",
        Some(300..400) => "3xx",
        Some(400..500) => "4xx",
        Some(500..600) => "5xx",
        Some(_) => "other",
    }
}

impl Owner {
    /// The name that attempts of an operation are counted under: the provider of its alternative,
    /// the upstream whose limits it charges, or else its kind.
    pub(crate) fn upstream_label(&self, seq: Seq, alternative: Option<&str>) -> Option<Arc<str>> {
        if let Some(alternative) = alternative {
            return Some(LimitName::parse(alternative).upstream().into());
        }
        match self.model.charged_limits(seq).next() {
            Some(limit) if !limit.contains('/') => Some(Arc::clone(limit)),
            Some(limit) => Some(LimitName::parse(limit).upstream().into()),
            None => self.model.kind(seq).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_few_classes() {
        let classes: std::collections::BTreeSet<_> =
            (0..=u16::MAX).map(Some).chain([None]).map(status_class).collect();
        assert_eq!(Vec::from_iter(classes), ["2xx", "3xx", "429", "4xx", "5xx", "none", "other"]);
        assert_eq!((status_class(Some(428)), status_class(Some(429))), ("4xx", "429"));
    }
}
