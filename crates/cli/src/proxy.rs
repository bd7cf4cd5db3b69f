//! `proxy`: idempotent POSTs in front of a service, until it is told to stop.

use std::path::Path;

use tidegate_server::ProxyServer;
use tidegate_server::config::{ProxyConfig, ProxyOverrides};

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
    let config = ProxyConfig::here(file, &over).map_err(|problems| wrong(&problems))?;
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

fn greet(proxy: &ProxyServer, config: &ProxyConfig, file: Option<&Path>, output: &Output) {
    let file = file.map_or_else(|| "none: flags and defaults".to_owned(), |file| file.display().to_string());
    output.say(&format!("tidegate proxies http://{}", proxy.addr));
    output.say(&format!("  upstream   {}", config.upstream));
    output.say(&format!("  admin      http://{}/metrics", proxy.admin_addr));
    output.say(&format!("  config     {file}"));
    output.say(&format!("  store      {}", proxy.store));
    output.say(&format!("  scope      {}", config.scope));
    let sealed = if config.seal_key_env.is_some() { "sealed" } else { "in clear" };
    output.say(&format!("  answers    kept for {}s, {sealed}", config.policy.ttl.as_secs()));
    for route in &config.routes {
        output.say(&format!("  route      {} kept for {}s", route.path, route.policy.ttl.as_secs()));
    }
}
