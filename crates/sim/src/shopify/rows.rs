//! The result of a bulk operation: lines of JSON, generated while they are sent, so that a result
//! of any size takes no memory. Objects of an inner connection follow their parent and refer to it.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::bulk::BulkKind;
use super::cost::ReturnedShare;
use super::data::{DataGenerator, type_of};
use super::document::{Document, Field, Selection};

/// Lines per chunk.
const PIECE: u64 = 128;
/// Inner objects after each outer one.
const CHILDREN: u64 = 3;

/// The lines.
#[derive(Debug)]
pub struct BulkRows {
    form: RowShape,
    at: u64,
    rows: u64,
    /// Numbers the generated objects, the same in each download.
    last: u64,
    parent: String,
}

#[derive(Debug)]
enum RowShape {
    Query { outer: RowObject, inner: Option<RowObject> },
    Mutation(Selection),
}

#[derive(Debug)]
struct RowObject {
    of: String,
    selection: Selection,
}

impl BulkRows {
    /// Creates the lines of a document that was run in bulk.
    ///
    /// # Errors
    /// A sentence about what is wrong with the document.
    pub fn new(kind: BulkKind, text: &str, rows: u64) -> Result<Self, String> {
        let document = Document::parse(text, None, &Map::new())?;
        let form = match kind {
            BulkKind::Mutation if document.is_mutation => RowShape::Mutation(document.selection),
            BulkKind::Query if !document.is_mutation => {
                let outer = connection(&document.selection)
                    .ok_or("Bulk queries must contain at least one connection")?;
                let objects = objects(outer);
                let inner = connection(&objects).map(|inner| part(inner, self::objects(inner)));
                RowShape::Query { outer: part(outer, objects), inner }
            }
            BulkKind::Mutation => return Err("The document is not a mutation".to_owned()),
            BulkKind::Query => return Err("The document is not a query".to_owned()),
        };
        Ok(Self { form, at: 0, rows, last: 0, parent: String::new() })
    }

    /// Returns how many lines have no parent.
    #[must_use]
    pub const fn roots(&self) -> u64 {
        match self.form {
            RowShape::Query { inner: Some(_), .. } => self.rows.div_ceil(1 + CHILDREN),
            _ => self.rows,
        }
    }

    fn line(&mut self) -> Value {
        let number = self.at;
        self.at += 1;
        let mut data = DataGenerator::new(&mut self.last, ReturnedShare::ALL);
        match &self.form {
            RowShape::Mutation(selection) => {
                let answer = data.object(selection, "Mutation", &Map::new());
                json!({ "data": answer, "__lineNumber": number })
            }
            RowShape::Query { inner: Some(inner), .. } if !number.is_multiple_of(1 + CHILDREN) => {
                let mut line = data.object(&inner.selection, &inner.of, &Map::new());
                line["__parentId"] = json!(self.parent);
                line
            }
            RowShape::Query { outer, .. } => {
                let id = format!("gid://shopify/{}/{}", outer.of, data.number());
                let known = Map::from_iter([("id".to_owned(), json!(id))]);
                self.parent = id;
                data.object(&outer.selection, &outer.of, &known)
            }
        }
    }
}

impl Iterator for BulkRows {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let lines = PIECE.min(self.rows - self.at);
        if lines == 0 {
            return None;
        }
        let mut piece = String::new();
        for _ in 0..lines {
            piece.push_str(&self.line().to_string());
            piece.push('\n');
        }
        Some(piece.into())
    }
}

fn connection(selection: &Selection) -> Option<&Field> {
    let frame = |field: &Field| matches!(field.name.as_str(), "edges" | "nodes");
    selection.all().find(|field| field.selection.all().any(frame))
}

/// Returns the selection on each object of a connection.
fn objects(connection: &Field) -> Selection {
    let node = connection.selection.field("edges").and_then(|edges| edges.selection.field("node"));
    let objects = node.or_else(|| connection.selection.field("nodes"));
    objects.map(|objects| objects.selection.clone()).unwrap_or_default()
}

/// Returns the row of an object without its inner connections, whose objects have their own lines.
fn part(field: &Field, objects: Selection) -> RowObject {
    let mut own = Selection { fields: objects.fields, types: objects.types };
    let is_inner =
        |field: &Field| field.selection.all().any(|field| matches!(field.name.as_str(), "edges" | "nodes"));
    own.fields.retain(|field| !is_inner(field));
    for (_, fields) in &mut own.types {
        fields.retain(|field| !is_inner(field));
    }
    RowObject { of: type_of(&field.name), selection: own }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(kind: BulkKind, text: &str, rows: u64) -> Vec<Value> {
        let pieces: Vec<u8> = BulkRows::new(kind, text, rows).unwrap().flatten().collect();
        let text = String::from_utf8(pieces).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn inner_objects_follow_their_parent() {
        let text = "{ products { edges { node { id title variants { nodes { id sku } } } } } }";
        let lines = lines(BulkKind::Query, text, 9);
        assert_eq!(lines.len(), 9);
        assert_eq!(lines[0], json!({"id": "gid://shopify/Product/1", "title": "title 2"}));
        let child =
            json!({"id": "gid://shopify/Variant/3", "sku": "sku 4", "__parentId": "gid://shopify/Product/1"});
        assert_eq!(lines[1], child);
        let parents: Vec<_> = lines.iter().filter(|line| line.get("__parentId").is_none()).collect();
        assert_eq!(parents.len() as u64, BulkRows::new(BulkKind::Query, text, 9).unwrap().roots());
        assert_eq!(lines[7]["__parentId"], lines[4]["id"]);
    }

    #[test]
    fn any_number_of_lines_is_met() {
        for rows in [0, 1, PIECE, PIECE + 1, 1_000] {
            assert_eq!(lines(BulkKind::Query, "{ orders { nodes { id } } }", rows).len() as u64, rows);
        }
    }

    #[test]
    fn lines_of_a_mutation_have_numbers() {
        let text =
            "mutation($p: P!) { productCreate(product: $p) { product { id } userErrors { message } } }";
        let lines = lines(BulkKind::Mutation, text, 2);
        let data = json!({"productCreate": {"product": {"id": "gid://shopify/Product/2"}, "userErrors": []}});
        assert_eq!(lines[1], json!({"data": data, "__lineNumber": 1}));
    }

    #[test]
    fn what_cannot_be_run_in_bulk_is_refused() {
        for (kind, text) in [
            (BulkKind::Query, "{ shop { id } }"),
            (BulkKind::Query, "mutation { a }"),
            (BulkKind::Mutation, "{ a }"),
            (BulkKind::Query, "{"),
        ] {
            assert!(BulkRows::new(kind, text, 1).is_err(), "{text}");
        }
    }
}
