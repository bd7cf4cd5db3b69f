//! What is logged, with the fields that operators search for, on the side of the consumer and on
//! that of the source. Never the data.

use tidegate_core::hydration::{CorrelationId, EntityKey, PublishOutcome, Question};
use tidegate_core::time::millis_up;

use crate::event::{EntityEvent, EntityQuestion};
use crate::hydrator::Read;
use crate::outcome::{Hydration, HydrationError};

/// The word for an outcome.
pub(crate) fn result_of(outcome: &Result<Hydration, HydrationError>) -> &'static str {
    match outcome {
        Ok(Hydration::NotFound(_)) => "not-found",
        Ok(Hydration::Found(_)) => "updated",
        Ok(Hydration::Unknown(_) | Hydration::Deferred) | Err(_) => "timeout",
    }
}

/// A caller that the local copy did not satisfy has its outcome.
pub(crate) fn caller(read: &Read<'_>, result: &str, negative_cache_hit: bool) {
    tracing::debug!(
        target: "tidegate::hydration",
        entity_type = read.key.entity_type(),
        entity_id = read.key.id(),
        hydration_mode = read.options.mode.name(),
        requester_module = read.module(),
        correlation_id = %read.correlation_id,
        wait_timeout_ms = millis_up(read.wait),
        negative_cache_hit,
        result,
        "hydrated"
    );
}

/// A question left.
pub(crate) fn question(question: &Question, module: &str, outcome: PublishOutcome) {
    tracing::info!(
        target: "tidegate::hydration",
        entity_type = question.key.entity_type(),
        entity_id = question.key.id(),
        hydration_mode = question.mode.name(),
        requester_module = module,
        correlation_id = %question.correlation_id,
        outcome = ?outcome,
        "asked"
    );
}

/// An answer was stored and woke those who waited.
pub(crate) fn answer(key: &EntityKey, id: Option<&CorrelationId>, module: &str, result: &str, woken: usize) {
    tracing::info!(
        target: "tidegate::hydration",
        entity_type = key.entity_type(),
        entity_id = key.id(),
        requester_module = module,
        correlation_id = id.map(CorrelationId::as_str),
        result,
        woken,
        "answered"
    );
}

/// A source answered.
pub(crate) fn source(question: &EntityQuestion, module: &str, answer: &EntityEvent) {
    let result = if matches!(answer, EntityEvent::NotFound(_)) { "not-found" } else { "updated" };
    tracing::info!(
        target: "tidegate::hydration",
        entity_type = question.key.entity_type(),
        entity_id = question.key.id(),
        hydration_mode = question.mode.name(),
        requester_module = question.requester_module,
        source_module = module,
        correlation_id = %question.correlation_id,
        result,
        "answered a question"
    );
}
