//! `check-config`: says what is wrong with a file as `serve` would, and uses nothing of it.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_server::Config;
use tidegate_server::backend::shown;
use tidegate_server::config::{Overrides, Problem, Problems};

use crate::output::Output;
use crate::trouble::Trouble;

pub(crate) fn run(file: &Path, output: &Output) -> Result<(), Trouble> {
    let config = Config::here(Some(file), &Overrides::default()).map_err(|problems| {
        output.remark(&problems.to_string());
        let things = counted(problems.0.len(), "thing is", "things are");
        Trouble::new(format!("{things} wrong with {}.", file.display()))
            .code(tidegate::Code::BadConfig.to_string())
            .detail(json!({ "problems": listed(&problems) }))
    })?;
    let file = file.display().to_string();
    let (upstreams, tokens) = (config.upstreams.len(), config.tokens.len());
    let limits = config.upstreams.iter().map(|upstream| upstream.limits.len()).sum();
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

/// What is wrong, for scripts.
fn listed(problems: &Problems) -> Vec<Value> {
    let one = |problem: &Problem| json!({ "at": problem.at.to_string(), "key": problem.place, "message": problem.message });
    problems.0.iter().map(one).collect()
}

fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}
