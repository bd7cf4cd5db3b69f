//! Asks whether a plan is to be applied, and keeps a plan in a file for later.

use std::io::IsTerminal;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_discord::deploy::DeployRequest;

use super::shown_plan::ShownPlan;
use super::{DEFAULT_STORE, TargetArgs};
use crate::error::CliError;
use crate::output::Output;

/// The only answer that applies a plan.
const YES: &str = "yes";
/// The format of a plan file.
const FORMAT: &str = "tidegate plan 1";

/// A plan in a file: the request, where it was planned, and the plan as it was shown.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanFile {
    format: String,
    /// The base URL of the API, for a deployment without a server.
    pub base_url: String,
    /// The server that planned it, and its upstream.
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    upstream: Option<String>,
    /// The store it was planned with, if no server did. Neither is kept if it has a password.
    #[serde(default)]
    store: Option<String>,
    /// The digest of the plan.
    pub digest: String,
    /// The template and its guild.
    pub request: DeployRequest,
    /// The plan as it was shown. Files of earlier versions do not have it.
    #[serde(default)]
    pub shown: Option<ShownPlan>,
}

impl PlanFile {
    pub(super) fn new(request: &DeployRequest, target: &TargetArgs, shown: ShownPlan) -> Self {
        let TargetArgs { base_url, upstream, store: place } = target;
        let is_known = !place.is_secret();
        Self {
            format: FORMAT.to_owned(),
            base_url: base_url.clone(),
            server: place.server.clone().filter(|_| is_known),
            upstream: place.server.as_ref().map(|_| upstream.clone()),
            store: (is_known && place.server.is_none()).then(|| place.store.clone()),
            digest: shown.digest.clone(),
            request: request.clone(),
            shown: Some(shown),
        }
    }

    /// Returns where to apply it: where it was made. Another place that is given has another
    /// journal, and is refused.
    pub(super) fn target(&self, given: &TargetArgs) -> Result<TargetArgs, CliError> {
        let mut target = TargetArgs { base_url: self.base_url.clone(), ..given.clone() };
        let made = (self.server.as_deref(), self.store.as_deref());
        let asked = (given.store.server.as_deref(), Some(given.store.store.as_str()));
        let is_default = asked == (None, Some(DEFAULT_STORE));
        match made {
            // It was made at a place that is not written down.
            (None, None) => return Ok(target),
            (Some(_), _) if is_default => target.store.server = self.server.clone(),
            (None, Some(store)) if is_default => target.store.store = store.to_owned(),
            (Some(server), _) if asked.0 == Some(server) => {}
            (None, store) if asked == (None, store) => {}
            (server, store) => {
                let place = server.map(|server| format!("--server {server}"));
                let place = place.or(store.map(|store| format!("--store {store}"))).unwrap_or_default();
                return Err(CliError::usage(format!(
                    "The plan was made with {place}, and applies only there."
                )));
            }
        }
        if let (Some(upstream), true) = (&self.upstream, given.upstream == super::local::UPSTREAM) {
            target.upstream.clone_from(upstream);
        }
        Ok(target)
    }

    /// Says how to apply the plan in this file. The file knows its place, unless that has a
    /// password in it.
    pub(super) fn print_next(&self, file: &Path, output: &Output) {
        let place = match (&self.server, &self.store, &self.upstream) {
            (None, None, Some(_)) => " --server …",
            (None, None, None) => " --store …",
            _ => "",
        };
        output.print_remark(&format!("apply it with `tidegate deploy apply {}{place}`", file.display()));
    }

    /// Prints the plan as it was shown when it was made.
    pub(super) fn print(&self, file: &Path, output: &Output) -> Result<(), CliError> {
        let Some(shown) = &self.shown else {
            let message =
                format!("{} was written by a version that did not keep what it showed.", file.display());
            return Err(CliError::new(message)
                .hint("plan again, or look at it with `tidegate deploy apply FILE`, which asks"));
        };
        shown.print(output);
        self.print_next(file, output);
        Ok(())
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
    let answer = answer.await;
    if let (Ok(Ok(line)), false) = (&answer, std::io::stdin().is_terminal()) {
        // Only a terminal shows what is typed.
        output.print_status(line.trim_end());
    }
    match answer {
        Ok(Ok(line)) if line.trim() == YES => Ok(()),
        Ok(Ok(line)) if line.is_empty() => Err(refused()),
        Ok(Ok(_)) => Err(CliError::new("Nothing was applied.")),
        _ => Err(refused()),
    }
}
