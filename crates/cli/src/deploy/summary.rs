//! The summary at the end of a deployment, the same for local and remote ones.

use tidegate_discord::deploy::{DeployReport, DeployRequest};

use crate::output::Output;

/// The hint when a step failed.
pub(super) const AGAIN: &str = "The journal has all completed steps: run the same command again to resume.";
/// The hint when the guild and the template conflict.
pub(super) const CONFLICTS: &str =
    "Nothing changes until the conflict is resolved. Resolve it in Discord and run it again.";

/// Prints what was done.
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
