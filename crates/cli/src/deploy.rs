//! `deploy`: deploys a template to a Discord guild, either in this process with its own store, or
//! through a server.

mod approval;
mod events;
mod failure;
mod local;
mod progress;
mod remote;
mod shown_plan;
mod status;
mod summary;
mod template_file;
mod validate;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tidegate_discord::Id;
use tidegate_discord::deploy::DeployRequest;

use approval::PlanFile;
use template_file::{TemplateText, read_template};

use crate::client::{Client, RemoteArgs};
use crate::error::CliError;
use crate::output::Output;

/// The store that is used unless another one, or a server, is named.
const DEFAULT_STORE: &str = "file:tidegate-data";
/// The exit code of `plan --detailed-exitcode` when there is something to change.
const CHANGES: u8 = 2;

const EXAMPLES: &str = "\
Set DISCORD_TOKEN to the bot's token. The bot needs Manage Roles and Manage Channels, and its own
role must be above those it creates. docs/discord-templates.md describes templates; there are two
in examples/guilds.

To try it without Discord:
  tidegate sim discord &
  export DISCORD_TOKEN=any
  tidegate deploy plan  --template examples/guilds/small.yaml --guild 1 --base-url http://127.0.0.1:7412/api/v10
  tidegate deploy apply --template examples/guilds/small.yaml --guild 1 --base-url http://127.0.0.1:7412/api/v10

Before anything is called, without a token: is the template right?
  tidegate deploy validate guild.yaml

In scripts, give --yes; or look at a plan first and apply exactly that one:
  tidegate deploy plan --template guild.yaml --guild 1 --out guild.plan
  tidegate deploy show guild.plan
  tidegate deploy apply guild.plan --yes

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
    /// Check a template, without a token or a guild, and report all problems at once.
    Validate(ValidateArgs),
    /// Show what would change, without changing anything.
    Plan(PlanArgs),
    /// Show a plan that `plan --out FILE` kept, without calling anything.
    Show(ShowArgs),
    /// Show what will change, ask, and apply it. Resumes an interrupted deployment; a second run
    /// changes nothing.
    Apply(ApplyArgs),
    /// Show the deployments of a guild and the state of each step.
    Status(StatusArgs),
    /// Show what happened to the steps of a deployment, in order: planned, applied, failed.
    Events(StatusArgs),
}

/// The options that `plan` and `apply` share.
#[derive(Args, Clone, Debug)]
struct TargetArgs {
    /// The base URL of Discord's API. Change it to use a simulator or a proxy.
    #[arg(long, value_name = "URL", default_value = tidegate_discord::dialect::BASE_URL, conflicts_with = "server")]
    base_url: String,
    /// The name of the server's upstream for Discord.
    #[arg(long, value_name = "NAME", default_value = local::UPSTREAM, requires = "server")]
    upstream: String,
    #[command(flatten)]
    store: StoreArgs,
}

/// The options that select the store, or the server that has one.
#[derive(Args, Clone, Debug)]
struct StoreArgs {
    /// Where operations and the journal are stored: file:DIR, memory: (lost on exit), redis://… or
    /// postgres://….
    #[arg(long, value_name = "URL", default_value = DEFAULT_STORE)]
    store: String,
    /// Run it on the server at this address.
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    server: Option<String>,
    /// The environment variable that holds the token, if the server requires one.
    #[arg(long, value_name = "NAME", default_value = "TIDEGATE_TOKEN", requires = "server")]
    token_env: String,
}

impl StoreArgs {
    /// The flag that names the same place in another command; empty for the default. A URL with a
    /// password is left to whoever knows it.
    fn flag(&self) -> String {
        match &self.server {
            Some(server) if server.contains('@') => " --server …".to_owned(),
            Some(server) => format!(" --server {server}"),
            None if self.store == DEFAULT_STORE => String::new(),
            None if self.store.contains('@') => " --store …".to_owned(),
            None => format!(" --store {}", self.store),
        }
    }

    /// Whether it has a password, which no file and no line of output may have.
    fn is_secret(&self) -> bool {
        self.server.as_deref().unwrap_or(&self.store).contains('@')
    }

    /// Returns a client of the server, if one was named.
    fn client(&self) -> Result<Option<Client>, CliError> {
        let args = |server: &String| RemoteArgs { server: server.clone(), token_env: self.token_env.clone() };
        self.server.as_ref().map(|server| Client::new(&args(server))).transpose()
    }
}

#[derive(Args, Debug)]
struct ValidateArgs {
    /// A template, or a folder: every file in it that ends in .yaml or .yml is a template.
    #[arg(value_name = "PATH")]
    place: PathBuf,
}

#[derive(Args, Debug)]
struct ShowArgs {
    /// The file of the plan.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
}

