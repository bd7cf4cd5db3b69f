//! `flight`: lists the entities that the nodes of a server are asking for.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::client::{Client, RemoteArgs, query};
use crate::error::CliError;
use crate::output::{Output, text};

#[derive(Args, Debug)]
pub(crate) struct FlightArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(subcommand)]
    command: FlightCommand,
}

#[derive(Subcommand, Debug)]
enum FlightCommand {
    /// List the entities that the server and its other nodes are asking for: how much, who waits
    /// and until when.
    List {
        /// List at most this many, 1 to 200. Default: 50.
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// Continue a list with the cursor it printed.
        #[arg(long)]
        cursor: Option<String>,
    },
}

pub(crate) async fn run(args: FlightArgs, output: &Output) -> Result<(), CliError> {
    let client = Client::new(&args.remote)?;
    let FlightCommand::List { limit, cursor } = args.command;
    let query = query(&[("limit", limit.map(|limit| limit.to_string())), ("cursor", cursor)]);
    let value = client.get(&format!("/v1/flights{query}"), "flights").await?;
    if output.json {
        output.print_json(&value);
        return Ok(());
    }
    let fields = [
        "entity_type",
        "entity_id",
        "tenant",
        "hydration_mode",
        "questions",
        "waiting",
        "deferred",
        "until",
        "reason",
        "node",
    ];
    let row = |flight: &Value| fields.map(|field| text(flight, field)).to_vec();
    for node in value["unreachable"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        output.print_status(&format!("node {node} did not answer: its entities are not listed"));
    }
    let flights = value["flights"].as_array().map(Vec::as_slice).unwrap_or_default();
    if flights.is_empty() {
        output.print_status("nothing is being asked for");
        return Ok(());
    }
    let rows: Vec<_> = flights.iter().map(row).collect();
    let headings = [
        "TYPE",
        "ENTITY",
        "TENANT",
        "ASKED FOR",
        "QUESTIONS",
        "WAITING",
        "DEFERRED",
        "UNTIL",
        "NO ANSWER",
        "NODE",
    ];
    output.print_table(&headings, &rows);
    if let Some(cursor) = value["next_cursor"].as_str() {
        output.print_status(&format!("showing {}; for more: --cursor {cursor}", rows.len()));
    }
    Ok(())
}
