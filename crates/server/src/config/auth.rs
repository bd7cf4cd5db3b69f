//! Who may call: `[auth]`. The tokens themselves are in `[[token]]` or in a file of their own.

use std::path::{Path, PathBuf};

use super::problem::{ConfigProblem, SourceText};
use super::section::Section;
use super::{ConfigProblems, DEFAULTS, TokenFile, parse_toml, read_file};

/// The settings of authentication.
#[derive(Clone, Debug)]
pub struct AuthSettings {
    /// The file of the tokens that `tidegate token` manages, if there is one.
    pub tokens_file: Option<TokenFile>,
    /// How many wrong tokens one address may send in a minute; 0 for any number.
    pub failures_per_minute: u32,
}

pub(super) fn read(root: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> Option<AuthSettings> {
    let mut section = root.section("auth", problems);
    let tokens_file = read_tokens_file(&mut section, problems);
    let failures_per_minute = section.integer("failures_per_minute", 0..=100_000, problems);
    section.finish(problems);
    Some(AuthSettings { tokens_file, failures_per_minute: u32::try_from(failures_per_minute?).ok()? })
}

fn read_tokens_file(section: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> Option<TokenFile> {
    let found = section.text("tokens_file", problems)?;
    (!found.value.is_empty()).then(|| TokenFile::new(PathBuf::from(found.value)))
}

/// Finds the file of tokens that a configuration names, without its secrets and without a look at
/// anything else in it. The environment may name another.
///
/// # Errors
/// When the file cannot be read or is not TOML.
pub fn find_tokens_file(file: Option<&Path>) -> Result<Option<TokenFile>, ConfigProblems> {
    let name = file.map_or_else(|| "defaults".to_owned(), |file| file.display().to_string());
    let text = file.map_or_else(|| Ok(String::new()), read_file)?;
    let source = SourceText { name: &name, text: &text };
    let defaults = SourceText { name: "defaults", text: DEFAULTS };
    let (table, default_table) = (parse_toml(source)?, parse_toml(defaults)?);
    let env = |name: &str| std::env::var(name).ok();
    let mut root = Section::of_root((table.get_ref(), source), (default_table.get_ref(), defaults), &env);
    let mut problems = Vec::new();
    let mut section = root.section("auth", &mut problems);
    let found = read_tokens_file(&mut section, &mut problems);
    if problems.is_empty() { Ok(found) } else { Err(ConfigProblems(problems)) }
}
