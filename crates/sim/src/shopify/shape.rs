//! Infers what a field is from how it is selected, since there is no schema: a connection has edges
//! or nodes, a list has a size, an object has fields, and the rest are scalars.

use serde_json::Value;

use super::document::{Field, Selection};

/// The shape of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
    /// A scalar or an enum.
    Scalar,
    /// One object.
    Object,
    /// Objects, at most this many.
    List(u64),
    /// A connection, with at most this many objects.
    Connection(u64),
}

impl FieldShape {
    /// Infers the shape of a field. A connection without a size has no objects;
    /// [`unsized_connection`] finds it.
    #[must_use]
    pub fn of(field: &Field) -> Self {
        if field.selection.is_empty() {
            return Self::Scalar;
        }
        if is_connection(field) {
            return Self::Connection(size(field).unwrap_or(0));
        }
        match (size(field), field.arguments.get("ids")) {
            (Some(size), _) => Self::List(size),
            (None, Some(Value::Array(ids))) => Self::List(ids.len() as u64),
            (None, _) => Self::Object,
        }
    }
}

/// Returns the first connection with neither `first` nor `last`.
#[must_use]
pub fn unsized_connection(selection: &Selection) -> Option<&Field> {
    selection.all().find_map(|field| {
        if is_connection(field) && size(field).is_none() {
            return Some(field);
        }
        unsized_connection(&field.selection)
    })
}

fn is_connection(field: &Field) -> bool {
    field.selection.all().any(|inner| matches!(inner.name.as_str(), "edges" | "nodes"))
}

fn size(field: &Field) -> Option<u64> {
    let argument = |name| field.arguments.get(name).filter(|size| !size.is_null());
    argument("first").or_else(|| argument("last")).map(|size| size.as_u64().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::shopify::document::Document;

    fn document(text: &str) -> Document {
        Document::parse(text, None, &Map::new()).unwrap()
    }

    #[test]
    fn a_field_is_what_it_is_asked_for_as() {
        let shape = |text| FieldShape::of(&document(text).selection.fields[0]);
        assert_eq!(shape("{ a }"), FieldShape::Scalar);
        assert_eq!(shape("{ a { b } }"), FieldShape::Object);
        assert_eq!(shape("{ a(first: 3) { b } }"), FieldShape::List(3));
        assert_eq!(shape("{ nodes(ids: [1, 2]) { id } }"), FieldShape::List(2));
        assert_eq!(shape("{ a(first: 3) { edges { node { b } } } }"), FieldShape::Connection(3));
        assert_eq!(shape("{ a(last: 2) { nodes { b } } }"), FieldShape::Connection(2));
        assert_eq!(shape("{ a(first: null, last: 4) { nodes { b } } }"), FieldShape::Connection(4));
        assert_eq!(shape("{ a(first: -1) { nodes { b } } }"), FieldShape::Connection(0));
    }

    #[test]
    fn a_connection_without_a_size_is_found() {
        let found = |text| unsized_connection(&document(text).selection).map(|field| field.name.clone());
        assert_eq!(
            found("{ a(first: 1) { nodes { b { c { edges { node { id } } } } } } }"),
            Some("c".into())
        );
        assert_eq!(found("{ a(first: 1) { nodes { id } } nodes(ids: []) { id } }"), None);
    }
}
