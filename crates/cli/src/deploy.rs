//! `deploy`: makes a Discord guild what its template says, from this process and its own store, or by a server.

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
The bot's token is in DISCORD_TOKEN. It needs Manage Roles and Manage Channels, and its own role above those it makes.
What a template can say is told in docs/discord-templates.md; examples/guilds has two.

To try it without Discord:
  tidegate sim discord &
  export DISCORD_TOKEN=any
  tidegate deploy plan  --template examples/guilds/small.yaml --guild 1 --base-url http://127.0.0.1:7412/api/v10
  tidegate deploy apply --template examples/guilds/small.yaml --guild 1 --base-url http://127.0.0.1:7412/api/v10

With --server URL a server does it, with its own store and the token of its own upstream, and goes on if this command ends.";

/// How to deploy.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DeployArgs {
    #[command(subcommand)]
    command: DeployCommand,
}

#[derive(Subcommand, Debug)]
enum DeployCommand {
    /// Say what would be changed, and change nothing. Exits with 0 whether or not there is something to change.
    Plan(PlanArgs),
    /// Make the guild what the template says. What was interrupted is gone on with; a second run changes nothing.
    Apply(ApplyArgs),
    /// Say how deployments of a guild went, and what became of each step.
    Status(StatusArgs),
}

/// Which template, which guild, and from where.
#[derive(Args, Debug)]
struct TemplateArgs {
    /// The template, a YAML file.
    #[arg(long, value_name = "FILE")]
    template: PathBuf,
    /// The guild's id.
    #[arg(long, value_name = "ID")]
    guild: Id,
    /// Where Discord is. Another address is for a simulator or a proxy.
    #[arg(long, value_name = "URL", default_value = tidegate_discord::dialect::BASE_URL, conflicts_with = "server")]
    base_url: String,
    /// The server's upstream that reaches Discord.
    #[arg(long, value_name = "NAME", default_value = local::UPSTREAM, requires = "server")]
    upstream: String,
    #[command(flatten)]
    store: StoreArgs,
    /// Remove managed objects that are not in the template any more.
    #[arg(long)]
    prune: bool,
}

/// Where the journal is.
#[derive(Args, Debug)]
struct StoreArgs {
    /// Where operations and the journal are kept: file:DIR, memory: which forgets them, redis://… or postgres://….
    #[arg(long, value_name = "URL", default_value = "file:tidegate-data")]
    store: String,
    /// Let the server at this address do it.
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    server: Option<String>,
    /// The variable of the environment that holds the token, where the server wants one.
    #[arg(long, value_name = "NAME", default_value = "TIDEGATE_TOKEN", requires = "server")]
    token_env: String,
}

impl StoreArgs {
    /// The server that is to do it, if there is one.
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
    /// Read every channel that holds a message of the template, so that one that was deleted or edited by hand is noticed.
    /// Without it the journal is believed about messages, unless a plan has seen otherwise.
    #[arg(long)]
    verify: bool,
    /// A channel of the guild that is told what was done, when it is done.
    #[arg(long, value_name = "ID")]
    audit_channel: Option<Id>,
}

#[derive(Args, Debug)]
struct StatusArgs {
    /// The guild's id.
    #[arg(long, value_name = "ID")]
    guild: Id,
    /// The deployment; usually the last one.
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
            let wanted = DeployRequest {
                verify: apply.verify,
                audit_channel: apply.audit_channel,
                ..read_wanted(&apply.common)?
            };
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

/// What is wanted, with the template as it is in its file.
fn read_wanted(common: &TemplateArgs) -> Result<DeployRequest, CliError> {
    let file = common.template.display().to_string();
    let template = std::fs::read_to_string(&common.template)
        .map_err(|error| CliError::usage(format!("The template {file} cannot be read: {error}.")))?;
    Ok(DeployRequest {
        guild: common.guild,
        upstream: common.upstream.clone(),
        file,
        template,
        prune: common.prune,
        verify: false,
        audit_channel: None,
    })
}
