//! Asks whether a plan is to be applied, and keeps a plan in a file for later.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_discord::deploy::DeployRequest;

use crate::error::CliError;
use crate::output::Output;

/// The only answer that applies a plan.
const YES: &str = "yes";
/// The format of a plan file.
const FORMAT: &str = "tidegate plan 1";

/// A plan in a file: the request, where it was planned, and the digest of the plan.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanFile {
    format: String,
    /// The base URL of the API, for a deployment without a server.
    pub base_url: String,
    /// The digest of the plan.
    pub digest: String,
    /// The template and its guild.
    pub request: DeployRequest,
}

impl PlanFile {
    pub(super) fn new(request: &DeployRequest, base_url: &str, digest: String) -> Self {
        let (format, base_url) = (FORMAT.to_owned(), base_url.to_owned());
        Self { format, base_url, digest, request: request.clone() }
    }

    pub(super) fn write(&self, file: &Path) -> Result<(), CliError> {
        let failed = |error: String| CliError::new(format!("Cannot write {}: {error}.", file.display()));
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.to_string()))?;
        std::fs::write(file, text).map_err(|error| failed(error.to_string()))
    }

    pub(super) fn read(file: &Path) -> Result<Self, CliError> {
        let name = file.display();
        let text = std::fs::read(file)
            .map_err(|error| CliError::usage(format!("The plan {name} cannot be read: {error}.")))?;
        let plan = serde_json::from_slice::<Self>(&text).ok().filter(|plan| plan.format == FORMAT);
        plan.ok_or_else(|| {
            CliError::usage(format!("{name} is not a plan of this version."))
                .hint("make one with `tidegate deploy plan --out FILE`")
        })
    }
}

/// Asks on stderr whether to apply so many changes, and reads the answer from stdin.
pub(super) async fn ask(wanted: &DeployRequest, writes: usize, output: &Output) -> Result<(), CliError> {
    let refused = || {
        CliError::usage("Nothing was applied: no one said yes.").hint(
            "--yes applies without asking; `plan --out FILE` and `apply FILE --yes` apply what was looked at",
        )
    };
    if output.json {
        return Err(refused());
    }
    let (changes, them) = match writes {
        1 => ("this change".to_owned(), "it"),
        writes => (format!("these {writes} changes"), "them"),
    };
    let question = format!("Apply {changes} to guild {}? Only \"{YES}\" applies {them}: ", wanted.guild);
    output.print_prompt(&question);
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    match answer.await {
        Ok(Ok(line)) if line.trim() == YES => Ok(()),
        Ok(Ok(line)) if line.is_empty() => {
            output.print_status("");
            Err(refused())
        }
        Ok(Ok(_)) => Err(CliError::new("Nothing was applied.")),
        _ => Err(refused()),
    }
}
