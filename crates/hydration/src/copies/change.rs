//! What happens to a local copy, and how it is applied: the decision is `core`'s, the data is here.

use serde_json::{Map, Value};
use tidegate_core::Time;
use tidegate_core::hydration::copy::{place_absence, place_stale, place_update};
use tidegate_core::hydration::{AbsenceReason, CopyUpdate, EntityStamp, HydrationMode};

use super::EntityCopy;

/// A change of a local copy.
#[derive(Clone, Debug, PartialEq)]
pub enum EntityChange {
    /// Its owner says how it is.
    Updated {
        /// The fields.
        data: Map<String, Value>,
        /// How much that is.
        mode: HydrationMode,
        /// Since when.
        stamp: EntityStamp,
        /// Who says so.
        source_module: String,
        /// When it arrived.
        at: Time,
    },
    /// Its owner says that there is none.
    NotFound {
        /// Why.
        reason: AbsenceReason,
        /// Since when.
        stamp: EntityStamp,
        /// Whether this answers a question that was asked after the copy was stored.
        is_asked: bool,
        /// Who says so.
        source_module: String,
        /// When it arrived.
        at: Time,
    },
    /// It is no longer known to be current.
    Stale,
}

impl EntityChange {
    /// Applies the change to what is stored; `None` removes it. An older state changes nothing.
    #[must_use]
    pub fn apply(&self, stored: Option<&EntityCopy>) -> Option<EntityCopy> {
        let state = stored.map(|copy| &copy.state);
        let placement = match self {
            Self::Updated { mode, stamp, .. } => place_update(state, mode, *stamp),
            Self::NotFound { reason, stamp, is_asked, .. } => {
                let is_deleted = *reason == AbsenceReason::DeletedOrNeverExisted;
                place_absence(state, *stamp, *is_asked, is_deleted)
            }
            Self::Stale => place_stale(state),
        };
        match placement {
            CopyUpdate::Ignore => stored.cloned(),
            CopyUpdate::Remove => None,
            CopyUpdate::Replace(state) => Some(EntityCopy {
                data: self.data().cloned().unwrap_or_default(),
                state,
                source_module: self.source_module().to_owned(),
                stored_at: self.at().unwrap_or_default(),
            }),
            CopyUpdate::Overlay(state) => stored.cloned().map(|mut copy| {
                copy.data.extend(self.data().cloned().unwrap_or_default());
                copy.state = state;
                copy.stored_at = self.at().unwrap_or(copy.stored_at);
                copy
            }),
        }
    }

    const fn data(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Updated { data, .. } => Some(data),
            Self::NotFound { .. } | Self::Stale => None,
        }
    }

    fn source_module(&self) -> &str {
        match self {
            Self::Updated { source_module, .. } | Self::NotFound { source_module, .. } => source_module,
            Self::Stale => "",
        }
    }

    const fn at(&self) -> Option<Time> {
        match self {
            Self::Updated { at, .. } | Self::NotFound { at, .. } => Some(*at),
            Self::Stale => None,
        }
    }
}
