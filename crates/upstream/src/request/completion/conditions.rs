//! The values by which a job has ended, in the service's own JSON: the response to a submission or
//! a poll, or the body of a callback.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::json_pointer;

/// Most conditions, and most values of each.
const CONDITIONS_MAX: usize = 16;

/// Values by JSON pointer: all pointers must have one of their values.
pub type Conditions = BTreeMap<String, Vec<Value>>;

/// By which values a job has succeeded, and by which it has failed.
#[derive(Clone, Copy, Debug)]
pub struct EndConditions<'a> {
    /// The values of success.
    pub done: &'a Conditions,
    /// The values of failure.
    pub failed: &'a Conditions,
}

impl EndConditions<'_> {
    /// Whether this JSON says that the job succeeded (`true`) or failed (`false`); `None` while it
    /// is not finished.
    #[must_use]
    pub fn verdict(&self, json: &str) -> Option<bool> {
        let holds = |conditions: &Conditions| {
            let has = |(pointer, values): (&String, &Vec<Value>)| {
                let found = json_pointer::get(json, pointer);
                found
                    .and_then(|found| serde_json::from_str(found).ok())
                    .is_some_and(|it| values.contains(&it))
            };
            !conditions.is_empty() && conditions.iter().all(has)
        };
        if holds(self.done) {
            return Some(true);
        }
        holds(self.failed).then_some(false)
    }

    /// Checks the bounds, and that there is a value of success.
    ///
    /// # Errors
    /// The name of the field, and a message.
    pub(super) fn validate(&self) -> Result<(), (&'static str, String)> {
        for (field, conditions) in [("done", self.done), ("failed", self.failed)] {
            let is_small = conditions.len() <= CONDITIONS_MAX
                && conditions.values().all(|values| (1..=CONDITIONS_MAX).contains(&values.len()));
            if !is_small || conditions.keys().any(|pointer| !pointer.starts_with('/')) {
                let message = format!(
                    "It must list 1 to {CONDITIONS_MAX} values for each of up to {CONDITIONS_MAX} pointers, as in {{\"/status\":[\"succeeded\"]}}."
                );
                return Err((field, message));
            }
        }
        if self.done.is_empty() {
            return Err(("done", "It must say by which values the job has succeeded.".to_owned()));
        }
        Ok(())
    }
}
