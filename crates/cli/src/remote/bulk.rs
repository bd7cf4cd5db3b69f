//! Commands about all operations that a filter finds: they are counted first, and changed with
//! `--yes`.

use std::time::Duration;

use clap::Args;
use hyper::Method;
use serde::Serialize;
use serde_json::{Value, json};

use super::filter::{FILTERS, FilterArgs};
use crate::client::{self, Client};
use crate::error::CliError;
use crate::output::{Output, text};

/// How long the server may take to change everything that it found.
const PATIENCE: Duration = Duration::from_secs(60);

/// One operation, or all that a filter finds.
#[derive(Args, Debug)]
pub(super) struct SelectionArgs {
    /// Its id, as `op submit` printed it.
    #[arg(
        value_parser = clap::builder::NonEmptyStringValueParser::new(),
        required_unless_present_any = FILTERS,
        conflicts_with_all = FILTERS
    )]
    pub id: Option<String>,
    /// Why, for the audit log.
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    #[command(flatten, next_help_heading = "All that a filter finds")]
    pub filter: FilterArgs,
    /// Change all that the filter finds; without it, they are only counted.
    #[arg(long, conflicts_with = "id", help_heading = "All that a filter finds")]
    pub yes: bool,
}

/// A command with its reason.
#[derive(Serialize)]
pub(super) struct CommandBody<'a, B> {
    #[serde(flatten)]
    pub command: &'a B,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

/// A command with its filter.
#[derive(Serialize)]
struct BulkBody<'a, B> {
    #[serde(flatten)]
    filter: &'a FilterArgs,
    #[serde(flatten)]
    command: &'a B,
    dry_run: bool,
}

/// Counts what a filter finds, or changes it.
pub(super) async fn run(
    client: &Client,
    SelectionArgs { filter, yes, .. }: &SelectionArgs,
    verb: &str,
    command: &impl Serialize,
    output: &Output,
) -> Result<(), CliError> {
    let body = client::json(&BulkBody { filter, command, dry_run: !yes })?;
    let path = format!("/v1/operations/{verb}");
    let done = client.call(Method::POST, &path, Some(body), PATIENCE, "matched").await?;
    print(&done, *yes, output);
    Ok(())
}

fn print(value: &Value, yes: bool, output: &Output) {
    if output.json {
        return output.print_json(value);
    }
    let names: &[&str] = if yes { &["matched", "changed", "refused", "problem"] } else { &["matched"] };
    let facts: Vec<_> = names.iter().map(|name| (*name, text(value, name))).collect();
    output.print_facts(&facts);
    if value["more"] == json!(true) {
        output.print_status("there may be more: repeat the command afterwards");
    }
    if value["matched"] == json!(0) {
        output.print_status("no operation matches the filter");
    } else if !yes {
        output.print_status("nothing was changed; to change them: --yes");
    }
}
