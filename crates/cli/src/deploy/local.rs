//! Planning and applying with an engine of this process.

use serde_json::json;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_discord::deploy::{Deployer, Error, Planned, Wanted};
use tidegate_discord::plan::Mark;
use tidegate_discord::template::{Problems, Template};
use tidegate_server::Alone;
use tidegate_server::config::{Config, Overrides};

use super::progress::Progress;
use super::{Common, ending};
use crate::output::Output;
use crate::serve::wrong;
use crate::signals::Signals;
use crate::trouble::Trouble;

/// What Discord is called in the store.
pub(super) const UPSTREAM: &str = "discord";
/// Where the bot's token is.
const TOKEN: &str = "DISCORD_TOKEN";

pub(super) async fn plan(common: &Common, output: &Output) -> Result<(), Trouble> {
    let bot = Bot::here(&common.base_url)?;
    let wanted = Wanted { upstream: bot.upstream.clone(), ..super::wanted(common)? };
    let template = wanted.read().map_err(|problems| unusable(&problems))?;
    let mut signals = Signals::new()?;
    let alone = bot.open(common).await?;
    let deployer = Deployer::new(alone.engine.clone(), alone.store.clone());
    let progress = Progress::new(output);
    let planned = tokio::select! {
        planned = deployer.plan(&wanted, &template, &progress) => planned.map_err(trouble),
        () = signals.next() => Err(Trouble::new("Stopped. Nothing was changed.")),
    };
    progress.end();
    alone.engine.drain().await;
    let planned = planned?;
    show(&planned, output);
    settled(planned.plan.conflicts.len())
}

/// A plan that people have to settle first has failed.
pub(super) fn settled(conflicts: usize) -> Result<(), Trouble> {
    if conflicts == 0 {
        return Ok(());
    }
    Err(Trouble::new("The guild and the template do not fit together.").hint(ending::CONFLICTS))
}

fn show(planned: &Planned, output: &Output) {
    let plan = &planned.plan;
    let estimate = plan.estimate(&planned.limits);
    if output.json {
        return output.value(&json!({ "plan": plan.to_json(), "estimate": estimate.to_json() }));
    }
    for line in plan.lines() {
        output.data(&colored(&line.to_string(), output));
    }
    if !plan.is_empty() {
        for line in estimate.to_string().lines() {
            output.say(line);
        }
    }
}

/// A line of a plan in the colour of its mark.
pub(super) fn colored(line: &str, output: &Output) -> String {
    let mark = |mark: Mark| line.trim_start().starts_with([mark.sign()]);
    let marks = [
        (Mark::Add, "32"),
        (Mark::Change, "33"),
        (Mark::Remove, "31"),
        (Mark::Conflict, "1;31"),
        (Mark::Keep, "90"),
    ];
    let code = marks.into_iter().find(|(known, _)| mark(*known)).map(|(_, code)| code);
    code.map_or_else(|| line.to_owned(), |code| output.painted(code, line))
}

pub(super) async fn apply(common: &Common, wanted: &Wanted, output: &Output) -> Result<(), Trouble> {
    // Before anything is opened: whoever mistyped wants to know at once.
    let _: Template = wanted.read().map_err(|problems| unusable(&problems))?;
    let bot = Bot::here(&common.base_url)?;
    let wanted = &Wanted { upstream: bot.upstream.clone(), ..wanted.clone() };
    let mut signals = Signals::new()?;
    let alone = bot.open(common).await?;
    let deployer = Deployer::new(alone.engine.clone(), alone.store.clone());
    let progress = Progress::new(output);
    let applied = tokio::select! {
        applied = deployer.apply(wanted, &progress) => applied.map_err(trouble),
        () = signals.next() => {
            Err(Trouble::new("Stopped. What was done is in the journal: the same command goes on from there."))
        }
    };
    progress.end();
    let _ = signals.unless_again(alone.engine.drain()).await;
    let report = applied?;
    ending::say(wanted, &report, output);
    Ok(())
}

/// The bot whose token is in the environment, at one address.
struct Bot {
    token: String,
    /// What it is called in the store. Another bot, or the same one elsewhere, has limits and a gate of its own.
    upstream: String,
}

impl Bot {
    fn here(base_url: &str) -> Result<Self, Trouble> {
        let token = std::env::var(TOKEN).unwrap_or_default();
        if token.is_empty() {
            return Err(Trouble::usage(format!(
                "The variable {TOKEN} is not set: it holds the bot's token."
            )));
        }
        if token.chars().any(|char| char.is_whitespace() || char.is_control()) {
            let message =
                format!("{TOKEN} holds the token alone: no \"Bot\" before it, no space and no line end.");
            return Err(Trouble::usage(message));
        }
        let hash = Fingerprint::of("deploying bot").part(base_url.as_bytes()).part(token.as_bytes()).finish();
        Ok(Self { token, upstream: format!("{UPSTREAM}-{}", hex(&hash[..4])) })
    }

    async fn open(&self, common: &Common) -> Result<Alone, Trouble> {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let text = format!(
            "[[upstream]]\nname = {}\ndialect = \"discord\"\nbase_url = {}\ntoken_env = {}\n",
            quoted(&self.upstream),
            quoted(&common.base_url),
            quoted(TOKEN),
        );
        let over = Overrides { store_url: Some(common.store.store.clone()), ..Overrides::default() };
        // What else the environment says is for a server.
        let env = |name: &str| (name == TOKEN).then(|| self.token.clone());
        let config = Config::parse("deploy", &text, &env, &over, &[]).map_err(|problems| wrong(&problems))?;
        Ok(Alone::open(&config, &self.upstream).await?)
    }
}

pub(super) fn unusable(problems: &Problems) -> Trouble {
    let trouble = Trouble::new("the template cannot be used");
    problems.to_string().lines().fold(trouble, Trouble::hint)
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn trouble(error: Error) -> Trouble {
    let trouble = Trouble::new(error.to_string());
    match error {
        Error::Conflicts(_) => trouble.hint(ending::CONFLICTS),
        Error::Step { .. } | Error::GaveUp { .. } | Error::Reading(_) => trouble.hint(ending::AGAIN),
        _ => trouble,
    }
}
