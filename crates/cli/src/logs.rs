//! The log, on stderr: text on a terminal, otherwise one JSON object per line.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{LogArgs, LogFormat};
use crate::error::CliError;

/// The log target of changes made by an operator.
const AUDIT: &str = "audit";

/// A log target that repeats, for each connection, an error that the code that connects logs once.
const VERIFIER: &str = "rustls_platform_verifier";

/// Starts logging at the requested level, by default `usual`, and returns the format of its lines.
pub(crate) fn start(args: &LogArgs, usual: &str) -> Result<LogFormat, CliError> {
    let log = tracing_subscriber::registry().with(filter(args.log_level.as_deref().unwrap_or(usual))?);
    let terminal = std::io::stderr().is_terminal();
    let format = args.log_format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let lines = fmt::layer().with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => log.with(lines.with_ansi(terminal).with_target(false)).try_init(),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false).with_span_list(false);
            log.with(lines).try_init()
        }
    };
    started.map_err(|error| CliError::new(format!("Cannot start logging: {error}.")))?;
    Ok(format)
}

/// Parses the log filter: a level, or a list of levels per target.
fn filter(level: &str) -> Result<Targets, CliError> {
    let wrong = |part: &str| {
        CliError::usage(format!(
            "The log level {part:?} is invalid: use error, warn, info, debug, trace or off, or a list such as info,tidegate=debug."
        ))
    };
    // A word that is not a level would be taken for a target, so that everything of that target
    // and nothing else would be logged.
    for part in level.split(',') {
        let level = part.rsplit('=').next().unwrap_or_default();
        if level.is_empty() || level.parse::<LevelFilter>().is_err() {
            return Err(wrong(part));
        }
    }
    let targets: Targets = level.parse().map_err(|_| wrong(level))?;
    let targets =
        if level.contains(VERIFIER) { targets } else { targets.with_target(VERIFIER, LevelFilter::OFF) };
    // Changes by an operator are logged however quiet the log is, unless the filter names them.
    let is_named = level.split(',').any(|part| part.starts_with(AUDIT) || part.eq_ignore_ascii_case("off"));
    Ok(if is_named { targets } else { targets.with_target(AUDIT, LevelFilter::INFO) })
}

#[cfg(test)]
mod tests {
    use super::filter;

    /// IDM-22: who changed a key by hand is logged at every level, unless switched off by name.
    #[test]
    fn idm_22_the_audit_passes_every_level() {
        let passes = |level: &str| filter(level).unwrap().would_enable("audit", &tracing::Level::INFO);
        assert!(["info", "warn", "error", "warn,tidegate=debug"].into_iter().all(passes));
        assert!(!["off", "info,audit=off"].into_iter().any(passes));
        assert!(!filter("warn").unwrap().would_enable("tidegate", &tracing::Level::INFO));
    }

    /// IDM-18: an untrusted certificate is logged once, not for each request.
    #[test]
    fn idm_18_what_is_told_once_is_not_told_by_others() {
        let passes = |level: &str| {
            let target = "rustls_platform_verifier::verification::others";
            filter(level).unwrap().would_enable(target, &tracing::Level::ERROR)
        };
        assert!(!passes("info") && !passes("trace") && passes("info,rustls_platform_verifier=error"));
    }

    #[test]
    fn levels_are_read_and_anything_else_is_refused() {
        for good in ["info", "WARN", "off", "warn,tidegate_cluster=info", "tidegate=debug"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["", "inf", "info,", "tidegate=loud", "tidegate"] {
            assert!(filter(bad).is_err(), "{bad}");
        }
    }
}
