//! Which steps a deployment has carried: their lines in the journal say by which operation, and a later plan that finds
//! them done does not write over that.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::record::words;
use crate::Id;
use crate::plan::Step;

/// Kind and key of what was carried, and the object.
#[derive(Debug, Default)]
pub(super) struct Carried(BTreeMap<(Arc<str>, Arc<str>), Option<Arc<str>>>);

impl Carried {
    pub(super) fn add(&mut self, step: &Step, id: Option<Id>) {
        self.0.insert(words(&step.target), text(id));
    }

    /// Whether the step is about an object that was carried, and not about another one in its place.
    pub(super) fn has(&self, step: &Step) -> bool {
        self.0.get(&words(&step.target)) == Some(&text(step.id))
    }
}

impl FromIterator<((Arc<str>, Arc<str>), Option<Arc<str>>)> for Carried {
    fn from_iter<I: IntoIterator<Item = ((Arc<str>, Arc<str>), Option<Arc<str>>)>>(lines: I) -> Self {
        Self(lines.into_iter().collect())
    }
}

fn text(id: Option<Id>) -> Option<Arc<str>> {
    id.map(|id| id.to_string().into())
}
