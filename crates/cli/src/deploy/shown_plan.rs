//! A plan as it is shown: as lines for people, as JSON for scripts. A plan file keeps it, so that
//! `deploy show` prints it again without calling anything.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_discord::deploy::PlanPreview;
use tidegate_discord::plan::LineMark;

use super::summary;
use crate::error::CliError;
use crate::output::Output;

/// A plan, in the form in which a server returns it too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShownPlan {
    pub(super) digest: String,
    plan: Value,
    #[serde(default)]
    estimate: Value,
    /// The plan for people, a line for each change.
    #[serde(default)]
    lines: Vec<String>,
    /// How many calls it needs, and how long they take.
    #[serde(default)]
    notes: Vec<String>,
}

impl ShownPlan {
    /// Reads a plan from its JSON.
    pub(super) fn from_json(planned: Value) -> Result<Self, CliError> {
        serde_json::from_value(planned).map_err(|_| CliError::new("The plan cannot be read."))
    }

    pub(super) fn from_preview(planned: &PlanPreview) -> Result<Self, CliError> {
        Self::from_json(planned.to_json())
    }

    /// Returns the number of changes.
    pub(super) fn writes(&self) -> usize {
        self.plan["writes"].as_u64().and_then(|writes| usize::try_from(writes).ok()).unwrap_or(0)
    }

    /// Fails if the plan has conflicts, which an operator has to settle first.
    pub(super) fn check_conflicts(&self) -> Result<(), CliError> {
        if self.plan["conflicts"].as_array().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        Err(CliError::new("The guild and the template do not fit together.").hint(summary::CONFLICTS))
    }

    /// Prints the plan as data.
    pub(super) fn print(&self, output: &Output) {
        if output.json {
            let Self { plan, estimate, digest, .. } = self;
            return output.print_json(&json!({ "plan": plan, "estimate": estimate, "digest": digest }));
        }
        self.lines.iter().for_each(|line| output.print_data(&color_line(line, output)));
        self.notes.iter().for_each(|line| output.print_status(line));
    }

    /// Prints the plan on stderr, before it is applied.
    pub(super) fn print_remarks(&self, output: &Output) {
        for line in self.lines.iter().chain(&self.notes) {
            output.print_remark(&color_line(line, output));
        }
    }
}

/// Returns a line of a plan in the colour of its mark.
pub(super) fn color_line(line: &str, output: &Output) -> String {
    let mark = |mark: LineMark| line.trim_start().starts_with([mark.sign()]);
    let marks = [
        (LineMark::Add, "32"),
        (LineMark::Change, "33"),
        (LineMark::Remove, "31"),
        (LineMark::Conflict, "1;31"),
        (LineMark::Keep, "90"),
    ];
    let code = marks.into_iter().find(|(known, _)| mark(*known)).map(|(_, code)| code);
    code.map_or_else(|| line.to_owned(), |code| output.paint_data(code, line))
}
