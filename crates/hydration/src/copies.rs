//! The local copy as a port: what a module keeps of other modules' entities. A module implements it
//! on its own database; [`MemoryCopies`] keeps copies in memory. Which of two states wins is
//! decided by [`EntityChange::apply`], never by an implementation.

mod change;
mod memory;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Map, Value};
use tidegate_core::Time;
use tidegate_core::hydration::{CopyState, EntityKey, HydrationMode};

pub use change::EntityChange;
pub use memory::MemoryCopies;

/// Why a local copy could not be read or written, in the words of its implementation.
pub type CopyError = Box<dyn std::error::Error + Send + Sync>;

/// The return type of the methods of the port, so that it can be a trait object.
pub type CopyFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, CopyError>> + Send + 'a>>;

/// Where a module keeps its copies.
pub trait LocalCopies: Send + Sync + 'static {
    /// Reads what is stored, tombstones included.
    fn load<'a>(&'a self, key: &'a EntityKey) -> CopyFuture<'a, Option<Arc<EntityCopy>>>;

    /// Applies a change in one atomic step: read what is stored, [`EntityChange::apply`], write the
    /// result. Returns what is stored then. Changes of one key arrive one after the other from one
    /// hydrator; if several processes share the copies, use a transaction.
    fn update<'a>(
        &'a self,
        key: &'a EntityKey,
        change: &'a EntityChange,
    ) -> CopyFuture<'a, Option<Arc<EntityCopy>>>;
}

/// A copy of an entity, or the tombstone of one.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityCopy {
    /// The fields. There may be more than are current; see [`CopyState::fresh`].
    pub data: Map<String, Value>,
    /// What is current of it, since when, and whether it was deleted.
    pub state: CopyState,
    /// Who it is from.
    pub source_module: String,
    /// When it was stored or confirmed.
    pub stored_at: Time,
}

impl EntityCopy {
    /// Whether this satisfies a reader that wants `mode`, of at least `since`.
    #[must_use]
    pub fn satisfies(&self, mode: &HydrationMode, since: Option<Time>) -> bool {
        let is_new_enough = since.is_none_or(|since| self.stored_at >= since);
        is_new_enough && self.state.fresh.as_ref().is_some_and(|fresh| fresh.covers(mode))
    }

    /// Whether there is anything to go on with, current or not.
    #[must_use]
    pub const fn is_present(&self) -> bool {
        !self.state.is_deleted
    }

    /// The fields that a mode asks for.
    #[must_use]
    pub fn select(&self, mode: &HydrationMode) -> Map<String, Value> {
        select(&self.data, mode)
    }
}

/// The fields that a mode asks for.
pub(crate) fn select(data: &Map<String, Value>, mode: &HydrationMode) -> Map<String, Value> {
    match mode {
        HydrationMode::Existence => Map::new(),
        HydrationMode::Full => data.clone(),
        HydrationMode::Partial(fields) => {
            let one =
                |field: &String| data.get_key_value(field).map(|(name, value)| (name.clone(), value.clone()));
            fields.iter().filter_map(one).collect()
        }
    }
}
