//! `check-config`: reports the problems of a configuration file as `serve` or `proxy` would,
//! without starting anything.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_server::Config;
use tidegate_server::backend::redact_url;
use tidegate_server::config::{
    ConfigProblem, ConfigProblems, Overrides, ProxyConfig, ProxyOverrides, TokenFile,
};

use crate::error::CliError;
use crate::output::{Output, pluralize};

pub(crate) fn run(file: &Path, output: &Output) -> Result<(), CliError> {
    let refused = |problems: ConfigProblems| config_error(file, &problems, output);
    if ProxyConfig::is_proxy_file(file).map_err(refused)? {
        let config = ProxyConfig::load(Some(file), &ProxyOverrides::default()).map_err(refused)?;
        print_proxy(file, &config, output);
        return Ok(());
    }
    let config = Config::load(Some(file), &Overrides::default()).map_err(refused)?;
    let in_file = config.auth.tokens_file.as_ref().map(TokenFile::read).transpose().map_err(refused)?;
    let tokens = config.tokens.len() + in_file.map_or(0, |tokens| tokens.len());
    let (file, upstreams) = (file.display().to_string(), config.upstreams.len());
    let kinds = config.remote_kinds.len();
    let limits =
        config.limit_count() + config.remote_kinds.iter().map(|kind| kind.limits.len()).sum::<usize>();
    let dispatch = &config.generations.dispatch;
    let (providers, models) = (dispatch.providers.len(), dispatch.models.len());
    let archive = config.archive_url.as_deref().map(redact_url);
    if output.json {
        output.print_json(&json!({
            "file": file, "upstreams": upstreams, "kinds": kinds, "limits": limits, "tokens": tokens,
            "providers": providers, "models": models,
            "listen": config.listen.to_string(), "store": redact_url(&config.store_url), "archive": archive,
        }));
        return Ok(());
    }
    let counted = [
        (upstreams, "upstream", "upstreams", true),
        (kinds, "kind", "kinds", kinds > 0),
        (limits, "limit", "limits", true),
        (providers, "provider", "providers", providers > 0),
        (models, "model", "models", models > 0),
        (tokens, "token", "tokens", true),
    ];
    let counted = counted.iter().filter(|(.., is_shown)| *is_shown);
    let counted: Vec<_> = counted.map(|(count, one, more, _)| pluralize(*count, one, more)).collect();
    output.print_data(&format!(
        "{file}: valid: {}; listens on {}, stores in {}{}",
        counted.join(", "),
        config.listen,
        redact_url(&config.store_url),
        archive.map(|archive| format!(", archives to {archive}")).unwrap_or_default(),
    ));
    Ok(())
}

/// Prints the summary of a valid proxy configuration.
fn print_proxy(file: &Path, config: &ProxyConfig, output: &Output) {
    let (file, routes) = (file.display().to_string(), config.routes.len());
    let (upstream, store) = (config.upstream.to_string(), redact_url(&config.store_url));
    if output.json {
        return output.print_json(&json!({
            "file": file, "upstream": upstream, "routes": routes, "listen": config.listen.to_string(),
            "admin_listen": config.admin_listen.to_string(), "store": store,
        }));
    }
    output.print_data(&format!(
        "{file}: valid: a proxy for {upstream}, {}; listens on {}, stores in {store}",
        pluralize(routes, "route", "routes"),
        config.listen,
    ));
}

fn config_error(file: &Path, problems: &ConfigProblems, output: &Output) -> CliError {
    output.print_remark(&problems.to_string());
    let things = pluralize(problems.0.len(), "problem", "problems");
    CliError::new(format!("{things} in {}.", file.display()))
        .code(tidegate_server::ErrorCode::BadConfig.to_string())
        .detail(json!({ "problems": problems_json(problems) }))
}

/// The problems as JSON, for scripts.
fn problems_json(problems: &ConfigProblems) -> Vec<Value> {
    let one = |problem: &ConfigProblem| json!({ "at": problem.at.to_string(), "key": problem.key_path, "message": problem.message });
    problems.0.iter().map(one).collect()
}
