//! YAML as a tree in which every value has its position. Supports only what a template needs: one
//! document, plain keys, no tags. Resolves anchors and aliases, within bounds.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use super::path::PathSegment;
use super::{SourcePosition, TemplatePath, TemplateProblem};

/// Bytes in a template. The largest guild needs a tenth of it.
const TEXT_MAX: usize = 1 << 20;
/// Depth of nested collections.
const DEPTH_MAX: usize = 16;
/// Values, including those that aliases repeat.
const NODES_MAX: usize = 200_000;

/// A value and its position.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub at: SourcePosition,
    pub value: Value,
    /// How many nodes it consists of.
    size: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Text as written, and whether it was in quotes (or a block), which makes it text whatever it
    /// says.
    Scalar(String, bool),
    List(Vec<Node>),
    /// Keys with their positions, in the order of the file; a key may occur twice.
    Map(Vec<(String, SourcePosition, Node)>),
}

impl Node {
    /// Returns the name of its type, for a message.
    pub(super) fn type_name(&self) -> &'static str {
        match &self.value {
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
            Value::Scalar(..) if self.is_nothing() => "nothing",
            Value::Scalar(..) => "a single value",
        }
    }

    /// Returns whether it is `key:` without a value, or `null`.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(&self.value, Value::Scalar(text, false) if matches!(text.as_str(), "" | "~" | "null"))
    }

    /// Returns the position of a value of the template, or of what is nearest to it.
    pub(super) fn position_of(&self, path: &TemplatePath) -> SourcePosition {
        let mut node = self;
        for part in path.parts() {
            let next = match (part, &node.value) {
                (PathSegment::Field(name), Value::Map(fields)) => {
                    fields.iter().find(|(key, ..)| key == name).map(|(.., node)| node)
                }
                (PathSegment::Item(index), Value::List(items)) => items.get(*index),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node.at
    }
}

/// Parses a text.
pub(super) fn read(text: &str) -> Result<Node, TemplateProblem> {
    let start = SourcePosition { line: 1, column: 1 };
    if text.len() > TEXT_MAX {
        return Err(problem(
            start,
            format!("this is {} bytes; a template has at most {TEXT_MAX}.", text.len()),
        ));
    }
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            problem(
                position(error.marker()),
                format!("this is not YAML: {}.", error.info().trim_end_matches('.')),
            )
        })?;
        builder.take(event, span)?;
    }
    builder.root.ok_or_else(|| problem(start, "the template is empty.".into()))
}

fn position(marker: &Marker) -> SourcePosition {
    SourcePosition { line: marker.line().max(1), column: marker.col() + 1 }
}

fn problem(at: SourcePosition, message: String) -> TemplateProblem {
    TemplateProblem { at, path: TemplatePath::default(), message }
}

/// A list or mapping that is still open.
struct OpenCollection {
    at: SourcePosition,
    anchor: usize,
    value: Value,
    /// In a mapping: the key whose value comes next.
    key: Option<(String, SourcePosition)>,
    size: usize,
}

#[derive(Default)]
struct Builder {
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    nodes: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), TemplateProblem> {
        let at = position(&span.start);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(at, tag.is_some())?;
                let quoted = style != ScalarStyle::Plain;
                self.add(Node { at, value: Value::Scalar(text.into_owned(), quoted), size: 1 }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(at, tag.is_some())?;
                self.begin(at, anchor, Value::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(at, tag.is_some())?;
                self.begin(at, anchor, Value::Map(Vec::new()))
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(OpenCollection { at, anchor, value, size, .. }) => {
                    self.add(Node { at, value, size }, anchor)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => self.add(node, 0),
                None => Err(problem(at, "this alias refers to itself.".into())),
            },
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(problem(at, "a second document begins here; a template is a single document.".into()))
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, at: SourcePosition, anchor: usize, value: Value) -> Result<(), TemplateProblem> {
        if self.open.len() == DEPTH_MAX {
            return Err(problem(at, format!("this is nested more than {DEPTH_MAX} levels deep.")));
        }
        self.open.push(OpenCollection { at, anchor, value, key: None, size: 1 });
        Ok(())
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), TemplateProblem> {
        self.nodes += node.size;
        if self.nodes > NODES_MAX {
            return Err(problem(
                node.at,
                format!("with its aliases the template has more than {NODES_MAX} values."),
            ));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        open.size += node.size;
        match (&mut open.value, open.key.take()) {
            (Value::List(items), _) => items.push(node),
            (Value::Map(fields), Some((key, at))) => fields.push((key, at, node)),
            (Value::Map(_), None) => match node.value {
                Value::Scalar(text, _) => open.key = Some((text, node.at)),
                _ => return Err(problem(node.at, "a key is a single word.".into())),
            },
            (Value::Scalar(..), _) => {}
        }
        Ok(())
    }
}

fn refuse_tag(at: SourcePosition, tagged: bool) -> Result<(), TemplateProblem> {
    if tagged { Err(problem(at, "tags (`!…`) are not supported in a template.".into())) } else { Ok(()) }
}
