//! `proxy`: runs the idempotency proxy in front of a service until a signal stops it.

use std::path::Path;

use tidegate_idempotency::UnknownOutcomePolicy;
use tidegate_server::ProxyServer;
use tidegate_server::config::{ConfigProblems, ProxyConfig, ProxyOverrides, format_duration};

use crate::args::{LogFormat, ProxyArgs};
use crate::banner::Banner;
use crate::error::CliError;
use crate::output::Output;
use crate::serve::config_error;
use crate::signals::Signals;

pub(crate) async fn run(args: ProxyArgs, format: LogFormat, output: &Output) -> Result<(), CliError> {
    let mut signals = Signals::new()?;
    let over = ProxyOverrides {
        upstream: args.upstream,
        listen: args.listen,
        admin_listen: args.admin,
        store_url: args.store,
        ttl: args.ttl,
        scope_header: args.scope_header,
        unscoped: args.unscoped,
    };
    let file = args.config.as_deref();
    let config = ProxyConfig::load(file, &over).map_err(|problems| proxy_config_error(file, &problems))?;
    let told = config.clone();
    let proxy = tokio::select! {
        proxy = ProxyServer::start(config) => proxy?,
        () = signals.next() => return Ok(()),
    };
    banner(&proxy, &told, file).print(format, output);
    signals.next().await;
    tracing::info!("stopping: requests in flight may finish");
    signals.run_until_signal(proxy.shutdown()).await?;
    tracing::info!("stopped");
    Ok(())
}

/// Builds the error for a bad configuration. It is an error of usage if a flag is wrong, or if
/// something is missing and there is no file; a problem in the file is not.
fn proxy_config_error(file: Option<&Path>, problems: &ConfigProblems) -> CliError {
    let is_usage = file.is_none() || problems.0.iter().any(|problem| problem.at.is_flag());
    let trouble = config_error(problems);
    CliError { exit: if is_usage { 2 } else { trouble.exit }, ..trouble }
}

fn banner(proxy: &ProxyServer, config: &ProxyConfig, file: Option<&Path>) -> Banner {
    let file = file.map_or_else(|| "none: flags and defaults".to_owned(), |file| file.display().to_string());
    let mut banner = Banner::new(format!("tidegate proxies http://{}", proxy.addr));
    banner.add("upstream", config.upstream.to_string());
    banner.add("admin", format!("http://{}/metrics", proxy.admin_addr));
    banner.add("config", file);
    banner.add("store", &*proxy.store);
    banner.add("scope", config.scope.to_string());
    let sealed = if config.sealing.is_some() { "encrypted" } else { "not encrypted" };
    banner.add("responses", format!("kept for {}, {sealed}", format_duration(config.policy.ttl)));
    banner.add("unknown", describe_on_unknown(config.policy.on_unknown));
    for route in &config.routes {
        let (kept_for, policy) =
            (format_duration(route.policy.ttl), describe_on_unknown(route.policy.on_unknown));
        banner.add("route", format!("{} kept for {kept_for}; {policy}", route.path));
    }
    banner
}

/// Describes what happens after an unknown outcome, in one sentence.
fn describe_on_unknown(choice: UnknownOutcomePolicy) -> &'static str {
    match choice {
        UnknownOutcomePolicy::Release => {
            "release: a repeat after an unknown outcome may run again; use on_unknown = \"hold\" where money moves"
        }
        UnknownOutcomePolicy::Hold => {
            "hold: a repeat after an unknown outcome gets 409 until the key expires or an operator decides"
        }
    }
}
