//! `deploy events`: what happened to the steps of a deployment, in order, from the journal.

use serde_json::Value;
use tidegate_server::events_json;

use super::{StatusArgs, status};
use crate::error::CliError;
use crate::output::{Output, text};

pub(super) async fn run(args: &StatusArgs, output: &Output) -> Result<(), CliError> {
    let (store, _, shown) = status::find(args).await?;
    let events = store.deployment_events(&shown.id).await.map_err(tidegate::Error::from)?;
    show(&events_json(&shown.id, &events), output);
    Ok(())
}

/// Prints the events of a deployment, oldest first.
pub(super) fn show(found: &Value, output: &Output) {
    if output.json {
        return output.print_json(found);
    }
    let row = |event: &Value| {
        let what = format!("{} {}", text(event, "kind"), text(event, "key"));
        let rest = ["action", "state", "object", "note"].map(|field| text(event, field));
        [text(event, "at"), what].into_iter().chain(rest).collect::<Vec<_>>()
    };
    let events = found["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<_> = events.iter().map(row).collect();
    output.print_table(&["AT", "STEP", "ACTION", "EVENT", "ID", "NOTE"], &rows);
    match found["dropped"].as_u64() {
        None | Some(0) => {}
        Some(1) => output.print_status("1 older event is not kept any more."),
        Some(dropped) => output.print_status(&format!("{dropped} older events are not kept any more.")),
    }
}
