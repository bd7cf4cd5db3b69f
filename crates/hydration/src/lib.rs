//! Hydration: a module needs an entity that another module owns, and its own copy is missing or
//! stale. It asks the owner over a bus, once, however many callers want the entity, and keeps the
//! answer. Bring your own bus (`tidegate_bus::Bus`), your own place for copies ([`LocalCopies`])
//! and, on the owner's side, your own database ([`EntitySource`]).
//!
//! What is decided when is in `tidegate_core::hydration`.
#![doc = ""]
#![doc = include_str!("../README.md")]

mod clock;
mod copies;
mod counters;
mod event;
mod hydrator;
mod log;
mod outcome;
mod random;
mod schema;
mod source;
mod subjects;

pub use copies::{CopyError, CopyFuture, EntityChange, EntityCopy, LocalCopies, MemoryCopies};
pub use event::{
    DEFAULT_TENANT, EVENT_VERSION, EntityAbsence, EntityEvent, EntityQuestion, EntityUpdate, EventError,
};
pub use hydrator::{FailureMode, GetOptions, Hydrator, HydratorBuilder};
pub use outcome::{HydratedEntity, Hydration, HydrationError, MissReason};
pub use schema::{ASYNC_API, ENTITY_NOT_FOUND_SCHEMA, ENTITY_UNKNOWN_SCHEMA, ENTITY_UPDATED_SCHEMA};
pub use source::{ANSWER_REUSE, EntitySource, SourceAnswer, SourceError, SourceFuture, SourceServer};
pub use tidegate_core::hydration::{
    Absence, AbsenceReason, CopyState, CorrelationId, EntityKey, EntityKeyError, EntityStamp, FlightBound,
    FlightRules, FlightView, HydrationMode, ModeError, WaiterKind, WaiterView,
};
