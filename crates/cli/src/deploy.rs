//! `deploy`: makes a Discord guild what its template says, from this process and its own store.

mod local;
mod progress;
mod status;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tidegate_discord::Id;
use tidegate_discord::deploy::Wanted;

use crate::output::Output;
use crate::trouble::Trouble;

const EXAMPLES: &str = "\
The bot's token is in DISCORD_TOKEN. It needs Manage Roles and Manage Channels, and its own role above those it makes.
What a template can say is told in docs/discord-templates.md; examples/guilds has two.

To try it without Discord:
  tidegate sim discord &
  export DISCORD_TOKEN=any
  tidegate deploy plan  --template examples/guilds/small.yaml --guild 1 --base-url http://127.0.0.1:7412/api/v10
  tidegate deploy apply --template examples/guilds/small.yaml --guild 1 --base-url http://127.0.0.1:7412/api/v10";

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
struct Common {
    /// The template, a YAML file.
    #[arg(long, value_name = "FILE")]
    template: PathBuf,
    /// The guild's id.
    #[arg(long, value_name = "ID")]
    guild: Id,
    /// Where Discord is. Another address is for a simulator or a proxy.
    #[arg(long, value_name = "URL", default_value = tidegate_discord::dialect::BASE_URL)]
    base_url: String,
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
}

#[derive(Args, Debug)]
struct PlanArgs {
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
struct ApplyArgs {
    #[command(flatten)]
    common: Common,
    /// Read every channel that holds a message of the template, so that one that was deleted by hand is noticed. Without it
    /// the journal is believed about messages, unless a plan has seen that one is gone.
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

pub(crate) async fn run(args: DeployArgs, output: &Output) -> Result<(), Trouble> {
    match args.command {
        DeployCommand::Plan(plan) => local::plan(&plan.common, output).await,
        DeployCommand::Apply(apply) => {
            let wanted =
                Wanted { verify: apply.verify, audit_channel: apply.audit_channel, ..wanted(&apply.common)? };
            local::apply(&apply.common, &wanted, output).await
        }
        DeployCommand::Status(which) => status::run(&which, output).await,
    }
}

/// What is wanted, with the template as it is in its file.
fn wanted(common: &Common) -> Result<Wanted, Trouble> {
    let file = common.template.display().to_string();
    let template = std::fs::read_to_string(&common.template)
        .map_err(|error| Trouble::usage(format!("The template {file} cannot be read: {error}.")))?;
    Ok(Wanted {
        guild: common.guild,
        upstream: local::UPSTREAM.to_owned(),
        file,
        template,
        prune: common.prune,
        verify: false,
        audit_channel: None,
    })
}
