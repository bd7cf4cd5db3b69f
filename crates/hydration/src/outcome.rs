//! What a caller gets: the entity, that there is none, that it comes later, or why not.

use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_bus::BusError;
use tidegate_core::hydration::{Absence, FlightBound, FlightFailure, HydrationMode};

use crate::copies::{CopyError, EntityCopy};

/// The outcome of a hydration.
#[derive(Clone, Debug, PartialEq)]
pub enum Hydration {
    /// The entity.
    Found(HydratedEntity),
    /// There is none, as its owner said a moment ago or within the negative cache's time.
    NotFound(Absence),
    /// It is not known whether there is one, and the caller continues without (`degrade` only).
    Unknown(MissReason),
    /// The work is resumed later ([`get_or_defer`](crate::Hydrator::get_or_defer) only).
    Deferred,
}

/// An entity, and how it was come by.
#[derive(Clone, Debug, PartialEq)]
pub struct HydratedEntity {
    /// The local copy.
    pub copy: Arc<EntityCopy>,
    /// What the caller wanted.
    pub mode: HydrationMode,
    /// Whether the copy is older than the caller wanted, or has less (`degrade` only).
    pub is_stale: bool,
}

impl HydratedEntity {
    /// The fields that the caller wanted, as far as they are there.
    #[must_use]
    pub fn data(&self) -> Map<String, Value> {
        self.copy.select(&self.mode)
    }

    /// One field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.copy.data.get(name)
    }
}

/// Why there is no answer. Never "not found".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissReason {
    /// The source did not answer in time, or did not within this window.
    #[error("the source did not answer in time")]
    TimedOut,
    /// No one receives questions about this type.
    #[error("no source answers for this type")]
    SourceAbsent,
    /// The question could not be published.
    #[error("the bus failed")]
    BusFailed,
    /// The source received the question and could not look.
    #[error("the source failed")]
    SourceFailed,
    /// A bound is reached; nothing was asked.
    #[error("too much is asked for at once: {}", describe(*.0))]
    Refused(FlightBound),
}

const fn describe(bound: FlightBound) -> &'static str {
    match bound {
        FlightBound::Flights => "too many entities are in flight",
        FlightBound::Waiters => "too many callers wait",
        FlightBound::WaitersOfEntity => "too many callers wait for this entity",
        FlightBound::Deferred => "too much work is deferred",
        FlightBound::DeferredOfEntity => "too much work is deferred for this entity",
        FlightBound::QuestionRate => "the tenant asks too many questions",
        FlightBound::Closed => "the hydrator is closed",
    }
}

impl From<FlightFailure> for MissReason {
    fn from(failure: FlightFailure) -> Self {
        match failure {
            FlightFailure::TimedOut => Self::TimedOut,
            FlightFailure::SourceAbsent => Self::SourceAbsent,
            FlightFailure::BusFailed => Self::BusFailed,
            FlightFailure::SourceFailed => Self::SourceFailed,
        }
    }
}

/// Why a hydration failed.
#[derive(Debug, thiserror::Error)]
pub enum HydrationError {
    /// There is no answer now; a later try may have one.
    #[error("the entity is not available: {0}")]
    Unavailable(MissReason),
    /// The module owns entities of this type: it looks into its own database.
    #[error("this module owns entities of type {0:?}")]
    Owned(String),
    /// The local copy could not be read.
    #[error("the local copy failed: {0}")]
    Copies(#[source] CopyError),
    /// The bus failed while the hydrator or the source was starting.
    #[error("the bus failed: {0}")]
    Bus(#[from] BusError),
    /// The hydrator was closed.
    #[error("the hydrator is closed")]
    Closed,
}

impl HydrationError {
    /// Whether a later try may succeed.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Copies(_) | Self::Bus(_))
    }
}
