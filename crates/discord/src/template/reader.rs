//! Reads the fields of one mapping and collects problems on the way: a field that is missing or
//! invalid gets a value with which reading can continue.

use super::node::{Node, Value};
use super::{TemplatePath, TemplateProblem};
use crate::ObjectKey;
use crate::bounds::KEY_MAX;
use crate::permission::{Permissions, suggest_name};

/// The fields of one mapping.
pub(super) struct MappingFields<'a> {
    node: &'a Node,
    pub path: TemplatePath,
}

/// The problems so far, and whether something had to be skipped.
#[derive(Default)]
pub(super) struct ProblemCollector(pub Vec<TemplateProblem>, pub bool);

/// Placeholder for a text that could not be read. That was reported, and is not reported again as
/// an empty text.
const UNREADABLE: &str = "?";

impl ProblemCollector {
    pub(super) fn add(&mut self, node: &Node, path: &TemplatePath, message: impl Into<String>) {
        self.0.push(TemplateProblem { at: node.at, path: path.clone(), message: message.into() });
    }

    /// Creates a key for an object without a usable one.
    fn unreadable(&self) -> ObjectKey {
        ObjectKey::unreadable(self.0.len())
    }

    pub(super) fn key(&mut self, node: &Node, path: &TemplatePath) -> ObjectKey {
        let Some(text) = self.text(node, path) else { return self.unreadable() };
        ObjectKey::new(&text).unwrap_or_else(|| {
            let message = format!("{text:?} is not a key: 1 to {KEY_MAX} of A-Z a-z 0-9 _ and -.");
            self.add(node, path, message);
            self.unreadable()
        })
    }

    /// Reads a text; a plain scalar is taken as written.
    pub(super) fn text(&mut self, node: &Node, path: &TemplatePath) -> Option<String> {
        match &node.value {
            Value::Scalar(text, _) if !node.is_nothing() => Some(text.clone()),
            _ => {
                self.add(node, path, format!("this must be text, but is {}.", node.type_name()));
                None
            }
        }
    }

    pub(super) fn list<'a>(&mut self, node: &'a Node, path: &TemplatePath) -> &'a [Node] {
        match &node.value {
            Value::List(items) => items,
            _ => {
                self.add(node, path, format!("this must be a list, but is {}.", node.type_name()));
                &[]
            }
        }
    }

    pub(super) fn permissions(&mut self, node: &Node, path: &TemplatePath) -> Permissions {
        let mut all = Permissions::default();
        for (index, item) in self.list(node, path).iter().enumerate() {
            let path = path.item(index);
            let Some(name) = self.text(item, &path) else { continue };
            match Permissions::named(&name) {
                Some(one) if !all.intersection(one).is_empty() => {
                    self.add(item, &path, format!("{name} is listed twice."));
                }
                Some(one) => all = all.union(one),
                None => {
                    let hint = suggest_name(&name).map(|meant| format!("; did you mean {meant}?"));
                    let hint = hint.unwrap_or_else(|| ".".into());
                    self.add(item, &path, format!("there is no permission {name:?}{hint}"));
                }
            }
        }
        all
    }
}

impl<'a> MappingFields<'a> {
    /// Reads a mapping with these fields and no others, none twice. `None` when it is not a
    /// mapping.
    pub(super) fn of(
        node: &'a Node,
        path: TemplatePath,
        known: &[&str],
        found: &mut ProblemCollector,
    ) -> Option<Self> {
        let Value::Map(fields) = &node.value else {
            found.add(node, &path, format!("this must be a mapping, but is {}.", node.type_name()));
            return None;
        };
        for (place, (key, at, _)) in fields.iter().enumerate() {
            let message = if known.contains(&key.as_str()) {
                let before = fields[..place].iter().find(|(other, ..)| other == key);
                before.map(|(_, at, _)| format!("{key:?} is given twice, first in line {}.", at.line))
            } else {
                let near = known.iter().map(|known| (strsim::jaro_winkler(key, known), known));
                let near = near.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > 0.8);
                Some(match near {
                    Some((_, near)) => format!("{key:?} is not known here; did you mean {near:?}?"),
                    None => format!("{key:?} is not known here; known are {}.", known.join(", ")),
                })
            };
            if let Some(message) = message {
                found.0.push(TemplateProblem { at: *at, path: path.clone(), message });
            }
        }
        Some(Self { node, path })
    }

    pub(super) fn get(&self, name: &'static str) -> Option<(&'a Node, TemplatePath)> {
        let Value::Map(fields) = &self.node.value else { return None };
        let node = fields.iter().find(|(key, ..)| key == name).map(|(.., node)| node)?;
        Some((node, self.path.field(name)))
    }

    /// Returns a required field.
    fn required(&self, name: &'static str, found: &mut ProblemCollector) -> Option<(&'a Node, TemplatePath)> {
        let there = self.get(name);
        if there.is_none() {
            found.add(self.node, &self.path, format!("{name:?} is missing."));
        }
        there
    }

    pub(super) fn key(&self, name: &'static str, found: &mut ProblemCollector) -> ObjectKey {
        match self.required(name, found) {
            Some((node, path)) => found.key(node, &path),
            None => found.unreadable(),
        }
    }

    pub(super) fn text(&self, name: &'static str, found: &mut ProblemCollector) -> String {
        let there = self.required(name, found);
        there.and_then(|(node, path)| found.text(node, &path)).unwrap_or_else(|| UNREADABLE.to_owned())
    }

    pub(super) fn text_or(&self, name: &'static str, default: &str, found: &mut ProblemCollector) -> String {
        match self.get(name) {
            Some((node, path)) => found.text(node, &path).unwrap_or_else(|| default.to_owned()),
            None => default.to_owned(),
        }
    }

    /// Reads `true` or `false`; `false` when it is missing.
    pub(super) fn flag(&self, name: &'static str, found: &mut ProblemCollector) -> bool {
        let Some((node, path)) = self.get(name) else { return false };
        match &node.value {
            Value::Scalar(text, false) if text == "true" => return true,
            Value::Scalar(text, false) if text == "false" => {}
            _ => found.add(node, &path, "this must be true or false."),
        }
        false
    }

    pub(super) fn list(
        &self,
        name: &'static str,
        found: &mut ProblemCollector,
    ) -> (&'a [Node], TemplatePath) {
        match self.get(name) {
            Some((node, path)) => (found.list(node, &path), path),
            None => (&[], self.path.field(name)),
        }
    }

    pub(super) fn permissions(&self, name: &'static str, found: &mut ProblemCollector) -> Permissions {
        self.get(name).map_or_else(Permissions::default, |(node, path)| found.permissions(node, &path))
    }
}
