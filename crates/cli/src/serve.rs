//! `serve`: runs the API, the status page and the workers until a signal stops them.

use std::path::{Path, PathBuf};

use tidegate_server::config::{ConfigProblems, Overrides};
use tidegate_server::{Config, Server};
use tidegate_upstream::http::{LimitKind, UpstreamConfig};

use crate::args::ServeArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::signals::Signals;

/// The configuration file that is read by default, if it exists.
pub(crate) const DEFAULT_FILE: &str = "tidegate.toml";

pub(crate) async fn run(args: ServeArgs, output: &Output) -> Result<(), CliError> {
    let mut signals = Signals::new()?;
    let over = Overrides {
        listen: args.listen,
        store_url: args.store,
        workers: args.workers.and_then(|workers| usize::try_from(workers).ok()),
    };
    let file = args.config.or_else(|| Path::new(DEFAULT_FILE).exists().then(|| PathBuf::from(DEFAULT_FILE)));
    let config = Config::load(file.as_deref(), &over).map_err(|problems| config_error(&problems))?;
    let upstreams: Vec<_> =
        config.upstreams.iter().map(|upstream| describe_upstream(upstream, &config)).collect();
    let server = tokio::select! {
        server = Server::start(config) => server?,
        () = signals.next() => return Ok(()),
    };
    print_banner(&server, file.as_deref(), &upstreams, output);
    tokio::select! {
        () = signals.next() => {}
        error = server.failed() => {
            tracing::error!(code = %error.code, error = error.message, "the engine stopped");
            return Err(error.into());
        }
    }
    tracing::info!("stopping: calls in flight may finish");
    signals.run_until_signal(server.shutdown()).await?;
    tracing::info!("stopped");
    Ok(())
}

pub(crate) fn config_error(problems: &ConfigProblems) -> CliError {
    let trouble = CliError::new("the configuration cannot be used")
        .code(tidegate_server::ErrorCode::BadConfig.to_string());
    problems.0.iter().fold(trouble, |trouble, problem| trouble.hint(problem.to_string()))
}

fn print_banner(server: &Server, file: Option<&Path>, upstreams: &[String], output: &Output) {
    let file =
        file.map_or_else(|| "defaults (no tidegate.toml here)".to_owned(), |file| file.display().to_string());
    output.print_status(&format!("tidegate serves http://{}", server.addr));
    output.print_status(&format!("  page       http://{}/", server.addr));
    output.print_status(&format!("  config     {file}"));
    output.print_status(&format!("  store      {}", server.store));
    if let Some(archive) = &server.archive {
        output.print_status(&format!("  archive    {archive}"));
    }
    if upstreams.is_empty() {
        output.print_status("  upstreams  none: add an [[upstream]] to the configuration to send anything");
    }
    for upstream in upstreams {
        output.print_status(&format!("  upstream   {upstream}"));
    }
}

/// Describes an upstream in one line.
fn describe_upstream(upstream: &UpstreamConfig, config: &Config) -> String {
    let limits: Vec<_> = upstream
        .limits
        .iter()
        .map(|limit| format!("{} {}", limit.name, describe_limit(limit.kind)))
        .collect();
    let limits = match limits.is_empty() {
        _ if config.shopify.contains_key(&upstream.name) => "limits learned from Shopify".to_owned(),
        _ if config.discord.contains_key(&upstream.name) => "limits learned from Discord".to_owned(),
        true => "no limits".to_owned(),
        false => limits.join(", "),
    };
    format!("{} at {} ({limits})", upstream.name, upstream.base_url)
}

/// Describes the figures of a limit in a few words.
fn describe_limit(kind: LimitKind) -> String {
    match kind {
        LimitKind::Drip { capacity, refill_per_s } => format!("{capacity}, {refill_per_s}/s"),
        LimitKind::AtOnce { at_once } => format!("{at_once} at once"),
    }
}
