//! Where events are published: questions on one subject for each tenant and type, answers on
//! another. Ids are in no subject; tenants and types cannot break out of their token.

use tidegate_bus::{BusError, FilterToken, Subject, SubjectFilter};
use tidegate_core::hydration::EntityKey;

use crate::event::EntityEvent;

const FAMILY: [&str; 2] = ["tidegate", "entities"];
const QUESTIONS: &str = "questions";
const ANSWERS: &str = "answers";

/// The subject that an event is published on.
pub(crate) fn subject_of(event: &EntityEvent) -> Result<Subject, BusError> {
    match event {
        EntityEvent::Unknown(_) => subject(QUESTIONS, event.key()),
        EntityEvent::Updated(_) | EntityEvent::NotFound(_) => subject(ANSWERS, event.key()),
    }
}

fn subject(kind: &str, key: &EntityKey) -> Result<Subject, BusError> {
    Subject::new([FAMILY[0], FAMILY[1], kind, key.tenant(), key.entity_type()])
}

/// All answers, or those about one type.
pub(crate) fn answers(entity_type: Option<&str>) -> Result<SubjectFilter, BusError> {
    filter(ANSWERS, entity_type)
}

/// All questions about one type.
pub(crate) fn questions(entity_type: &str) -> Result<SubjectFilter, BusError> {
    filter(QUESTIONS, Some(entity_type))
}

fn filter(kind: &str, entity_type: Option<&str>) -> Result<SubjectFilter, BusError> {
    let entity_type = entity_type.map_or(FilterToken::Any, FilterToken::Exact);
    SubjectFilter::new([FAMILY[0].into(), FAMILY[1].into(), kind.into(), FilterToken::Any, entity_type])
}
