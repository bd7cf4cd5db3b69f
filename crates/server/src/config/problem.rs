//! A problem of a configuration: its location, its key, and a message.

use std::fmt;

/// The location of a value: `file:line:column`, or the variable or flag it came from. Sorts in the
/// order of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    offset: usize,
    text: String,
}

impl SourceLocation {
    /// Whether it is a command-line flag.
    #[must_use]
    pub fn is_flag(&self) -> bool {
        self.text.starts_with("--")
    }

    /// A location outside of any file.
    pub(super) fn outside_file(text: impl Into<String>) -> Self {
        Self { offset: 0, text: text.into() }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One problem of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Its location.
    pub at: SourceLocation,
    /// The path of the key: `upstream[0].limit[1].capacity`. Empty for the file as a whole.
    pub key_path: String,
    /// The message, as a sentence.
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.at)?;
        if !self.key_path.is_empty() {
            write!(f, "{}: ", self.key_path)?;
        }
        f.write_str(&self.message)
    }
}

/// All problems of a configuration, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblems(pub Vec<ConfigProblem>);

impl ConfigProblems {
    /// Moves the problems of one location outside a file to another.
    pub(super) fn relocate(mut self, from: &str, to: &str) -> Self {
        for problem in self.0.iter_mut().filter(|problem| problem.at.text == from) {
            problem.at = SourceLocation::outside_file(to);
            problem.key_path.clear();
        }
        self
    }
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigProblems {}

/// A text with a name, for locations in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceText<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl SourceText<'_> {
    /// Returns `name:line:column` of a byte offset; both count from one, columns in characters.
    pub(super) fn location(&self, offset: usize) -> SourceLocation {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
        SourceLocation { offset, text: format!("{}:{line}:{column}", self.name) }
    }
}
