//! What is wrong with a configuration: where it stands, which key it is, and a sentence.

use std::fmt;

/// Where something stands: `file:line:column`, or the variable or flag it came from. Sorts as the file reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    offset: usize,
    text: String,
}

impl SourceLocation {
    /// Whether it is a flag of the command line.
    #[must_use]
    pub fn is_flag(&self) -> bool {
        self.text.starts_with("--")
    }

    /// Outside of any file.
    pub(super) fn outside_file(text: impl Into<String>) -> Self {
        Self { offset: 0, text: text.into() }
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Where.
    pub at: SourceLocation,
    /// The key with its place: `upstream[0].limit[1].capacity`. Empty for the file as a whole.
    pub key_path: String,
    /// What is wrong, as a sentence.
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

/// Everything that is wrong, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblems(pub Vec<ConfigProblem>);

impl ConfigProblems {
    /// Tells what stands at one spot, of no file, as standing at another.
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

/// A text with a name, so that a place in it can be told.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceText<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl SourceText<'_> {
    /// `name:line:column` of a byte; both count from one, columns in characters.
    pub(super) fn location(&self, offset: usize) -> SourceLocation {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
        SourceLocation { offset, text: format!("{}:{line}:{column}", self.name) }
    }
}
