//! A plan that was made and not applied.

use serde_json::{Value, json};

use crate::guild::Guild;
use crate::plan::{KnownLimits, Plan};

/// A plan with the state it was made from; nothing has been applied.
#[derive(Debug)]
#[non_exhaustive]
pub struct PlanPreview {
    /// The plan.
    pub plan: Plan,
    /// The guild that the plan was made from.
    pub guild: Guild,
    /// The limits known so far.
    pub limits: KnownLimits,
}

impl PlanPreview {
    /// Converts it to JSON: the plan and its estimate for scripts, and both line by line for
    /// people.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let plan = &self.plan;
        let estimate = plan.estimate(&self.limits);
        let lines: Vec<String> = plan.lines().iter().map(ToString::to_string).collect();
        let text = if plan.is_empty() { String::new() } else { estimate.to_string() };
        let notes: Vec<&str> = text.lines().collect();
        json!({
            "plan": plan.to_json(), "estimate": estimate.to_json(), "lines": lines, "notes": notes,
            "digest": plan.digest(),
        })
    }
}
