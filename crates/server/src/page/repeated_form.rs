//! Forms that arrive twice, as with a double click: the action is carried out once, and both get
//! the response of the first. It knows the forms of this process, for a few seconds.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::error::Result;

/// For how long the same form is taken for a repeat. Later it is an action of its own.
const REPEAT_WITHIN: Duration = Duration::from_secs(5);
/// The most forms that are remembered.
const FORMS_MAX: usize = 256;

/// The fingerprint of a form, with the token of its confirm step.
pub(super) type FormFingerprint = [u8; 32];
/// Where a form leads once its action is done, or why it was refused. A form that is shown again
/// has another token.
pub(super) type FormOutcome = Arc<OnceCell<Result<String>>>;

/// The forms that arrived lately.
#[derive(Debug, Default)]
pub(crate) struct RecentForms(Mutex<VecDeque<(Instant, FormFingerprint, FormOutcome)>>);

impl RecentForms {
    /// The outcome that this form shares with its repeats.
    pub(super) fn outcome_of(&self, form: &FormFingerprint) -> FormOutcome {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        recent.retain(|(at, ..)| now.duration_since(*at) < REPEAT_WITHIN);
        if let Some((_, _, outcome)) = recent.iter().find(|(_, known, _)| known == form) {
            return Arc::clone(outcome);
        }
        if recent.len() == FORMS_MAX {
            recent.pop_front();
        }
        let outcome = FormOutcome::default();
        recent.push_back((now, *form, Arc::clone(&outcome)));
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_form_is_a_repeat_for_a_while() {
        let forms = RecentForms::default();
        let first = forms.outcome_of(&[1; 32]);
        assert!(Arc::ptr_eq(&first, &forms.outcome_of(&[1; 32])));
        assert!(!Arc::ptr_eq(&first, &forms.outcome_of(&[2; 32])));
        tokio::time::advance(REPEAT_WITHIN).await;
        assert!(!Arc::ptr_eq(&first, &forms.outcome_of(&[1; 32])));
    }

    #[tokio::test]
    async fn few_forms_are_remembered() {
        let forms = RecentForms::default();
        for number in 0..=FORMS_MAX {
            let mut form = [0; 32];
            form[..8].copy_from_slice(&number.to_le_bytes());
            forms.outcome_of(&form);
        }
        assert_eq!(forms.0.lock().unwrap().len(), FORMS_MAX);
    }
}
