//! What is wrong with a configuration: where it stands, which key it is, and a sentence.

use std::fmt;

/// Where something stands: `file:line:column`, or the variable or flag it came from. Sorts as the file reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    offset: usize,
    text: String,
}

impl Spot {
    /// Whether it is a flag of the command line.
    #[must_use]
    pub fn is_flag(&self) -> bool {
        self.text.starts_with("--")
    }

    /// Outside of any file.
    pub(super) fn outside(text: impl Into<String>) -> Self {
        Self { offset: 0, text: text.into() }
    }
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub at: Spot,
    /// The key with its place: `upstream[0].limit[1].capacity`. Empty for the file as a whole.
    pub place: String,
    /// What is wrong, as a sentence.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.at)?;
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that is wrong, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// Tells what stands at one spot, of no file, as standing at another.
    pub(super) fn moved(mut self, from: &str, to: &str) -> Self {
        for problem in self.0.iter_mut().filter(|problem| problem.at.text == from) {
            problem.at = Spot::outside(to);
            problem.place.clear();
        }
        self
    }
}

impl fmt::Display for Problems {
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

impl std::error::Error for Problems {}

/// A text with a name, so that a place in it can be told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// `name:line:column` of a byte; both count from one, columns in characters.
    pub(super) fn at(&self, offset: usize) -> Spot {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
        Spot { offset, text: format!("{}:{line}:{column}", self.name) }
    }
}
