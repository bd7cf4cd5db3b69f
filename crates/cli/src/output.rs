//! Printing: tables on a terminal, tab-separated rows for pipes, JSON for scripts.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use serde_json::Value;
use tidegate_core::text::visible;

use crate::args::Color;
use crate::error::CliError;

/// The output of this run: its format and colours.
#[derive(Debug)]
pub(crate) struct Output {
    pub json: bool,
    terminal: bool,
    colored_out: bool,
    colored_err: bool,
    /// The first error of writing data.
    lost: OnceLock<std::io::Error>,
    /// The exit code of a command that succeeds, if it is not 0.
    exit: OnceLock<u8>,
}

impl Output {
    pub(crate) fn new(color: Color, json: bool) -> Self {
        let (out, err) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let colored = |terminal| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !plain,
        };
        let (colored_out, colored_err) = (colored(out), colored(err));
        Self { json, terminal: out, colored_out, colored_err, lost: OnceLock::new(), exit: OnceLock::new() }
    }

    /// Prints a status message on stderr. Ignores errors: stderr may be closed.
    pub(crate) fn print_status(&self, line: &str) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    /// Prints a question on stderr, without a line break.
    pub(crate) fn print_prompt(&self, question: &str) {
        let mut err = std::io::stderr();
        let _ = write!(err, "{question}").and_then(|()| err.flush());
    }

    /// Sets the exit code of a command that succeeds.
    pub(crate) fn set_exit_code(&self, code: u8) {
        let _ = self.exit.set(code);
    }

    /// Returns the exit code of a command that succeeds.
    pub(crate) fn exit_code(&self) -> u8 {
        self.exit.get().copied().unwrap_or(0)
    }

    /// Prints a status message unless `--json` is set, for messages that the JSON contains already.
    pub(crate) fn print_remark(&self, line: &str) {
        if !self.json {
            self.print_status(line);
        }
    }

    /// Prints data on stdout. A closed pipe is not an error; any other failure is reported at the
    /// end.
    pub(crate) fn print_data(&self, line: &str) {
        let mut out = std::io::stdout().lock();
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        if let Err(error) = written
            && error.kind() != ErrorKind::BrokenPipe
        {
            // Only the first error is kept.
            let _ = self.lost.set(error);
        }
    }

    /// Fails if some data could not be written.
    pub(crate) fn check_delivered(&self) -> Result<(), CliError> {
        let told = |error| Err(CliError::new(format!("The output could not be written: {error}.")));
        self.lost.get().map_or(Ok(()), told)
    }

    /// Prints JSON as data, for scripts.
    pub(crate) fn print_json(&self, value: &Value) {
        self.print_data(&value.to_string());
    }

    pub(crate) fn red(&self, text: &str) -> String {
        paint(self.colored_err, "1;31", text)
    }

    pub(crate) fn bold(&self, text: &str) -> String {
        paint(self.colored_err, "1", text)
    }

    /// Paints data in a colour.
    pub(crate) fn paint_data(&self, code: &str, text: &str) -> String {
        paint(self.colored_out, code, text)
    }

    /// Returns the name of a state in its colour.
    fn state(&self, word: &str) -> Option<String> {
        let code = match word {
            "running" | "processing" => "34",
            "waiting" | "queued" | "idle" | "planned" => "90",
            "succeeded" | "completed" | "done" | "applied" => "32",
            "failed" => "31",
            "unknown" | "held" => "35",
            "paused" => "36",
            "canceled" => "33",
            _ => return None,
        };
        Some(paint(self.colored_out, code, word))
    }

    /// Prints rows under headings.
    pub(crate) fn print_table(&self, headings: &[&str], rows: &[Vec<String>]) {
        if !self.terminal {
            for row in rows {
                let row: Vec<_> = row.iter().map(|cell| one_line(cell)).collect();
                self.print_data(&row.join("\t"));
            }
            return;
        }
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain([headings[column].len()]).max().unwrap_or_default()
        };
        let widths: Vec<_> = (0..headings.len()).map(width).collect();
        let headings: Vec<_> = headings.iter().map(|heading| (*heading).to_owned()).collect();
        self.print_data(&paint(self.colored_out, "1", &self.line(&headings, &widths)));
        for row in rows {
            self.print_data(&self.line(row, &widths));
        }
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            // Padding is computed before colours are added, which take no width.
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()) + 2);
            line.push_str(&self.state(cell).unwrap_or_else(|| visible(cell).into_owned()));
            line.push_str(&padding);
        }
        line.trim_end().to_owned()
    }

    /// Prints names and values, one pair per line.
    pub(crate) fn print_facts(&self, facts: &[(&str, String)]) {
        let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
            if self.terminal {
                let value = self.state(value).unwrap_or_else(|| visible(value).into_owned());
                self.print_data(&format!("{name:<width$}  {value}"));
            } else {
                self.print_data(&format!("{name}\t{}", one_line(value)));
            }
        }
    }
}

/// A value in a row for a pipe. What would command a terminal is made visible there, too, because
/// rows often end on one.
fn one_line(value: &str) -> String {
    visible(&value.replace(['\t', '\n'], " ")).into_owned()
}

fn paint(on: bool, code: &str, text: &str) -> String {
    if on { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
}

/// Returns a count with its noun.
pub(crate) fn pluralize(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}

/// Returns a field of a response as text: empty for null.
pub(crate) fn text(value: &Value, field: &str) -> String {
    match &value[field] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
