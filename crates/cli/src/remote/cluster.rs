//! `cluster`: the nodes, and which node owns which partition.

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::client::{Client, RemoteArgs};
use crate::error::CliError;
use crate::output::{Output, text};

#[derive(Args, Debug)]
pub(crate) struct ClusterArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Subcommand, Debug)]
enum ClusterCommand {
    /// Show nodes, partition owners, epochs and leases, as this server last saw them.
    Status,
}

pub(crate) async fn run(args: ClusterArgs, output: &Output) -> Result<(), CliError> {
    let client = Client::new(&args.remote)?;
    let ClusterCommand::Status = args.command;
    let value = client.get("/v1/cluster", "partitions").await?;
    if output.json {
        output.print_json(&value);
        return Ok(());
    }
    let list = |name: &str| value[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let node = |node: &Value| {
        let owned = node["partitions"].as_array().map_or(0, Vec::len).to_string();
        vec![text(node, "name"), text(node, "address"), owned, text(node, "until")]
    };
    let nodes: Vec<_> = list("nodes").iter().map(node).collect();
    if nodes.is_empty() {
        output.print_status("a single server with its own store");
    } else {
        output.print_table(&["NODE", "ADDRESS", "PARTITIONS", "UNTIL"], &nodes);
        output.print_status("");
    }
    let partition =
        |one: &Value| vec![text(one, "partition"), text(one, "node"), text(one, "epoch"), text(one, "until")];
    let partitions: Vec<_> = list("partitions").iter().map(partition).collect();
    output.print_table(&["PARTITION", "OWNER", "EPOCH", "UNTIL"], &partitions);
    let unowned = list("partitions").iter().filter(|one| one["node"].is_null()).count();
    if unowned > 0 {
        output.print_status(&format!("{unowned} of {} partitions currently have no owner", partitions.len()));
    }
    Ok(())
}
