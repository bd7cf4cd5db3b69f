//! The last words of a deployment, the same wherever it was made.

use tidegate_discord::deploy::{DeployReport, DeployRequest};

use crate::output::Output;

/// What to do when something was refused.
pub(super) const AGAIN: &str = "What was done is in the journal: the same command goes on from there.";
/// What to do when the guild and the template do not fit together.
pub(super) const CONFLICTS: &str =
    "Nothing is changed while this stands. Settle it in Discord, and run it again.";

/// Says what was done.
pub(super) fn print_summary(wanted: &DeployRequest, report: &DeployReport, output: &Output) {
    if output.json {
        return output.print_json(&serde_json::to_value(report).unwrap_or_default());
    }
    let counts = [
        (report.created, "created"),
        (report.updated, "updated"),
        (report.moved, "put in order"),
        (report.removed, "removed"),
        (report.skipped, "as they should be"),
    ];
    let counts: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    output.print_data(&format!("Guild {} is as the template says: {}.", wanted.guild, counts.join(", ")));
    if report.leftovers > 0 && !wanted.prune {
        output.print_status(&format!(
            "{} managed objects are not in the template; --prune removes them.",
            report.leftovers
        ));
    }
    output.print_status(&format!("deployment {}", report.deployment));
}
