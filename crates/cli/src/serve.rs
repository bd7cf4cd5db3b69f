//! `serve`: the API, the page and the workers, until it is told to stop.

use std::path::{Path, PathBuf};

use tidegate_server::config::{Overrides, Problems};
use tidegate_server::{Config, Server};
use tidegate_upstream::http::{LimitKind, UpstreamConfig};

use crate::args::ServeArgs;
use crate::output::Output;
use crate::signals::Signals;
use crate::trouble::Trouble;

/// What is read when nothing is said and it is there.
const USUAL: &str = "tidegate.toml";

pub(crate) async fn run(args: ServeArgs, output: &Output) -> Result<(), Trouble> {
    let mut signals = Signals::new()?;
    let over = Overrides {
        listen: args.listen,
        store_url: args.store,
        workers: args.workers.and_then(|workers| usize::try_from(workers).ok()),
    };
    let file = args.config.or_else(|| Path::new(USUAL).exists().then(|| PathBuf::from(USUAL)));
    let config = Config::here(file.as_deref(), &over).map_err(|problems| wrong(&problems))?;
    let upstreams: Vec<_> = config.upstreams.iter().map(|upstream| told(upstream, &config)).collect();
    let server = tokio::select! {
        server = Server::start(config) => server?,
        () = signals.next() => return Ok(()),
    };
    greet(&server, file.as_deref(), &upstreams, output);
    tokio::select! {
        () = signals.next() => {}
        error = server.failed() => {
            tracing::error!(code = %error.code, error = error.message, "the engine stopped");
            return Err(error.into());
        }
    }
    tracing::info!("stopping: calls under way may finish");
    signals.unless_again(server.shutdown()).await?;
    tracing::info!("stopped");
    Ok(())
}

pub(crate) fn wrong(problems: &Problems) -> Trouble {
    let trouble =
        Trouble::new("the configuration cannot be used").code(tidegate::Code::BadConfig.to_string());
    problems.0.iter().fold(trouble, |trouble, problem| trouble.hint(problem.to_string()))
}

fn greet(server: &Server, file: Option<&Path>, upstreams: &[String], output: &Output) {
    let file =
        file.map_or_else(|| "defaults (no tidegate.toml here)".to_owned(), |file| file.display().to_string());
    output.say(&format!("tidegate serves http://{}", server.addr));
    output.say(&format!("  page       http://{}/", server.addr));
    output.say(&format!("  config     {file}"));
    output.say(&format!("  store      {}", server.store));
    if let Some(archive) = &server.archive {
        output.say(&format!("  archive    {archive}"));
    }
    if upstreams.is_empty() {
        output.say("  upstreams  none: add an [[upstream]] to the configuration to carry anything");
    }
    for upstream in upstreams {
        output.say(&format!("  upstream   {upstream}"));
    }
}

/// An upstream in a line.
fn told(upstream: &UpstreamConfig, config: &Config) -> String {
    let limits: Vec<_> =
        upstream.limits.iter().map(|limit| format!("{} {}", limit.name, figures(limit.kind))).collect();
    let limits = match limits.is_empty() {
        _ if config.shopify.contains_key(&upstream.name) => "limits learned from Shopify".to_owned(),
        _ if config.discord.contains_key(&upstream.name) => "limits learned from Discord".to_owned(),
        true => "no limits".to_owned(),
        false => limits.join(", "),
    };
    format!("{} at {} ({limits})", upstream.name, upstream.base_url)
}

/// A limit's figures in a few words.
fn figures(kind: LimitKind) -> String {
    match kind {
        LimitKind::Drip { capacity, refill_per_s } => format!("{capacity}, {refill_per_s}/s"),
        LimitKind::AtOnce { at_once } => format!("{at_once} at once"),
    }
}
