//! `limit`: lists limits with their levels, and changes them.

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
    /// Show what calls cost, by the shape of their query, if the upstream reports it.
    #[command(
        after_help = "Example:\n  tidegate limit costs --upstream acme-shop --since 1h\n\nThe share is relative to everything spent on the same limit. A call without a reported cost counts with the cost charged for it, a throttled call with none."
    )]
    Costs(costs::CostFilter),
    /// Override a limit, reset it, or open one that an upstream has closed or used up.
    #[command(
        after_help = "Examples:\n  tidegate limit set echo/requests --capacity 40 --refill-per-s 2\n  tidegate limit set echo/slots --at-once 4\n  tidegate limit set echo --open\n  tidegate limit set \"discord/renames 4177\" --capacity 5 --period-ms 600000\n  tidegate limit set echo/requests --reset\n\nThe override takes effect at once, until it is reset or the figures in the configuration change."
    )]
    Set {
        /// Its name, as `limit list` shows it.
        name: String,
        /// The capacity of a budget.
        #[arg(long, value_name = "N")]
        capacity: Option<f64>,
        /// The refill of a budget per second. If only one of this and --capacity is given, the
        /// other stays as it is.
        #[arg(long, value_name = "N", conflicts_with = "period_ms")]
        refill_per_s: Option<f64>,
        /// The length of a window, whose budget returns all at once. If only one of this and
        /// --capacity is given, the other stays as it is.
        #[arg(long, value_name = "MS")]
        period_ms: Option<u64>,
        /// How many calls may be in flight, for a limit of that kind.
        #[arg(long, value_name = "N", conflicts_with_all = ["capacity", "refill_per_s", "period_ms", "open"])]
        at_once: Option<u32>,
        /// Open it, although the upstream said to wait, with its whole budget.
        #[arg(long, conflicts_with_all = ["capacity", "refill_per_s", "period_ms"])]
        open: bool,
        /// Return to the figures of the configuration, or learn them again from the upstream.
        #[arg(long, conflicts_with_all = ["capacity", "refill_per_s", "period_ms", "at_once", "open"])]
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
        LimitCommand::Set { name, capacity, refill_per_s, period_ms, at_once, open, reset } => {
            let is_budget = capacity.is_some() || refill_per_s.is_some() || period_ms.is_some();
            let body = match (is_budget, at_once, open) {
                (true, ..) => figures(&client, &name, capacity, refill_per_s, period_ms).await?,
                (false, Some(at_once), _) => json!({ "at_once": at_once }),
                (false, None, true) => {
                    let known = find(&client, &name).await?;
                    if known.is_some_and(|limit| limit["closed_until"].is_null() && limit["level"] != 0) {
                        output.print_remark("it was not closed: tidegate limit list shows which limits are");
                    }
                    json!({ "open": true })
                }
                (false, None, false) if reset => json!({ "reset": true }),
                (false, None, false) => {
                    return Err(CliError::usage(
                        "Give --capacity, --refill-per-s or --period-ms, or --at-once, or --open, or --reset.",
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

/// Returns both figures of a budget; one that was not given is the current one.
async fn figures(
    client: &Client,
    name: &str,
    capacity: Option<f64>,
    refill_per_s: Option<f64>,
    period_ms: Option<u64>,
) -> Result<Value, CliError> {
    if let (Some(_), Some(_), _) | (Some(_), _, Some(_)) = (capacity, refill_per_s, period_ms) {
        let given = [("capacity", json!(capacity)), ("refill_per_s", json!(refill_per_s))];
        let given = given.into_iter().chain([("period_ms", json!(period_ms))]);
        return Ok(given.filter(|(_, figure)| !figure.is_null()).collect());
    }
    let known = find(client, name).await?.unwrap_or_default();
    let speed = if known["kind"] == "window" { "period_ms" } else { "refill_per_s" };
    let given = match (refill_per_s, period_ms) {
        (Some(refill), _) => json!({ "refill_per_s": refill }),
        (_, Some(period)) => json!({ "period_ms": period }),
        _ => json!({ speed: known[speed] }),
    };
    let mut body = given;
    body["capacity"] = capacity.map_or_else(|| known["capacity"].clone(), |figure| json!(figure));
    if body.as_object().is_some_and(|fields| fields.values().any(Value::is_null)) {
        return Err(CliError::new(format!("{name:?} is not a limit with a capacity and a refill."))
            .hint("tidegate limit list"));
    }
    Ok(body)
}

/// Finds a limit by its name.
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
