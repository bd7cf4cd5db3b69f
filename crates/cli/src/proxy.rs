//! `proxy`: runs the idempotency proxy in front of a service until a signal stops it.

use std::path::Path;

use tidegate_idempotency::UnknownOutcomePolicy;
use tidegate_server::ProxyServer;
use tidegate_server::config::{ConfigProblems, ProxyConfig, ProxyOverrides, format_duration};

use crate::args::ProxyArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::serve::config_error;
use crate::signals::Signals;

pub(crate) async fn run(args: ProxyArgs, output: &Output) -> Result<(), CliError> {
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
    print_banner(&proxy, &told, file, output);
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

fn print_banner(proxy: &ProxyServer, config: &ProxyConfig, file: Option<&Path>, output: &Output) {
    let file = file.map_or_else(|| "none: flags and defaults".to_owned(), |file| file.display().to_string());
    output.print_status(&format!("tidegate proxies http://{}", proxy.addr));
    output.print_status(&format!("  upstream   {}", config.upstream));
    output.print_status(&format!("  admin      http://{}/metrics", proxy.admin_addr));
    output.print_status(&format!("  config     {file}"));
    output.print_status(&format!("  store      {}", proxy.store));
    output.print_status(&format!("  scope      {}", config.scope));
    let sealed = if config.sealing.is_some() { "encrypted" } else { "not encrypted" };
    output.print_status(&format!("  responses  kept for {}, {sealed}", format_duration(config.policy.ttl)));
    output.print_status(&format!("  unknown    {}", describe_on_unknown(config.policy.on_unknown)));
    for route in &config.routes {
        let (kept_for, policy) =
            (format_duration(route.policy.ttl), describe_on_unknown(route.policy.on_unknown));
        output.print_status(&format!("  route      {} kept for {kept_for}; {policy}", route.path));
    }
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
