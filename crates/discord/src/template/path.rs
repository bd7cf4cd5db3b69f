//! Where in a template something is, apart from any file: `channels[3].overwrites[0].role`.

use std::fmt;

/// A way from the root of a template to one of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Field(&'static str),
    Item(usize),
}

impl Path {
    /// A list of the template.
    pub(super) fn of(list: &'static str) -> Self {
        Self(vec![Part::Field(list)])
    }

    pub(super) fn field(&self, name: &'static str) -> Self {
        self.and(Part::Field(name))
    }

    pub(super) fn item(&self, index: usize) -> Self {
        self.and(Part::Item(index))
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.0
    }

    fn and(&self, part: Part) -> Self {
        let mut parts = self.0.clone();
        parts.push(part);
        Self(parts)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, part) in self.0.iter().enumerate() {
            match part {
                Part::Field(name) if place == 0 => f.write_str(name)?,
                Part::Field(name) => write!(f, ".{name}")?,
                Part::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
