//! `deploy`: deploys a template to a Discord guild, either in this process with its own store, or
//! through a server.

mod local;
mod progress;
mod remote;
mod status;
mod summary;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tidegate_discord::Id;
use tidegate_discord::deploy::DeployRequest;

use crate::client::{Client, RemoteArgs};
use crate::error::CliError;
use crate::output::Output;

const EXAMPLES: &str = "\
Set DISCORD_TOKEN to the bot's token. The bot needs Manage Roles and Manage Channels, and its own
role must be above those it creates. docs/discord-templates.md describes templates; there are two
in examples/guilds.

To try it without Discord:
  tidegate sim discord &
  export DISCORD_TOKEN=any
  tidegate deploy plan  --template examples/guilds/small.yaml --guild 1 --base-url http://127.0.0.1:7412/api/v10
  tidegate deploy apply --template examples/guilds/small.yaml --guild 1 --base-url http://127.0.0.1:7412/api/v10

With --server URL a server deploys, with its own store and its upstream's token, and continues even
if this command is stopped.";

/// The options of `deploy`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DeployArgs {
    #[command(subcommand)]
    command: DeployCommand,
}

#[derive(Subcommand, Debug)]
enum DeployCommand {
    /// Show what would change, without changing anything. Exits with 0 whether or not there are
    /// changes.
    Plan(PlanArgs),
    /// Apply the template to the guild. Resumes an interrupted deployment; a second run changes
    /// nothing.
    Apply(ApplyArgs),
    /// Show the deployments of a guild and the state of each step.
    Status(StatusArgs),
}

/// The options that `plan` and `apply` share.
#[derive(Args, Debug)]
struct TemplateArgs {
    /// The template, a YAML file.
    #[arg(long, value_name = "FILE")]
    template: PathBuf,
    /// The guild's id.
    #[arg(long, value_name = "ID")]
    guild: Id,
    /// The base URL of Discord's API. Change it to use a simulator or a proxy.
    #[arg(long, value_name = "URL", default_value = tidegate_discord::dialect::BASE_URL, conflicts_with = "server")]
    base_url: String,
    /// The name of the server's upstream for Discord.
    #[arg(long, value_name = "NAME", default_value = local::UPSTREAM, requires = "server")]
    upstream: String,
    #[command(flatten)]
    store: StoreArgs,
    /// Remove managed objects that are no longer in the template.
    #[arg(long)]
    prune: bool,
}

/// The options that select the store, or the server that has one.
#[derive(Args, Debug)]
struct StoreArgs {
    /// Where operations and the journal are stored: file:DIR, memory: (lost on exit), redis://… or
    /// postgres://….
    #[arg(long, value_name = "URL", default_value = "file:tidegate-data")]
    store: String,
    /// Run it on the server at this address.
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    server: Option<String>,
    /// The environment variable that holds the token, if the server requires one.
    #[arg(long, value_name = "NAME", default_value = "TIDEGATE_TOKEN", requires = "server")]
    token_env: String,
}

impl StoreArgs {
    /// Returns a client of the server, if one was named.
    fn client(&self) -> Result<Option<Client>, CliError> {
        let args = |server: &String| RemoteArgs { server: server.clone(), token_env: self.token_env.clone() };
        self.server.as_ref().map(|server| Client::new(&args(server))).transpose()
    }
}

#[derive(Args, Debug)]
struct PlanArgs {
    #[command(flatten)]
    common: TemplateArgs,
}

#[derive(Args, Debug)]
struct ApplyArgs {
    #[command(flatten)]
    common: TemplateArgs,
    /// Read every channel that has a message of the template, to detect messages that were deleted
    /// or edited by hand. Without it the journal is trusted, unless a plan found a difference.
    #[arg(long)]
    verify: bool,
    /// A channel of the guild to post a summary to when the deployment is done.
    #[arg(long, value_name = "ID")]
    audit_channel: Option<Id>,
}

#[derive(Args, Debug)]
struct StatusArgs {
    /// The guild's id.
    #[arg(long, value_name = "ID")]
    guild: Id,
    /// The deployment's id. Default: the latest one.
    #[arg(long, value_name = "ID")]
    deployment: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
}

pub(crate) async fn run(args: DeployArgs, output: &Output) -> Result<(), CliError> {
    match args.command {
        DeployCommand::Plan(plan) => match plan.common.store.client()? {
            Some(client) => remote::plan(&client, &read_wanted(&plan.common)?, output).await,
            None => local::plan(&plan.common, output).await,
        },
        DeployCommand::Apply(apply) => {
            let wanted =
                read_wanted(&apply.common)?.with_verify(apply.verify).with_audit_channel(apply.audit_channel);
            match apply.common.store.client()? {
                Some(client) => remote::apply(&client, &wanted, output).await,
                None => local::apply(&apply.common, &wanted, output).await,
            }
        }
        DeployCommand::Status(which) => match which.store.client()? {
            Some(client) => remote::status(&client, &which, output).await,
            None => status::run(&which, output).await,
        },
    }
}

/// Builds the request, with the template read from its file.
fn read_wanted(common: &TemplateArgs) -> Result<DeployRequest, CliError> {
    let file = common.template.display().to_string();
    let template = std::fs::read_to_string(&common.template)
        .map_err(|error| CliError::usage(format!("The template {file} cannot be read: {error}.")))?;
    Ok(DeployRequest::new(common.guild, template)
        .with_upstream(common.upstream.as_str())
        .with_file(file)
        .with_prune(common.prune))
}
