//! `provider`: lists the providers of generations, and sets their limits.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::client::{Client, RemoteArgs, encode_segment};
use crate::error::CliError;
use crate::output::{Output, text};

/// The figure of a limit that is neither configured nor documented.
const NO_LIMIT: u32 = 1_000_000;

#[derive(Args, Debug)]
pub(crate) struct ProviderArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(subcommand)]
    command: ProviderCommand,
}

#[derive(Subcommand, Debug)]
enum ProviderCommand {
    /// List providers: whether each takes jobs, its slots, its rate and its last error.
    List,
    /// Set the limits of a provider, or try it again now.
    #[command(
        after_help = "Examples:\n  tidegate provider set replicate --max-concurrent 40\n  tidegate provider set fal --max-concurrent 10 --rpm 120\n  tidegate provider set fal --open\n\nThe new limits take effect at once and survive a restart, until the figures in the configuration change. To return to those: tidegate limit set provider:fal/slots --reset."
    )]
    Set {
        /// Its name, as `provider list` shows it.
        name: String,
        /// How many jobs run at once.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000), required_unless_present_any = ["rpm", "open"])]
        max_concurrent: Option<u64>,
        /// How many submits a minute allows.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        rpm: Option<u64>,
        /// End its cooldown: one job goes to it at once, and others follow when it takes that.
        #[arg(long)]
        open: bool,
    },
}

pub(crate) async fn run(args: ProviderArgs, output: &Output) -> Result<(), CliError> {
    let client = Client::new(&args.remote)?;
    match args.command {
        ProviderCommand::List => {
            let all = client.get("/v1/providers", "providers").await?;
            if output.json {
                output.print_json(&all);
            } else {
                table(all["providers"].as_array().map(Vec::as_slice).unwrap_or_default(), output);
            }
        }
        ProviderCommand::Set { name, max_concurrent, rpm, open } => {
            let body = json!({ "max_concurrent": max_concurrent, "rpm": rpm, "open": open.then_some(true) });
            let path = format!("/v1/providers/{}", encode_segment(&name));
            let changed = client.patch(&path, &body, "name").await?;
            if output.json {
                output.print_json(&changed);
            } else {
                table(&[changed], output);
            }
        }
    }
    Ok(())
}

/// A figure and how many there may be, if there is a limit.
fn share(limit: &Value, figure: &str, most: &str) -> String {
    if limit[most] == NO_LIMIT {
        return match figure {
            "left" => "no limit".to_owned(),
            _ => format!("{}, no limit", text(limit, figure)),
        };
    }
    format!("{} of {}", text(limit, figure), text(limit, most))
}

fn table(providers: &[Value], output: &Output) {
    let row = |one: &Value| {
        let (slots, rpm) = (&one["slots"], &one["rpm"]);
        vec![
            text(one, "name"),
            text(one, "state"),
            text(one, "until"),
            share(slots, "in_use", "max_concurrent"),
            share(rpm, "left", "limit"),
            text(one, "waiting"),
            text(&one["breaker"], "failures"),
            text(&one["last_error"], "message"),
        ]
    };
    let rows: Vec<_> = providers.iter().map(row).collect();
    let headings = ["PROVIDER", "STATE", "UNTIL", "JOBS", "LEFT/MIN", "WAITING", "ERRORS", "LAST ERROR"];
    output.print_table(&headings, &rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_none_has_no_figure() {
        let slots = |most: u32| json!({ "in_use": 3, "max_concurrent": most });
        assert_eq!(share(&slots(8), "in_use", "max_concurrent"), "3 of 8");
        assert_eq!(share(&slots(NO_LIMIT), "in_use", "max_concurrent"), "3, no limit");
        let rpm = json!({ "left": NO_LIMIT - 1, "limit": NO_LIMIT });
        assert_eq!(share(&rpm, "left", "limit"), "no limit");
    }
}
