//! `deploy status`: the deployments of a guild and their steps, from the journal.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::journal::Deployment;
use tidegate_discord::deploy::{NOT_NEEDED, group};
use tidegate_server::{backend, deployment_json};
use tidegate_store::Store;

use super::StatusArgs;
use crate::error::CliError;
use crate::output::{Output, text};

/// The maximum number of deployments listed.
pub(super) const LISTED: usize = 100;

pub(super) async fn run(args: &StatusArgs, output: &Output) -> Result<(), CliError> {
    let (store, all, shown) = find(args).await?;
    let steps = store.deployment_steps(&shown.id).await.map_err(tidegate::Error::from)?;
    let shown = deployment_json(&shown, Some(&steps));
    let mut all: Vec<_> = all.iter().map(|one| deployment_json(one, None)).collect();
    if !output.json && !store.is_shared() {
        // No other process uses this store, so none runs it.
        all.iter_mut()
            .filter(|one| one["stage"] == "running")
            .for_each(|one| one["stage"] = "interrupted".into());
    }
    show(&shown, &all, output);
    Ok(())
}

/// Opens the store, and finds the deployments of the guild and the one that was asked for.
pub(super) async fn find(
    args: &StatusArgs,
) -> Result<(Arc<dyn Store>, Vec<Deployment>, Deployment), CliError> {
    let store = backend::open(&args.store.store).await?;
    store.check_layout().await.map_err(tidegate::Error::from)?;
    let scope = group(args.guild);
    let all = store.deployments(Some(&scope), LISTED).await.map_err(tidegate::Error::from)?;
    let is_asked = |one: &&Deployment| args.deployment.as_deref().is_none_or(|id| *one.id == *id);
    match all.iter().find(is_asked).cloned() {
        Some(shown) => Ok((store, all, shown)),
        None => Err(no_deployments(args)),
    }
}

/// The error when there is no deployment to show.
pub(super) fn no_deployments(args: &StatusArgs) -> CliError {
    CliError::new(match &args.deployment {
        Some(id) => format!("There is no deployment {id} of guild {} among the last {LISTED}.", args.guild),
        None => format!("No deployment of guild {} is in the journal.", args.guild),
    })
}

/// Prints all deployments, then the steps of one.
pub(super) fn show(one: &Value, all: &[Value], output: &Output) {
    if output.json {
        return output.print_json(&json!({ "deployment": one, "deployments": all }));
    }
    let row =
        |one: &Value| ["id", "stage", "plans", "updated_at", "note"].map(|field| text(one, field)).to_vec();
    let rows: Vec<_> = all.iter().map(row).collect();
    output.print_table(&["DEPLOYMENT", "STAGE", "PLANS", "UPDATED", "NOTE"], &rows);
    output.print_status("");
    let row = |step: &Value| {
        let what = format!("{} {}", text(step, "kind"), text(step, "key"));
        let mut rest = ["action", "state", "object", "note"].map(|field| text(step, field));
        if step["action"] == "skip" || step["note"] == NOT_NEEDED {
            rest[1] = "skipped".to_owned();
        }
        [what].into_iter().chain(rest).collect::<Vec<_>>()
    };
    let steps = one["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    output
        .print_table(&["STEP", "ACTION", "STATE", "ID", "NOTE"], &steps.iter().map(row).collect::<Vec<_>>());
}
