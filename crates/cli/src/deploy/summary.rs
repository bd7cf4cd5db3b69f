//! The summary at the end of a deployment, the same for local and remote ones.

use tidegate_discord::deploy::{DeployReport, DeployRequest};

use crate::output::{Output, pluralize};

/// The hint when a step failed.
pub(super) const AGAIN: &str = "The journal has all completed steps: run the same command again to resume.";
/// The hint when the guild and the template conflict.
pub(super) const CONFLICTS: &str =
    "Nothing changes until the conflict is resolved. Resolve it in Discord and run it again.";

/// The hint when the guild is not the one that was planned for.
pub(super) const PLAN_AGAIN: &str = "Plan again, look at what is different, and apply that plan.";

/// Returns a hint for each cause of failure.
pub(super) fn failure_hints<'a>(causes: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'static str> {
    let hint = |cause: &str| match cause {
        "forbidden" => "Grant the bot what it lacks, then run the same command again.",
        "validation" => "Change the template as the message says, then run it again.",
        "not_kept" => {
            "What a server accepts and does not keep (not_kept), it will not keep the next time: do without it."
        }
        "not_found" => {
            "What the server does not have (not_found), a route or an object, has to be there first."
        }
        _ => AGAIN,
    };
    causes.map(hint).collect::<std::collections::BTreeSet<_>>().into_iter()
}

/// Prints what was done.
pub(super) fn print_summary(wanted: &DeployRequest, report: &DeployReport, output: &Output) {
    if output.json {
        return output.print_json(&serde_json::to_value(report).unwrap_or_default());
    }
    let counts = [
        (report.created, "created"),
        (report.updated, "updated"),
        (report.moved, "put in order"),
        (report.found, "found after a lost response"),
        (report.removed, "removed"),
        (report.skipped, if report.skipped == 1 { "as it should be" } else { "as they should be" }),
    ];
    let counts: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    output.print_data(&format!("Guild {} is as the template says: {}.", wanted.guild, counts.join(", ")));
    if report.leftovers > 0 && !wanted.prune {
        let (are, them) = if report.leftovers == 1 { ("is", "it") } else { ("are", "them") };
        let objects = pluralize(report.leftovers, "managed object", "managed objects");
        output.print_status(&format!("{objects} {are} not in the template; --prune removes {them}."));
    }
    output.print_status(&format!("deployment {}", report.deployment));
}
