//! `serve`: runs the API, the status page and the workers until a signal stops them.

use std::path::{Path, PathBuf};

use tidegate_server::config::{ConfigProblems, Overrides};
use tidegate_server::{Config, Server};
use tidegate_upstream::RemoteKindConfig;
use tidegate_upstream::http::{LimitConfig, LimitKind, UpstreamConfig};

use crate::args::{LogFormat, ServeArgs};
use crate::banner::Banner;
use crate::error::CliError;
use crate::output::Output;
use crate::signals::Signals;

/// The configuration file that is read by default, if it exists.
pub(crate) const DEFAULT_FILE: &str = "tidegate.toml";

pub(crate) async fn run(args: ServeArgs, format: LogFormat, output: &Output) -> Result<(), CliError> {
    let mut signals = Signals::new()?;
    let over = Overrides {
        listen: args.listen,
        store_url: args.store,
        workers: args.workers.and_then(|workers| usize::try_from(workers).ok()),
    };
    let file = args.config.or_else(|| Path::new(DEFAULT_FILE).exists().then(|| PathBuf::from(DEFAULT_FILE)));
    let config = Config::load(file.as_deref(), &over).map_err(|problems| config_error(&problems))?;
    let targets = describe_targets(&config);
    let server = tokio::select! {
        server = Server::start(config) => server?,
        () = signals.next() => return Ok(()),
    };
    banner(&server, file.as_deref(), targets).print(format, output);
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

fn banner(server: &Server, file: Option<&Path>, targets: Vec<(&'static str, String)>) -> Banner {
    let file =
        file.map_or_else(|| "defaults (no tidegate.toml here)".to_owned(), |file| file.display().to_string());
    let url = format!("{}://{}", server.scheme, server.addr);
    let mut banner = Banner::new(format!("tidegate serves {url}"));
    banner.add("page", format!("{url}/"));
    banner.add("config", file);
    banner.add("store", &*server.store);
    if let Some(archive) = &server.archive {
        banner.add("archive", &**archive);
    }
    for (name, target) in targets {
        banner.add(name, target);
    }
    banner
}

/// Describes where operations go: each upstream and each kind of remote workers, the
/// models of generations and their providers.
fn describe_targets(config: &Config) -> Vec<(&'static str, String)> {
    let upstream = |one: &UpstreamConfig| ("upstream", describe_upstream(one, config));
    let kind = |kind: &RemoteKindConfig| {
        let limits = describe_limits(&kind.limits);
        ("kind", format!("{} for remote workers ({limits})", kind.name))
    };
    let upstreams = config.upstreams.iter().map(upstream);
    let mut targets: Vec<_> = upstreams.chain(config.remote_kinds.iter().map(kind)).collect();
    let dispatch = &config.generations.dispatch;
    if !dispatch.models.is_empty() {
        let models: Vec<_> = dispatch.models.iter().map(|model| model.name.as_str()).collect();
        let providers: Vec<_> = dispatch.providers.iter().map(|provider| provider.name.as_str()).collect();
        targets.push(("models", models.join(", ")));
        targets.push(("providers", providers.join(", ")));
    }
    match targets.is_empty() {
        true => {
            let none = "none: add an [[upstream]] to the configuration to send anything";
            vec![("upstreams", none.to_owned())]
        }
        false => targets,
    }
}

/// Describes an upstream in one line.
fn describe_upstream(upstream: &UpstreamConfig, config: &Config) -> String {
    let limits = match &upstream.name {
        name if config.shopify.contains_key(name) => "limits learned from Shopify".to_owned(),
        name if config.discord.contains_key(name) => "limits learned from Discord".to_owned(),
        _ => describe_limits(&upstream.limits),
    };
    format!("{} at {} ({limits})", upstream.name, upstream.base_url)
}

fn describe_limits(limits: &[LimitConfig]) -> String {
    let limits = limits.iter().map(|limit| format!("{} {}", limit.name, describe_limit(limit.kind)));
    let limits: Vec<_> = limits.collect();
    if limits.is_empty() { "no limits".to_owned() } else { limits.join(", ") }
}

/// Describes the figures of a limit in a few words.
fn describe_limit(kind: LimitKind) -> String {
    match kind {
        LimitKind::Drip { capacity, refill_per_s } => format!("{capacity}, {refill_per_s}/s"),
        LimitKind::AtOnce { at_once } => format!("{at_once} at once"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The banner names every upstream and every kind that is left to remote workers.
    #[test]
    fn the_banner_names_kinds() {
        let toml = r#"
            [[upstream]]
            name = "echo"
            base_url = "http://127.0.0.1:9"
            [[kind]]
            name = "resize"
            worker = "remote"
            [[kind.limit]]
            name = "slots"
            at_once = 4
        "#;
        let parse = |toml| Config::parse("t", toml, &|_| None, &Overrides::default(), &[]).unwrap();
        let described = describe_targets(&parse(toml));
        let expected = [
            ("upstream", "echo at http://127.0.0.1:9 (no limits)".to_owned()),
            ("kind", "resize for remote workers (slots 4 at once)".to_owned()),
        ];
        assert_eq!(described, expected);
        assert!(describe_targets(&parse(""))[0].1.starts_with("none"));
        let generations = r#"
            [provider.replicate]
            key_env = "KEY"
            [model.flux]
            chain = [{ provider = "replicate", model = "black-forest-labs/flux-schnell" }]
        "#;
        let env = |name: &str| (name == "KEY").then(|| "a-key-of-a-provider".to_owned());
        let config = Config::parse("t", generations, &env, &Overrides::default(), &[]).unwrap();
        assert_eq!(
            describe_targets(&config),
            [("models", "flux".to_owned()), ("providers", "replicate".to_owned())]
        );
    }
}
