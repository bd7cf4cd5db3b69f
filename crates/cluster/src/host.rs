//! What a node does with a partition that is its own. The cluster decides when; the host decides what.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tidegate_core::id::Partition;

/// An answer that comes later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Who answers where a node should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// This very process.
    Here,
    /// Another process, which knows this node's secret.
    Node {
        /// Its name.
        name: String,
        /// What places operations differently there, where that can be told: the end of a sentence.
        differs: Option<String>,
    },
    /// Somebody who does not know this node's secret.
    Refused,
    /// Nobody who is a node; what was found instead, as the end of a sentence.
    Nobody(String),
}

/// Takes partitions on.
pub trait Host: Send + Sync {
    /// Who answers at an address, asked over a line of its own and for a short time only.
    fn call_at(&self, address: String) -> Later<'_, Answered>;

    /// Does what has to be done before this node takes part, or says why that cannot be done; then it is asked again.
    fn prepare(&self) -> Later<'_, Result<(), String>>;

    /// Becomes the owner of a partition and serves it, or says why not; then it is asked again.
    fn take_on(&self, partition: Partition) -> Later<'_, Result<Arc<dyn Tenant>, Declined>>;
}

/// Why a partition was not taken on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declined {
    /// A sentence.
    pub why: String,
    /// Whether what is there cannot be read here: then it is left to the others for a while.
    pub unreadable: bool,
}

/// A partition that this node serves.
pub trait Tenant: Send + Sync {
    /// Finishes what is under way, gives the partition up and resolves when that is done.
    fn hand_over(&self) -> Later<'_, ()>;

    /// Resolves when it is served no more, for whatever reason, with a sentence about it.
    fn ended(&self) -> Later<'_, String>;
}
