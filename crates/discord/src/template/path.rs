//! A path to a value within a template, independent of any file: `channels[3].overwrites[0].role`.

use std::fmt;

/// A path from the root of a template to one of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplatePath(Vec<PathSegment>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathSegment {
    Field(&'static str),
    Item(usize),
}

impl TemplatePath {
    /// Creates the path of a list of the template.
    pub(super) fn of(list: &'static str) -> Self {
        Self(vec![PathSegment::Field(list)])
    }

    pub(super) fn field(&self, name: &'static str) -> Self {
        self.join(PathSegment::Field(name))
    }

    pub(super) fn item(&self, index: usize) -> Self {
        self.join(PathSegment::Item(index))
    }

    pub(super) fn parts(&self) -> &[PathSegment] {
        &self.0
    }

    fn join(&self, part: PathSegment) -> Self {
        let mut parts = self.0.clone();
        parts.push(part);
        Self(parts)
    }
}

impl fmt::Display for TemplatePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, part) in self.0.iter().enumerate() {
            match part {
                PathSegment::Field(name) if place == 0 => f.write_str(name)?,
                PathSegment::Field(name) => write!(f, ".{name}")?,
                PathSegment::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
