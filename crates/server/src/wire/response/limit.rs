//! Limits as JSON: level, rate, and the source of the figures.

use serde::{Serialize, Serializer};
use tidegate_core::OperationId;
use tidegate_core::fact::{LimitClosure, LimitShape, LimitSource};
use tidegate_core::id::Partition;
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;

use crate::limit_history::LimitHour;
use crate::wire::time::Timestamp;

#[derive(Serialize)]
pub(crate) struct LimitOut<'a> {
    name: &'a str,
    kind: &'static str,
    capacity: Option<TokenAmount>,
    refill_per_s: Option<TokenAmount>,
    at_once: Option<u32>,
    period_ms: Option<u64>,
    level: Option<TokenAmount>,
    in_flight: u32,
    waiting: usize,
    source: &'static str,
    closed_until: Option<Timestamp>,
    reset_at: Option<Timestamp>,
    failing_since: Option<Timestamp>,
    last_fault: Option<LimitFaultOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hour: Option<Option<LimitHour>>,
}

/// The call that closed a limit last.
#[derive(Serialize)]
struct LimitFaultOut<'a> {
    at: Timestamp,
    operation: String,
    class: Option<&'static str>,
    message: Option<&'a str>,
}

impl<'a> LimitFaultOut<'a> {
    fn new(closure: &'a LimitClosure, partition: Partition) -> Self {
        Self {
            at: Timestamp(closure.at),
            operation: OperationId::new(closure.accepted_at, partition, closure.seq).to_string(),
            class: closure.fault.as_ref().map(|fault| fault.class.as_str()),
            message: closure.fault.as_ref().map(|fault| &*fault.message),
        }
    }
}

impl<'a> LimitOut<'a> {
    /// Adds its last hour.
    pub(crate) fn with_hour(mut self, hour: Option<LimitHour>) -> Self {
        self.hour = Some(hour);
        self
    }

    pub(crate) fn new(view: &'a LimitView, partition: Partition) -> Self {
        let (mut capacity, mut refill_per_s, mut at_once, mut period_ms) = (None, None, None, None);
        let (kind, level) = match view.shape {
            LimitShape::Drip { capacity: most, refill_per_s: refill, .. } => {
                (capacity, refill_per_s) = (Some(TokenAmount(most)), Some(TokenAmount(refill)));
                ("drip", Some(TokenAmount(view.level)))
            }
            LimitShape::Window { limit, period } => {
                capacity = Some(TokenAmount(limit));
                period_ms = u64::try_from(period.as_millis()).ok();
                ("window", Some(TokenAmount(view.level)))
            }
            LimitShape::Gate => ("gate", None),
            LimitShape::Breaker { .. } => ("breaker", None),
            LimitShape::Cap { at_once: most } => {
                at_once = Some(most);
                ("cap", Some(TokenAmount(view.level.saturating_mul(MICRO))))
            }
        };
        Self {
            name: &view.name,
            kind,
            capacity,
            refill_per_s,
            at_once,
            period_ms,
            level,
            in_flight: view.in_flight,
            waiting: view.waiters(),
            source: source_word(view.source),
            closed_until: view.frozen_until.map(Timestamp),
            reset_at: view.reset_at.map(Timestamp),
            failing_since: view.failing_since().map(Timestamp),
            last_fault: view.closure.as_ref().map(|closure| LimitFaultOut::new(closure, partition)),
            hour: None,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct LimitsOut<'a> {
    pub limits: Vec<LimitOut<'a>>,
    pub next_cursor: Option<String>,
}

pub(crate) const fn source_word(source: LimitSource) -> &'static str {
    match source {
        LimitSource::Config => "config",
        LimitSource::Operator => "operator",
        LimitSource::Learned => "learned",
    }
}

/// Micro-tokens, written as tokens: whole ones without a decimal point.
#[derive(Clone, Copy)]
pub(crate) struct TokenAmount(pub u64);

impl Serialize for TokenAmount {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.is_multiple_of(MICRO) {
            to.serialize_u64(self.0 / MICRO)
        } else {
            to.serialize_f64(self.0 as f64 / MICRO as f64)
        }
    }
}

impl std::fmt::Display for TokenAmount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_multiple_of(MICRO) {
            write!(f, "{}", self.0 / MICRO)
        } else {
            write!(f, "{:.1}", self.0 as f64 / MICRO as f64)
        }
    }
}
