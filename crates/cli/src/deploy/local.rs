//! Planning and applying with an engine of this process.

use serde_json::json;
use tidegate_discord::deploy::{Deployer, Error, Planned, Quiet, Wanted};
use tidegate_discord::plan::{Line, Mark};
use tidegate_discord::template::{Problems, Template};
use tidegate_server::Alone;
use tidegate_server::config::{Config, Overrides};

use super::Common;
use super::progress::Progress;
use crate::output::Output;
use crate::serve::wrong;
use crate::signals::Signals;
use crate::trouble::Trouble;

/// What Discord is called in the store.
pub(super) const UPSTREAM: &str = "discord";
/// Where the bot's token is.
const TOKEN: &str = "DISCORD_TOKEN";

pub(super) async fn plan(common: &Common, output: &Output) -> Result<(), Trouble> {
    let wanted = super::wanted(common)?;
    let template = wanted.read().map_err(|problems| unusable(&problems))?;
    let mut signals = Signals::new()?;
    let alone = open(common).await?;
    let deployer = Deployer::new(alone.engine.clone(), alone.store.clone());
    let planned = tokio::select! {
        planned = deployer.plan(&wanted, &template, &Quiet) => planned.map_err(trouble),
        () = signals.next() => Err(Trouble::new("Stopped. Nothing was changed.")),
    };
    alone.engine.drain().await;
    show(&planned?, output);
    Ok(())
}

fn show(planned: &Planned, output: &Output) {
    let plan = &planned.plan;
    let estimate = plan.estimate(&planned.limits);
    if output.json {
        return output.value(&json!({ "plan": plan.to_json(), "estimate": estimate.to_json() }));
    }
    for line in plan.lines() {
        output.data(&colored(&line, output));
    }
    if !plan.is_empty() {
        for line in estimate.to_string().lines() {
            output.say(line);
        }
    }
}

fn colored(line: &Line, output: &Output) -> String {
    let code = match line.mark {
        Mark::Add => "32",
        Mark::Change => "33",
        Mark::Remove => "31",
        Mark::Conflict => "1;31",
        Mark::Keep => "90",
        Mark::Note => return line.to_string(),
    };
    output.painted(code, &line.to_string())
}

pub(super) async fn apply(common: &Common, wanted: &Wanted, output: &Output) -> Result<(), Trouble> {
    // Before anything is opened: whoever mistyped wants to know at once.
    let _: Template = wanted.read().map_err(|problems| unusable(&problems))?;
    let mut signals = Signals::new()?;
    let alone = open(common).await?;
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
    if output.json {
        let value = serde_json::to_value(&report).map_err(|error| Trouble::new(error.to_string()))?;
        output.value(&value);
        return Ok(());
    }
    let counts = [
        (report.created, "created"),
        (report.updated, "updated"),
        (report.moved, "put in order"),
        (report.removed, "removed"),
        (report.skipped, "as they should be"),
    ];
    let counts: Vec<_> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    output.data(&format!("Guild {} is as the template says: {}.", wanted.guild, counts.join(", ")));
    if report.leftovers > 0 && !wanted.prune {
        output.say(&format!(
            "{} managed objects are not in the template; --prune removes them.",
            report.leftovers
        ));
    }
    output.say(&format!("deployment {}", report.deployment));
    Ok(())
}

async fn open(common: &Common) -> Result<Alone, Trouble> {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let text = format!(
        "[[upstream]]\nname = {}\ndialect = \"discord\"\nbase_url = {}\ntoken_env = {}\n",
        quoted(UPSTREAM),
        quoted(&common.base_url),
        quoted(TOKEN),
    );
    let over = Overrides { store_url: Some(common.store.store.clone()), ..Overrides::default() };
    // What else the environment says is for a server.
    let env = |name: &str| (name == TOKEN).then(|| std::env::var(TOKEN).ok()).flatten();
    if env(TOKEN).is_none_or(|token| token.is_empty()) {
        return Err(Trouble::usage(format!("The variable {TOKEN} is not set: it holds the bot's token.")));
    }
    let config = Config::parse("deploy", &text, &env, &over, &[]).map_err(|problems| wrong(&problems))?;
    Ok(Alone::open(&config, UPSTREAM).await?)
}

fn unusable(problems: &Problems) -> Trouble {
    let trouble = Trouble::new("the template cannot be used");
    problems.to_string().lines().fold(trouble, |trouble, line| trouble.hint(line))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn trouble(error: Error) -> Trouble {
    let trouble = Trouble::new(error.to_string());
    match error {
        Error::Conflicts(_) => {
            trouble.hint("Nothing else was changed. Settle this in Discord, and run it again.")
        }
        Error::Step { .. } | Error::GaveUp { .. } | Error::Reading(_) => {
            trouble.hint("What was done is in the journal: the same command goes on from there.")
        }
        _ => trouble,
    }
}
