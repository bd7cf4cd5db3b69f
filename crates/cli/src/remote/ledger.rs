//! `ledger`: lists attempts at providers, and what may have been billed twice.

use clap::Args;
use serde_json::Value;

use crate::client::{Client, RemoteArgs, query};
use crate::error::CliError;
use crate::output::{Output, text};

/// How many empty pages are skipped to find one with entries.
const EMPTY_PAGES_MAX: usize = 500;

const EXAMPLES: &str = "\
Examples:
  tidegate ledger
  tidegate ledger --may-be-double

\"maybe twice\" marks attempts that may have been billed although another attempt of the same
generation may have been billed too: both had a job, or it is unknown whether their submits created
one.";

/// The options of `ledger`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LedgerArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// Only attempts that may have been billed although another one was too.
    #[arg(long)]
    may_be_double: bool,
    /// Look at this many generations for a page, 1 to 200. Default: 50.
    ///
    /// With --may-be-double, few of them may be shown: --cursor continues.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Continue a list with the cursor it printed.
    #[arg(long)]
    cursor: Option<String>,
}

pub(crate) async fn run(args: LedgerArgs, output: &Output) -> Result<(), CliError> {
    let client = Client::new(&args.remote)?;
    let mut pairs = [
        ("cursor", args.cursor),
        ("may_be_double", args.may_be_double.then(|| "true".to_owned())),
        ("limit", args.limit.map(|limit| limit.to_string())),
    ];
    let mut pages = 1;
    let page = loop {
        let page = client.get(&format!("/v1/ledger{}", query(&pairs)), "entries").await?;
        let is_empty = page["entries"].as_array().is_some_and(Vec::is_empty);
        match page["next_cursor"].as_str().filter(|_| is_empty && pages < EMPTY_PAGES_MAX) {
            Some(next) => pairs[0].1 = Some(next.to_owned()),
            None => break page,
        }
        pages += 1;
    };
    print(&page, output);
    Ok(())
}

fn print(page: &Value, output: &Output) {
    if output.json {
        return output.print_json(page);
    }
    let row = |one: &Value| {
        let double = if one["may_be_billed_twice"] == true { "maybe twice" } else { "" };
        vec![
            text(one, "generation"),
            text(one, "attempt"),
            text(one, "provider"),
            text(one, "key"),
            text(one, "outcome"),
            double.to_owned(),
            text(one, "cost"),
            text(one, "submitted_at"),
            text(one, "external_id"),
            text(one, "reason"),
        ]
    };
    let rows: Vec<_> = page["entries"].as_array().into_iter().flatten().map(row).collect();
    let next = page["next_cursor"].as_str();
    if rows.is_empty() && next.is_none() {
        return output.print_status("no attempt matches");
    }
    let headings =
        ["GENERATION", "TRY", "PROVIDER", "KEY", "OUTCOME", "BILLED", "COST", "SUBMITTED", "JOB", "REASON"];
    output.print_table(&headings, &rows);
    if let Some(cursor) = next {
        output.print_status(&format!("showing {}; for more: --cursor {cursor}", rows.len()));
    }
}