#[derive(Args, Debug)]
struct PlanArgs {
    /// The template, a YAML file.
    #[arg(long, value_name = "FILE")]
    template: PathBuf,
    /// The guild's id.
    #[arg(long, value_name = "ID")]
    guild: Id,
    #[command(flatten)]
    target: TargetArgs,
    /// Plan to remove managed objects that are no longer in the template.
    #[arg(long)]
    prune: bool,
    /// Do not check what the bot may do in the guild.
    #[arg(long)]
    skip_preflight: bool,
    /// Keep the plan in this file, for `apply FILE`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Exit with 0 if there is nothing to change, 2 if there is, 1 if planning failed.
    #[arg(long)]
    detailed_exitcode: bool,
}

#[derive(Args, Debug)]
struct ApplyArgs {
    /// A plan from `plan --out FILE`. If the guild has changed since, nothing is applied.
    #[arg(value_name = "PLAN", conflicts_with_all = ["template", "guild", "prune", "base_url"])]
    plan: Option<PathBuf>,
    /// The template, a YAML file.
    #[arg(long, value_name = "FILE", required_unless_present = "plan")]
    template: Option<PathBuf>,
    /// The guild's id.
    #[arg(long, value_name = "ID", required_unless_present = "plan")]
    guild: Option<Id>,
    #[command(flatten)]
    target: TargetArgs,
    /// Remove managed objects that are no longer in the template.
    #[arg(long)]
    prune: bool,
    /// Apply without asking.
    #[arg(long, short)]
    yes: bool,
    /// Apply without checking first what the bot may do in the guild.
    #[arg(long)]
    skip_preflight: bool,
    /// Believe the journal about messages, instead of reading the channels that have one: a message
    /// that was deleted or edited by hand is not noticed then.
    #[arg(long)]
    trust_journal: bool,
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
    run_command(args.command, output).await.map_err(failure::explain_lock)
}

async fn run_command(command: DeployCommand, output: &Output) -> Result<(), CliError> {
    match command {
        DeployCommand::Validate(validate) => validate::run(&validate.place, output).await,
        DeployCommand::Show(show) => PlanFile::read(&show.plan)?.print(&show.plan, output),
        DeployCommand::Plan(plan) => run_plan(&plan, output).await.map_err(|error| CliError {
            // 2 would mean that there is something to change.
            exit: if plan.detailed_exitcode { 1 } else { error.exit },
            ..error
        }),
        DeployCommand::Apply(apply) => {
            let (wanted, target) = agreed(&apply).await?;
            match target.store.client()? {
                Some(client) => remote::apply(&client, &target.store, &wanted, apply.yes, output).await,
                None => local::apply(&target, &wanted, apply.yes, output).await,
            }
        }
        DeployCommand::Status(which) => match which.store.client()? {
            Some(client) => remote::status(&client, &which, output).await,
            None => status::run(&which, output).await,
        },
        DeployCommand::Events(which) => match which.store.client()? {
            Some(client) => remote::events(&client, &which, output).await,
            None => events::run(&which, output).await,
        },
    }
}

async fn run_plan(plan: &PlanArgs, output: &Output) -> Result<(), CliError> {
    let wanted = read_wanted(&plan.template, plan.guild)
        .await?
        .with_upstream(plan.target.upstream.as_str())
        .with_prune(plan.prune)
        .with_skip_preflight(plan.skip_preflight);
    let planned = match plan.target.store.client()? {
        Some(client) => remote::plan(&client, &wanted).await?,
        None => local::plan(&plan.target, &wanted, output).await?,
    };
    planned.print(output);
    planned.check_conflicts()?;
    if plan.detailed_exitcode && planned.writes() > 0 {
        output.set_exit_code(CHANGES);
    }
    if let Some(file) = &plan.out {
        let kept = PlanFile::new(&wanted, &plan.target, planned);
        kept.write(file)?;
        kept.print_next(file, output);
    }
    Ok(())
}

/// Builds the request of `apply`, from a plan or from a template, and where to apply it.
async fn agreed(apply: &ApplyArgs) -> Result<(DeployRequest, TargetArgs), CliError> {
    let (wanted, target) = match (&apply.plan, &apply.template, apply.guild) {
        (Some(file), ..) => {
            let plan = PlanFile::read(file)?;
            let target = plan.target(&apply.target)?;
            (plan.request.with_plan_digest(plan.digest), target)
        }
        (None, Some(template), Some(guild)) => {
            let wanted = read_wanted(template, guild).await?.with_prune(apply.prune);
            (wanted.with_skip_preflight(apply.skip_preflight), apply.target.clone())
        }
        _ => return Err(CliError::usage("Give a plan, or --template and --guild.")),
    };
    let wanted = wanted
        .with_upstream(target.upstream.as_str())
        .with_trust_journal(apply.trust_journal)
        .with_audit_channel(apply.audit_channel);
    Ok((wanted, target))
}

/// Builds the request, with the template read from its file.
async fn read_wanted(template: &Path, guild: Id) -> Result<DeployRequest, CliError> {
    let TemplateText { file, text } = read_template(template).await?;
    Ok(DeployRequest::new(guild, text).with_file(file))
}
