//! What a person should know about a shop and is told once: that another version answers than was asked for, and that
//! a call will stop working.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::said::Said;
use crate::version::ApiVersion;

/// What was told already.
#[derive(Debug, Default)]
pub(super) struct Telling {
    fell_forward: AtomicBool,
    deprecated: AtomicBool,
}

impl Telling {
    /// Tells what is new in an answer.
    pub(super) fn tell(&self, upstream: &str, said: &Said, asked: Option<ApiVersion>) {
        if let (Some(answered), Some(asked)) = (said.fell_forward(asked), asked)
            && !self.fell_forward.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                upstream,
                %asked,
                %answered,
                "Shopify no longer has the version that is asked for and answers with another"
            );
        }
        if let Some(reason) = &said.deprecated
            && !self.deprecated.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(upstream, reason, "Shopify says that a call will stop working");
        }
    }
}
