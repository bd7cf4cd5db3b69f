//! The three events, and the envelope that each travels in. Whatever is read is checked here, so
//! code behind this door may rely on every bound.

mod members;
mod wire;

use bytes::Bytes;
use serde_json::{Map, Value};
use tidegate_bus::{Bus, BusError, Delivery};
use tidegate_core::hydration::{AbsenceReason, CorrelationId, EntityKey, EntityStamp, HydrationMode};

use crate::subjects;

/// The version of the envelope and of the payloads.
pub const EVENT_VERSION: u64 = 1;
/// The tenant of an event that names none.
pub const DEFAULT_TENANT: &str = "default";

/// The names of the events.
pub(crate) const UNKNOWN: &str = "entity/unknown";
pub(crate) const UPDATED: &str = "entity/updated";
pub(crate) const NOT_FOUND: &str = "entity/not-found";

/// One of the three events.
#[derive(Clone, Debug, PartialEq)]
pub enum EntityEvent {
    /// `entity/unknown`: a module lacks an entity.
    Unknown(EntityQuestion),
    /// `entity/updated`: the answer, or a change that no one asked about.
    Updated(EntityUpdate),
    /// `entity/not-found`: there is no such entity, or not for this module.
    NotFound(EntityAbsence),
}

/// The question of a module that lacks an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityQuestion {
    /// The entity.
    pub key: EntityKey,
    /// What the answer is to repeat.
    pub correlation_id: CorrelationId,
    /// Who asks.
    pub requester_module: String,
    /// How much is asked for.
    pub mode: HydrationMode,
}

/// The state of an entity, from its owner.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityUpdate {
    /// The entity.
    pub key: EntityKey,
    /// The correlation id of the question, if this is an answer.
    pub correlation_id: Option<CorrelationId>,
    /// Who answers.
    pub source_module: String,
    /// The fields.
    pub data: Map<String, Value>,
    /// Version and time, as far as the source says.
    pub stamp: EntityStamp,
    /// How much this is of what the source gives away, if it says so.
    pub mode: Option<HydrationMode>,
}

/// The statement of an owner that there is no such entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityAbsence {
    /// The entity.
    pub key: EntityKey,
    /// The correlation id of the question, if this is an answer.
    pub correlation_id: Option<CorrelationId>,
    /// Who answers.
    pub source_module: String,
    /// Why it is not found.
    pub reason: AbsenceReason,
    /// Version and time, as far as the source says.
    pub stamp: EntityStamp,
}

/// Why an event is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// It is not a JSON object.
    #[error("{0}")]
    Malformed(String),
    /// A member is missing, has another type, or is out of bounds.
    #[error("{problem}")]
    Member {
        /// The member, such as `payload.entity_id`.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Its version is not known here.
    #[error("the event has version {0}; this program knows {EVENT_VERSION}")]
    Version(u64),
    /// There is no such event.
    #[error("there is no event {0:?}")]
    Event(String),
}

impl EventError {
    /// The member that is wrong, if it is one.
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Malformed(_) => None,
            Self::Member { field, .. } => Some(field),
            Self::Version(_) => Some("schema_version"),
            Self::Event(_) => Some("event"),
        }
    }
}

fn first(mut errors: Vec<EventError>) -> EventError {
    errors.swap_remove(0)
}

impl EntityEvent {
    /// Reads an envelope and checks it.
    ///
    /// # Errors
    /// When it is malformed, out of bounds, or of an unknown event or version.
    pub fn decode(bytes: &[u8]) -> Result<Self, EventError> {
        Self::decode_all(bytes).map_err(first)
    }

    /// Reads an envelope and checks it.
    ///
    /// # Errors
    /// Everything that is wrong with it; never empty.
    pub fn decode_all(bytes: &[u8]) -> Result<Self, Vec<EventError>> {
        wire::decode(bytes, DEFAULT_TENANT)
    }

    /// Reads the answer to a question, given directly and not over a bus: an envelope that names no
    /// tenant is about that of the question.
    ///
    /// # Errors
    /// As [`EntityEvent::decode`].
    pub fn decode_answer(bytes: &[u8], question: &EntityQuestion) -> Result<Self, EventError> {
        wire::decode(bytes, question.key.tenant()).map_err(first)
    }

    /// Writes the envelope.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        wire::encode(self)
    }

    /// Publishes it where it belongs: a question where sources listen, an answer where consumers
    /// do.
    ///
    /// # Errors
    /// The bus's error.
    pub async fn publish(&self, bus: &dyn Bus) -> Result<Delivery, BusError> {
        bus.publish(&subjects::subject_of(self)?, self.encode()).await
    }

    /// The entity.
    #[must_use]
    pub const fn key(&self) -> &EntityKey {
        match self {
            Self::Unknown(question) => &question.key,
            Self::Updated(update) => &update.key,
            Self::NotFound(absence) => &absence.key,
        }
    }

    /// What ties it to a question.
    #[must_use]
    pub const fn correlation_id(&self) -> Option<&CorrelationId> {
        match self {
            Self::Unknown(question) => Some(&question.correlation_id),
            Self::Updated(update) => update.correlation_id.as_ref(),
            Self::NotFound(absence) => absence.correlation_id.as_ref(),
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unknown(_) => UNKNOWN,
            Self::Updated(_) => UPDATED,
            Self::NotFound(_) => NOT_FOUND,
        }
    }
}
