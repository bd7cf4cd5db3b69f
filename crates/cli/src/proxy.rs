//! `proxy`: idempotent POSTs in front of a service, until it is told to stop.

use std::path::Path;

use tidegate_idempotency::OnUnknown;
use tidegate_server::ProxyServer;
use tidegate_server::config::{Problems, ProxyConfig, ProxyOverrides, time};

use crate::args::ProxyArgs;
use crate::output::Output;
use crate::serve::wrong;
use crate::signals::Signals;
use crate::trouble::Trouble;

pub(crate) async fn run(args: ProxyArgs, output: &Output) -> Result<(), Trouble> {
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
    let config = ProxyConfig::here(file, &over).map_err(|problems| refused(file, &problems))?;
    let told = config.clone();
    let proxy = tokio::select! {
        proxy = ProxyServer::start(config) => proxy?,
        () = signals.next() => return Ok(()),
    };
    greet(&proxy, &told, file, output);
    signals.next().await;
    tracing::info!("stopping: requests in work may finish");
    signals.unless_again(proxy.shutdown()).await?;
    tracing::info!("stopped");
    Ok(())
}

/// What a flag says, or nobody says where there is no file, is wrong usage; what a file says is not.
fn refused(file: Option<&Path>, problems: &Problems) -> Trouble {
    let is_usage = file.is_none() || problems.0.iter().any(|problem| problem.at.is_flag());
    let trouble = wrong(problems);
    Trouble { exit: if is_usage { 2 } else { trouble.exit }, ..trouble }
}

fn greet(proxy: &ProxyServer, config: &ProxyConfig, file: Option<&Path>, output: &Output) {
    let file = file.map_or_else(|| "none: flags and defaults".to_owned(), |file| file.display().to_string());
    output.say(&format!("tidegate proxies http://{}", proxy.addr));
    output.say(&format!("  upstream   {}", config.upstream));
    output.say(&format!("  admin      http://{}/metrics", proxy.admin_addr));
    output.say(&format!("  config     {file}"));
    output.say(&format!("  store      {}", proxy.store));
    output.say(&format!("  scope      {}", config.scope));
    let sealed = if config.sealing.is_some() { "sealed" } else { "in clear" };
    output.say(&format!("  answers    kept for {}, {sealed}", time(config.policy.ttl)));
    output.say(&format!("  unknown    {}", on_unknown(config.policy.on_unknown)));
    for route in &config.routes {
        let (kept_for, policy) = (time(route.policy.ttl), on_unknown(route.policy.on_unknown));
        output.say(&format!("  route      {} kept for {kept_for}; {policy}", route.path));
    }
}

/// What happens after an unknown outcome, in one sentence.
fn on_unknown(choice: OnUnknown) -> &'static str {
    match choice {
        OnUnknown::Release => {
            "release: a repeat after an unknown outcome may run again; use on_unknown = \"hold\" where money moves"
        }
        OnUnknown::Hold => {
            "hold: a repeat after an unknown outcome gets 409 until the key expires or an operator decides"
        }
    }
}
