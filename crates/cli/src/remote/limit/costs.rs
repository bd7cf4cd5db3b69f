//! `limit costs`: what calls cost, by the shape of their query.

use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::client::{Client, query};
use crate::error::CliError;
use crate::output::{Output, text};

/// The filter of `limit costs`.
#[derive(Args, Debug)]
pub(crate) struct CostFilter {
    /// Only calls to this upstream.
    #[arg(long, value_name = "NAME")]
    upstream: Option<String>,
    /// Only calls within this time, such as 10m, 1h or 7d. Default: one day.
    #[arg(long, value_name = "TIME", value_parser = tidegate_server::config::parse_duration)]
    since: Option<Duration>,
    /// List at most this many shapes, 1 to 200, the most expensive ones. Default: 50.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

pub(super) async fn run(which: CostFilter, client: &Client, output: &Output) -> Result<(), CliError> {
    // The API takes whole seconds.
    let since_s = which.since.map(|since| since.as_secs().max(1).to_string());
    let limit = which.limit.map(|limit| limit.to_string());
    let pairs = [("upstream", which.upstream), ("since_s", since_s), ("limit", limit)];
    let value = client.get(&format!("/v1/costs{}", query(&pairs)), "costs").await?;
    if output.json {
        output.print_json(&value);
        return Ok(());
    }
    let none = Vec::new();
    let costs = value["costs"].as_array().unwrap_or(&none);
    if value["kept"] == false {
        output.print_status("this store keeps no costs: Redis needs an archive for that");
    } else if costs.is_empty() {
        output.print_status("no call has reported its cost");
    } else {
        table(costs, output);
        if value["whole"] == false {
            output.print_status(
                "only the newest calls were counted; use a shorter --since to count all of them",
            );
        }
    }
    Ok(())
}

fn table(costs: &[Value], output: &Output) {
    let row = |cost: &Value| {
        let share = cost["share"].as_f64().map(|share| format!("{:.1} %", share * 100.0));
        vec![
            text(cost, "name"),
            text(cost, "limit"),
            text(cost, "calls"),
            text(cost, "requested"),
            text(cost, "actual"),
            text(cost, "mean"),
            share.unwrap_or_default(),
            text(cost, "last_at"),
            text(cost, "shape"),
        ]
    };
    let headings = ["NAME", "LIMIT", "CALLS", "REQUESTED", "ACTUAL", "MEAN", "SHARE", "LAST", "SHAPE"];
    output.print_table(&headings, &costs.iter().map(row).collect::<Vec<_>>());
}
