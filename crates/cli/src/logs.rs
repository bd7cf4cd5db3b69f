//! The log, on stderr: text for people on a terminal, else one JSON object on each line.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::args::{LogArgs, LogFormat};
use crate::trouble::Trouble;

/// Starts it at the level that was asked for, else at `usual`.
pub(crate) fn start(args: &LogArgs, usual: &str) -> Result<(), Trouble> {
    let level = args.log_level.as_deref().unwrap_or(usual);
    let filter = EnvFilter::try_new(level)
        .map_err(|error| Trouble::usage(format!("The log level {level:?} cannot be read: {error}.")))?;
    let terminal = std::io::stderr().is_terminal();
    let format = args.log_format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => builder.with_ansi(terminal).with_target(false).try_init(),
        LogFormat::Json => {
            builder.json().flatten_event(true).with_current_span(false).with_span_list(false).try_init()
        }
    };
    started.map_err(|error| Trouble::new(format!("The log cannot be started: {error}.")))
}
