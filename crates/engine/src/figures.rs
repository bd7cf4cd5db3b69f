//! The metrics of attempts: how they ended, what the upstream answered, how long it took. Their
//! labels are names in the configuration, so there are only so many; each series is looked up once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Histogram};
use rustc_hash::FxHashMap;
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
}

/// The series that attempts are counted in, by upstream.
#[derive(Default)]
pub(crate) struct AttemptSeries(FxHashMap<Arc<str>, UpstreamSeries>);

/// The series of one upstream, each from its first count on.
#[derive(Default)]
struct UpstreamSeries {
    attempts: Vec<(&'static str, Counter)>,
    responses: Vec<(&'static str, Counter)>,
    seconds: Option<Histogram>,
}

impl fmt::Debug for AttemptSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl AttemptSeries {
    /// Counts an attempt, once its settlement is durable.
    pub(crate) fn count(&mut self, figures: &AttemptFigures, verdict: &Verdict) {
        let name = figures.upstream.as_ref();
        let known = name.and_then(|name| self.0.get_mut(name));
        let (result, _) = describe(verdict);
        if let Some(series) = known {
            // The key of the map is the label.
            return series.count(name.map_or("", AsRef::as_ref), figures, result);
        }
        let name: Arc<str> = name.cloned().unwrap_or_else(|| "none".into());
        let series = self.0.entry(Arc::clone(&name)).or_default();
        series.count(&name, figures, result);
    }
}

impl UpstreamSeries {
    fn count(&mut self, upstream: &str, figures: &AttemptFigures, result: &'static str) {
        let attempts = |result| metrics::counter!("tidegate_attempts_total", "upstream" => upstream.to_owned(), "result" => result);
        counter(&mut self.attempts, result, attempts).increment(1);
        let Some(took) = figures.took else { return };
        let seconds = self.seconds.get_or_insert_with(
            || metrics::histogram!("tidegate_upstream_seconds", "upstream" => upstream.to_owned()),
        );
        seconds.record(took.as_secs_f64());
        let responses = |status| metrics::counter!("tidegate_responses_total", "upstream" => upstream.to_owned(), "status" => status);
        counter(&mut self.responses, status_class(figures.status), responses).increment(1);
    }
}

/// The counter of a label, of which there are few.
fn counter<'a>(
    known: &'a mut Vec<(&'static str, Counter)>,
    label: &'static str,
    create: impl FnOnce(&'static str) -> Counter,
) -> &'a Counter {
    let place = known.iter().position(|(known, _)| *known == label).unwrap_or_else(|| {
        known.push((label, create(label)));
        known.len() - 1
    });
    &known[place].1
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
