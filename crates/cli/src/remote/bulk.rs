//! Commands about all operations that a filter finds: they are counted first, and changed with
//! `--yes`.

use std::time::Duration;

use clap::Args;
use hyper::Method;
use serde::Serialize;
use serde_json::{Value, json};

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
    #[command(flatten)]
    pub filter: FilterArgs,
}

/// A command with its reason.
#[derive(Serialize)]
pub(super) struct CommandBody<'a, B> {
    #[serde(flatten)]
    pub command: &'a B,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

/// The options that make a filter.
#[rustfmt::skip]
const FILTERS: [&str; 8] = [
    "group", "state", "kind", "upstream", "created_after", "created_before", "error", "may_have_happened",
];

/// A filter, instead of an id.
#[derive(Args, Debug, Serialize)]
#[command(next_help_heading = "All that a filter finds")]
pub(super) struct FilterArgs {
    /// Operations of this group.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// Operations in these states, comma-separated. Default: those that the command can change,
    /// except canceled ones.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// Operations of this kind.
    #[arg(long)]
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// Operations for this upstream.
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// Operations accepted at this time or later, such as 2031-05-06T07:08:09Z.
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    created_after: Option<String>,
    /// Operations accepted before this time.
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    created_before: Option<String>,
    /// Operations whose last fault has this text, whatever the case.
    #[arg(long, value_name = "TEXT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Operations whose call may have taken effect although they failed, or, with `false`, those of
    /// which that is excluded.
    #[arg(long, value_name = "true|false")]
    #[serde(skip_serializing_if = "Option::is_none")]
    may_have_happened: Option<bool>,
    /// Change them; without it, they are only counted.
    #[arg(long, conflicts_with = "id")]
    #[serde(skip)]
    yes: bool,
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
    filter: &FilterArgs,
    verb: &str,
    command: &impl Serialize,
    output: &Output,
) -> Result<(), CliError> {
    let body = client::json(&BulkBody { filter, command, dry_run: !filter.yes })?;
    let path = format!("/v1/operations/{verb}");
    let done = client.call(Method::POST, &path, Some(body), PATIENCE, "matched").await?;
    print(&done, filter.yes, output);
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
    if !yes {
        output.print_status("nothing was changed; to change them: --yes");
    }
}
