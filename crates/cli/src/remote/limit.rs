//! `limit`: limits, how they stand, and setting them to other figures.

mod costs;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::client::{Client, RemoteArgs, encode_segment};
use crate::error::CliError;
use crate::output::{Output, text};

#[derive(Args, Debug)]
pub(crate) struct LimitArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(subcommand)]
    command: LimitCommand,
}

#[derive(Subcommand, Debug)]
enum LimitCommand {
    /// List all limits, with what is left of each.
    List,
    /// Show what calls cost, by the shape of their query, where their upstream says it.
    #[command(
        after_help = "Example:\n  tidegate limit costs --upstream acme-shop --since 1h\n\nThe share is of all that was spent of the same limit. A call whose cost was not said counts as what was taken for it, one that was turned away as nothing."
    )]
    Costs(costs::CostFilter),
    /// Set a limit to other figures, take that back, or open a gate that an upstream has closed.
    #[command(
        after_help = "Examples:\n  tidegate limit set echo/requests --capacity 40 --refill-per-s 2\n  tidegate limit set echo/slots --at-once 4\n  tidegate limit set echo --open\n  tidegate limit set echo/requests --reset\n\nIt takes effect at once and stands until it is reset or the figures in the configuration change."
    )]
    Set {
        /// Its name, as `limit list` shows it.
        name: String,
        /// The most a budget holds.
        #[arg(long, value_name = "N")]
        capacity: Option<f64>,
        /// What comes back to it each second. Of this and the capacity, what is not said stays as it is.
        #[arg(long, value_name = "N")]
        refill_per_s: Option<f64>,
        /// How many may run at once, for a limit of that kind.
        #[arg(long, value_name = "N", conflicts_with_all = ["capacity", "refill_per_s", "open"])]
        at_once: Option<u32>,
        /// Open it, although its upstream said to wait.
        #[arg(long, conflicts_with_all = ["capacity", "refill_per_s"])]
        open: bool,
        /// Give it the figures of the configuration again, or let it learn again.
        #[arg(long, conflicts_with_all = ["capacity", "refill_per_s", "at_once", "open"])]
        reset: bool,
    },
}

pub(crate) async fn run(args: LimitArgs, output: &Output) -> Result<(), CliError> {
    let client = Client::new(&args.remote)?;
    match args.command {
        LimitCommand::List => {
            let value = client.get("/v1/limits", "limits").await?;
            match (output.json, value["limits"].as_array()) {
                (false, Some(limits)) if limits.is_empty() => output.print_status("there are no limits"),
                (false, Some(limits)) => table(limits, output),
                _ => output.print_json(&value),
            }
        }
        LimitCommand::Costs(which) => costs::run(which, &client, output).await?,
        LimitCommand::Set { name, capacity, refill_per_s, at_once, open, reset } => {
            let body = match (capacity.or(refill_per_s), at_once, open) {
                (Some(_), ..) => figures(&client, &name, capacity, refill_per_s).await?,
                (None, Some(at_once), _) => json!({ "at_once": at_once }),
                (None, None, true) => {
                    let known = find(&client, &name).await?;
                    if known.is_some_and(|limit| limit["closed_until"].is_null()) {
                        output.print_remark("it was not closed: tidegate limit list shows what is");
                    }
                    json!({ "open": true })
                }
                (None, None, false) if reset => json!({ "reset": true }),
                (None, None, false) => {
                    return Err(CliError::usage(
                        "Say --capacity or --refill-per-s or both, or --at-once, or --open, or --reset.",
                    ));
                }
            };
            let value = client.put(&format!("/v1/limits/{}", encode_segment(&name)), &body, "name").await?;
            match output.json {
                true => output.print_json(&value),
                false => table(&[value], output),
            }
        }
    }
    Ok(())
}

/// Both figures of a budget: one that was not said is the one that it has.
async fn figures(
    client: &Client,
    name: &str,
    capacity: Option<f64>,
    refill_per_s: Option<f64>,
) -> Result<Value, CliError> {
    let mut body = json!({ "capacity": capacity, "refill_per_s": refill_per_s });
    if capacity.is_none() || refill_per_s.is_none() {
        let known = find(client, name).await?.unwrap_or_default();
        for field in ["capacity", "refill_per_s"] {
            let figure = body[field].take();
            body[field] = if figure.is_null() { known[field].clone() } else { figure };
            if body[field].is_null() {
                return Err(CliError::new(format!("{name:?} is no limit with a capacity and a refill."))
                    .hint("tidegate limit list"));
            }
        }
    }
    Ok(body)
}

/// A limit as it stands.
async fn find(client: &Client, name: &str) -> Result<Option<Value>, CliError> {
    let mut all = client.get("/v1/limits", "limits").await?;
    let found = all["limits"].as_array_mut().and_then(|all| all.iter_mut().find(|one| one["name"] == name));
    Ok(found.map(Value::take))
}

fn table(limits: &[Value], output: &Output) {
    let row = |limit: &Value| {
        let of = [text(limit, "capacity"), text(limit, "at_once")].concat();
        let rate = text(limit, "refill_per_s");
        vec![
            text(limit, "name"),
            text(limit, "kind"),
            text(limit, "level"),
            of,
            if rate.is_empty() { rate } else { format!("{rate}/s") },
            text(limit, "waiting"),
            text(limit, "source"),
            text(limit, "closed_until"),
        ]
    };
    let headings = ["LIMIT", "KIND", "LEFT", "OF", "REFILL", "WAITING", "SOURCE", "CLOSED UNTIL"];
    output.print_table(&headings, &limits.iter().map(row).collect::<Vec<_>>());
}
