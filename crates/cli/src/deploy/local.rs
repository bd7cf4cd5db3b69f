//! `deploy plan` and `deploy apply` with an engine in this process.

use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_discord::deploy::{DeployReport, DeployRequest, Deployer};
use tidegate_discord::template::{Template, TemplateProblems};
use tidegate_server::StandaloneEngine;
use tidegate_server::config::{Config, Overrides};
use tidegate_upstream::http::target::BaseUrl;

use super::failure::{BegunDeployment, deploy_error, plan_error};
use super::progress::Progress;
use super::shown_plan::ShownPlan;
use super::{StoreArgs, TargetArgs, approval, summary};
use crate::error::CliError;
use crate::output::Output;
use crate::serve::config_error;
use crate::signals::Signals;

/// The name of Discord's upstream in the store.
pub(super) const UPSTREAM: &str = "discord";
/// The environment variable that holds the bot's token.
const TOKEN: &str = "DISCORD_TOKEN";
/// What a deployment that was stopped says, and one of a plan from a file.
const STOPPED: &str = "Stopped. The journal has all completed steps: run the same command again to resume.";
const PLAN_STOPPED: &str =
    "Stopped. The journal has all completed steps: plan again, and apply that plan, to resume.";

pub(super) async fn plan(
    target: &TargetArgs,
    wanted: &DeployRequest,
    output: &Output,
) -> Result<ShownPlan, CliError> {
    let bot = Bot::from_environment(&target.base_url)?;
    let wanted = wanted.clone().with_upstream(bot.upstream.as_str());
    let template = wanted.read().map_err(|problems| template_error(&problems))?;
    let mut signals = Signals::new()?;
    let alone = bot.open(target).await?;
    let deployer = Deployer::new(alone.engine.clone(), alone.store.clone());
    let progress = Progress::new(output);
    let planned = tokio::select! {
        planned = deployer.plan(&wanted, &template, &progress) => planned.map_err(|error| plan_error(&error)),
        () = signals.next() => Err(CliError::new("Stopped. Nothing was changed.")),
    };
    progress.end();
    alone.engine.drain().await;
    ShownPlan::from_preview(&planned?)
}

pub(super) async fn apply(
    target: &TargetArgs,
    wanted: &DeployRequest,
    yes: bool,
    output: &Output,
) -> Result<(), CliError> {
    // Before anything is opened, so that a typo is reported at once.
    let template: Template = wanted.read().map_err(|problems| template_error(&problems))?;
    let bot = Bot::from_environment(&target.base_url)?;
    let wanted = wanted.clone().with_upstream(bot.upstream.as_str());
    let mut signals = Signals::new()?;
    let alone = bot.open(target).await?;
    let deployer = Deployer::new(alone.engine.clone(), alone.store.clone());
    let progress = Progress::new(output);
    let approval = Approval { deployer: &deployer, template: &template, yes, progress: &progress, output };
    let applied = tokio::select! {
        applied = approval.approve_and_apply(wanted.clone(), &target.store) => applied,
        () = signals.next() => Err(match progress.deployment() {
            Some(id) => {
                let begun = BegunDeployment { id: &id, guild: wanted.guild, place: &target.store };
                begun.name_in(CliError::new(if wanted.plan_digest.is_some() { PLAN_STOPPED } else { STOPPED }))
            }
            None => CliError::new("Stopped. Nothing was applied."),
        }),
    };
    progress.end();
    let _ = signals.run_until_signal(alone.engine.drain()).await;
    let report = applied?;
    summary::print_summary(&wanted, &report, output);
    Ok(())
}

/// What it takes to show a plan, ask, and apply it.
struct Approval<'a> {
    deployer: &'a Deployer,
    template: &'a Template,
    yes: bool,
    progress: &'a Progress<'a>,
    output: &'a Output,
}

impl Approval<'_> {
    /// Shows the plan, asks, and applies exactly this plan; with `yes` it shows the plan on the
    /// way.
    async fn approve_and_apply(
        &self,
        mut wanted: DeployRequest,
        place: &StoreArgs,
    ) -> Result<DeployReport, CliError> {
        if self.yes {
            self.progress.show_plan(wanted.prune);
        } else {
            let planning = Progress::new(self.output);
            let planned = self.deployer.plan(&wanted, self.template, &planning).await;
            planning.end();
            let shown = ShownPlan::from_preview(&planned.map_err(|error| plan_error(&error))?)?;
            shown.print_remarks(self.output);
            shown.check_conflicts()?;
            if shown.writes() > 0 {
                approval::ask(&wanted, shown.writes(), self.output).await?;
            }
            wanted.plan_digest.get_or_insert(shown.digest);
        }
        let guild = wanted.guild;
        self.deployer.apply(&wanted, self.progress).await.map_err(|error| {
            let id = self.progress.deployment();
            let begun = id.as_deref().map(|id| BegunDeployment { id, guild, place });
            deploy_error(&error, begun.as_ref())
        })
    }
}

/// The bot whose token is in the environment, at one address.
struct Bot {
    token: String,
    /// The name of its upstream in the store. Another bot, or the same bot at another address, has
    /// its own limits and its own gate.
    upstream: String,
}

impl Bot {
    fn from_environment(base_url: &str) -> Result<Self, CliError> {
        if let Err(problem) = BaseUrl::parse(base_url) {
            return Err(CliError::usage(format!("--base-url cannot be used: {problem}")));
        }
        let token = std::env::var(TOKEN).unwrap_or_default();
        if token.is_empty() {
            return Err(CliError::usage(format!(
                "The variable {TOKEN} is not set: set it to the bot's token."
            )));
        }
        if token.chars().any(|char| char.is_whitespace() || char.is_control()) {
            let message =
                format!("{TOKEN} must be the token alone: no \"Bot\" before it, no space, no line break.");
            return Err(CliError::usage(message));
        }
        let hash = Fingerprint::of("deploying bot").part(base_url.as_bytes()).part(token.as_bytes()).finish();
        Ok(Self { token, upstream: format!("{UPSTREAM}-{}", hex(&hash[..4])) })
    }

    async fn open(&self, target: &TargetArgs) -> Result<StandaloneEngine, CliError> {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let text = format!(
            "[[upstream]]\nname = {}\ndialect = \"discord\"\nbase_url = {}\ntoken_env = {}\n",
            quoted(&self.upstream),
            quoted(&target.base_url),
            quoted(TOKEN),
        );
        let over = Overrides { store_url: Some(target.store.store.clone()), ..Overrides::default() };
        // All other environment variables are meant for a server.
        let env = |name: &str| (name == TOKEN).then(|| self.token.clone());
        let config =
            Config::parse("deploy", &text, &env, &over, &[]).map_err(|problems| config_error(&problems))?;
        Ok(StandaloneEngine::open(&config, &self.upstream).await?)
    }
}

pub(super) fn template_error(problems: &TemplateProblems) -> CliError {
    let trouble = CliError::new("the template cannot be used");
    problems.to_string().lines().fold(trouble, CliError::hint)
}
