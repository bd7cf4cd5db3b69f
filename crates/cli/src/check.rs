//! `check-config`: says what is wrong with a file as `serve` or `proxy` would, and uses nothing of it.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_server::Config;
use tidegate_server::backend::shown;
use tidegate_server::config::{Overrides, Problem, Problems, ProxyConfig, ProxyOverrides};

use crate::output::Output;
use crate::trouble::Trouble;

pub(crate) fn run(file: &Path, output: &Output) -> Result<(), Trouble> {
    let refused = |problems: Problems| refused(file, &problems, output);
    if ProxyConfig::is_in(file).map_err(refused)? {
        let config = ProxyConfig::here(Some(file), &ProxyOverrides::default()).map_err(refused)?;
        proxy(file, &config, output);
        return Ok(());
    }
    let config = Config::here(Some(file), &Overrides::default()).map_err(refused)?;
    let file = file.display().to_string();
    let (upstreams, tokens) = (config.upstreams.len(), config.tokens.len());
    let limits = config.limit_count();
    let archive = config.archive_url.as_deref().map(shown);
    if output.json {
        output.value(&json!({
            "file": file, "upstreams": upstreams, "limits": limits, "tokens": tokens,
            "listen": config.listen.to_string(), "store": shown(&config.store_url), "archive": archive,
        }));
        return Ok(());
    }
    output.data(&format!(
        "{file}: good: {}, {}, {}; listens on {}, keeps {}{}",
        counted(upstreams, "upstream", "upstreams"),
        counted(limits, "limit", "limits"),
        counted(tokens, "token", "tokens"),
        config.listen,
        shown(&config.store_url),
        archive.map(|archive| format!(", archives to {archive}")).unwrap_or_default(),
    ));
    Ok(())
}

/// A file of the proxy.
fn proxy(file: &Path, config: &ProxyConfig, output: &Output) {
    let (file, routes) = (file.display().to_string(), config.routes.len());
    let (upstream, store) = (config.upstream.to_string(), shown(&config.store_url));
    if output.json {
        return output.value(&json!({
            "file": file, "upstream": upstream, "routes": routes, "listen": config.listen.to_string(),
            "admin_listen": config.admin_listen.to_string(), "store": store,
        }));
    }
    output.data(&format!(
        "{file}: good: a proxy for {upstream}, {}; listens on {}, keeps {store}",
        counted(routes, "route", "routes"),
        config.listen,
    ));
}

fn refused(file: &Path, problems: &Problems, output: &Output) -> Trouble {
    output.remark(&problems.to_string());
    let things = counted(problems.0.len(), "thing is", "things are");
    Trouble::new(format!("{things} wrong with {}.", file.display()))
        .code(tidegate::Code::BadConfig.to_string())
        .detail(json!({ "problems": listed(problems) }))
}

/// What is wrong, for scripts.
fn listed(problems: &Problems) -> Vec<Value> {
    let one = |problem: &Problem| json!({ "at": problem.at.to_string(), "key": problem.place, "message": problem.message });
    problems.0.iter().map(one).collect()
}

fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}
