//! `limit`: limits, how they stand, and setting them to other figures.

mod costs;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::client::{Client, RemoteArgs, segment};
use crate::output::{Output, text};
use crate::trouble::Trouble;

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
        after_help = "Example:\n  tidegate limit costs --upstream acme-shop --since 1h\n\nThe share is of all that was spent of the same limit. A call whose cost was not said counts as what was taken for it."
    )]
    Costs(costs::Which),
    /// Set a limit to other figures, take that back, or open a gate that an upstream has closed.
    #[command(
        after_help = "Examples:\n  tidegate limit set echo/requests --capacity 40 --refill-per-s 2\n  tidegate limit set echo/slots --at-once 4\n  tidegate limit set echo --open\n  tidegate limit set echo/requests --reset\n\nIt takes effect at once and stands until it is reset or the figures in the configuration change."
    )]
    Set {
        /// Its name, as `limit list` shows it.
        name: String,
        /// The most a budget holds.
        #[arg(long, value_name = "N", requires = "refill_per_s")]
        capacity: Option<f64>,
        /// What comes back to it each second.
        #[arg(long, value_name = "N", requires = "capacity")]
        refill_per_s: Option<f64>,
        /// How many may run at once, for a limit of that kind.
        #[arg(long, value_name = "N", conflicts_with_all = ["capacity", "open"])]
        at_once: Option<u32>,
        /// Open it, although its upstream said to wait.
        #[arg(long, conflicts_with = "capacity")]
        open: bool,
        /// Give it the figures of the configuration again, or let it learn again.
        #[arg(long, conflicts_with_all = ["capacity", "at_once", "open"])]
        reset: bool,
    },
}

pub(crate) async fn run(args: LimitArgs, output: &Output) -> Result<(), Trouble> {
    let client = Client::new(&args.remote)?;
    match args.command {
        LimitCommand::List => {
            let value = client.get("/v1/limits", "limits").await?;
            match (output.json, value["limits"].as_array()) {
                (false, Some(limits)) if limits.is_empty() => output.say("there are no limits"),
                (false, Some(limits)) => table(limits, output),
                _ => output.value(&value),
            }
        }
        LimitCommand::Costs(which) => costs::run(which, &client, output).await?,
        LimitCommand::Set { name, capacity, refill_per_s, at_once, open, reset } => {
            let body = match (capacity.zip(refill_per_s), at_once, open) {
                (Some((capacity, refill_per_s)), ..) => {
                    json!({ "capacity": capacity, "refill_per_s": refill_per_s })
                }
                (None, Some(at_once), _) => json!({ "at_once": at_once }),
                (None, None, true) => json!({ "open": true }),
                (None, None, false) if reset => json!({ "reset": true }),
                (None, None, false) => {
                    return Err(Trouble::usage(
                        "Say --capacity and --refill-per-s, or --at-once, or --open, or --reset.",
                    ));
                }
            };
            let value = client.put(&format!("/v1/limits/{}", segment(&name)), &body, "name").await?;
            match output.json {
                true => output.value(&value),
                false => table(&[value], output),
            }
        }
    }
    Ok(())
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
    output.table(&headings, &limits.iter().map(row).collect::<Vec<_>>());
}
