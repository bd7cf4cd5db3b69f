//! The part of a filter that is about how operations ended, or why they wait to be tried again. It
//! looks at one operation at a time; which operations are looked at is decided elsewhere.

use std::sync::Arc;

use tidegate_core::{FaultClass, Time};

use crate::view::OperationView;

/// Selects operations by their last fault and by when they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutcomeFilter {
    /// Only operations whose last fault has this text in its message or its class, whatever the
    /// case.
    pub error: Option<Arc<str>>,
    /// Only operations whose last fault is of this class.
    pub fault_class: Option<FaultClass>,
    /// Only operations whose last fault has exactly this message.
    pub fault_message: Option<Arc<str>>,
    /// Only operations with a fault whose call may have taken effect, or has not. One without a
    /// fault is neither.
    pub may_have_happened: Option<bool>,
    /// Only operations that ended at this time or later.
    pub finished_after: Option<Time>,
    /// Only operations that ended before this time.
    pub finished_before: Option<Time>,
}

impl OutcomeFilter {
    /// Whether it selects all operations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn matches(&self, view: &OperationView) -> bool {
        let fault = view.fault.as_ref();
        self.error.as_ref().is_none_or(|text| has_fault_text(view, text))
            && self.fault_class.is_none_or(|class| fault.is_some_and(|fault| fault.class == class))
            && self
                .fault_message
                .as_ref()
                .is_none_or(|message| fault.is_some_and(|fault| fault.message == **message))
            && self
                .may_have_happened
                .is_none_or(|wanted| fault.is_some_and(|fault| fault.may_have_happened == wanted))
            && self.finished_after.is_none_or(|after| view.finished_at.is_some_and(|at| at >= after))
            && self.finished_before.is_none_or(|before| view.finished_at.is_some_and(|at| at < before))
    }
}

/// Whether the last fault of an operation has a text in its message or its class.
fn has_fault_text(view: &OperationView, text: &str) -> bool {
    let Some(fault) = &view.fault else { return false };
    let text = text.to_lowercase();
    fault.message.to_lowercase().contains(&text) || fault.class.as_str().contains(&text)
}
