//! A problem of a template: its position in the file, and a sentence.

use std::fmt;

use super::TemplatePath;

/// A position in a file. Both count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateProblem {
    /// The position in the file.
    pub at: SourcePosition,
    /// The path in the template; empty for the file as a whole.
    pub path: TemplatePath,
    /// The problem, as a sentence.
    pub message: String,
}

/// All problems, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TemplateProblems {
    /// The file.
    pub file: String,
    /// The problems, at least one.
    pub list: Vec<TemplateProblem>,
}

impl TemplateProblems {
    pub(super) fn new(file: &str, mut list: Vec<TemplateProblem>) -> Self {
        list.sort();
        list.dedup();
        Self { file: file.to_owned(), list }
    }
}

impl fmt::Display for TemplateProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.list.iter().enumerate() {
            let SourcePosition { line, column } = problem.at;
            let end = if number == 0 { "" } else { "\n" };
            write!(f, "{end}{}:{line}:{column}: ", self.file)?;
            if problem.path != TemplatePath::default() {
                write!(f, "{}: ", problem.path)?;
            }
            f.write_str(&problem.message)?;
        }
        Ok(())
    }
}
