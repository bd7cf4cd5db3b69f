//! Generates data for a selection: every field is there under its response key, with a value that
//! fits its name. Known fields of an object keep their values, the rest is made up.

use serde_json::{Map, Value, json};

use super::cost::ReturnedShare;
use super::document::{Field, Selection};
use super::shape::FieldShape;

/// Most objects in one response: a document of the highest cost cannot ask for more.
const OBJECTS_MAX: u64 = 1_000;

/// Generates data.
#[derive(Debug)]
pub struct DataGenerator<'a> {
    /// The last number that was assigned.
    last: &'a mut u64,
    share: ReturnedShare,
}

impl<'a> DataGenerator<'a> {
    /// Creates a generator that numbers on from `last` and returns a share of the possible objects.
    pub const fn new(last: &'a mut u64, share: ReturnedShare) -> Self {
        Self { last, share }
    }

    /// Returns a fresh number.
    pub const fn number(&mut self) -> u64 {
        *self.last += 1;
        *self.last
    }

    /// Returns the value of a field.
    pub fn field(&mut self, field: &Field, of: &str) -> Value {
        match FieldShape::of(field) {
            FieldShape::Scalar => self.scalar(&field.name, of),
            FieldShape::Object if field.name.ends_with("Errors") => json!([]),
            FieldShape::Object => {
                let id = field.arguments.get("id").filter(|id| id.is_string());
                let known = id.map(|id| Map::from_iter([("id".to_owned(), id.clone())]));
                let of = known.as_ref().and_then(|known| type_in(known.get("id")?.as_str()?));
                let of = of.unwrap_or_else(|| type_of(&field.name));
                self.object(&field.selection, &of, &known.unwrap_or_default())
            }
            FieldShape::List(most) => self.list(field, most),
            FieldShape::Connection(most) => {
                let of = type_of(&field.name);
                let there = self.share.of(most).min(OBJECTS_MAX);
                let objects: Vec<_> = (0..there).map(|_| Map::new()).collect();
                self.connection(&field.selection, &of, &objects, there == most)
            }
        }
    }

    /// Returns an object with some known fields.
    pub fn object(&mut self, selection: &Selection, of: &str, known: &Map<String, Value>) -> Value {
        // An object has one type: its own, or else the first one in the selection.
        let fitting = selection.types.iter().find(|(name, _)| name == of).or_else(|| selection.types.first());
        let of = fitting.map_or(of, |(name, _)| name);
        let fields = selection.fields.iter().chain(fitting.into_iter().flat_map(|(_, fields)| fields));
        let mut object = Map::new();
        for field in fields {
            let value = match known.get(&field.name) {
                Some(Value::Object(inner)) if !field.selection.is_empty() => {
                    self.object(&field.selection, &type_of(&field.name), inner)
                }
                Some(value) => value.clone(),
                None if field.name == "__typename" => json!(of),
                None => self.field(field, of),
            };
            object.insert(field.key.clone(), value);
        }
        Value::Object(object)
    }

    /// Returns a connection of objects with some known fields.
    pub fn connection(
        &mut self,
        selection: &Selection,
        of: &str,
        objects: &[Map<String, Value>],
        has_more: bool,
    ) -> Value {
        let mut known = Map::new();
        let info = json!({
            "hasNextPage": has_more, "hasPreviousPage": false,
            "startCursor": cursor(0), "endCursor": cursor(objects.len()),
        });
        known.insert("pageInfo".to_owned(), info);
        for frame in selection.all() {
            let items: Vec<Value> = match frame.name.as_str() {
                "nodes" => objects.iter().map(|object| self.object(&frame.selection, of, object)).collect(),
                "edges" => {
                    let edge = |(at, object): (usize, &Map<String, Value>)| {
                        let node = frame.selection.field("node");
                        let node =
                            node.map(|node| (node.key.as_str(), self.object(&node.selection, of, object)));
                        let edge = Map::from_iter([("cursor".to_owned(), json!(cursor(at + 1)))]);
                        let mut edge = self.object(&without(&frame.selection, "node"), "Edge", &edge);
                        if let Some((key, node)) = node {
                            edge[key] = node;
                        }
                        edge
                    };
                    objects.iter().enumerate().map(edge).collect()
                }
                _ => continue,
            };
            known.insert(frame.name.clone(), Value::Array(items));
        }
        self.object(selection, of, &known)
    }

    fn list(&mut self, field: &Field, most: u64) -> Value {
        let of = type_of(&field.name);
        let ids = field.arguments.get("ids").and_then(Value::as_array).cloned().unwrap_or_default();
        let there = if ids.is_empty() { self.share.of(most).min(OBJECTS_MAX) as usize } else { ids.len() };
        let object = |at: usize| {
            let id = ids.get(at).filter(|id| id.is_string());
            let known: Map<_, _> = id.map(|id| ("id".to_owned(), id.clone())).into_iter().collect();
            let of = id.and_then(|id| type_in(id.as_str()?)).unwrap_or_else(|| of.clone());
            self.object(&field.selection, &of, &known)
        };
        (0..there).map(object).collect()
    }

    fn scalar(&mut self, name: &str, of: &str) -> Value {
        let ends = |end: &str| name.ends_with(end);
        match name {
            "id" => json!(format!("gid://shopify/{of}/{}", self.number())),
            "legacyResourceId" => json!(self.number().to_string()),
            "__typename" => json!(of),
            "amount" | "price" | "compareAtPrice" => json!("10.00"),
            "currencyCode" => json!("USD"),
            "tags" => json!([]),
            _ if ends("Count") || ends("uantity") || ends("Inventory") || name == "position" => json!(1),
            _ if name.starts_with("is") || name.starts_with("has") => json!(true),
            _ if ends("At") => json!("2026-01-01T00:00:00Z"),
            _ => json!(format!("{name} {}", self.number())),
        }
    }
}

fn without(selection: &Selection, name: &str) -> Selection {
    let mut left = selection.clone();
    left.fields.retain(|field| field.name != name);
    left.types.clear();
    left
}

fn cursor(at: usize) -> String {
    format!("cursor-{at}")
}

/// Returns the type in a global id: `gid://shopify/Product/1` is a `Product`.
fn type_in(id: &str) -> Option<String> {
    let (of, _) = id.strip_prefix("gid://shopify/")?.split_once('/')?;
    Some(of.to_owned())
}

/// Returns the type that a field's name suggests: `products` are each a `Product`.
#[must_use]
pub fn type_of(name: &str) -> String {
    let single = match name {
        _ if name.ends_with("ies") => format!("{}y", &name[..name.len() - 3]),
        _ if name.ends_with("ss") => name.to_owned(),
        _ => name.strip_suffix('s').unwrap_or(name).to_owned(),
    };
    let mut letters = single.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shopify::document::Document;

    fn answer(text: &str) -> Value {
        let document = Document::parse(text, None, &Map::new()).unwrap();
        let mut last = 0;
        let mut data = DataGenerator::new(&mut last, ReturnedShare::ALL);
        data.object(&document.selection, "QueryRoot", &Map::new())
    }

    #[test]
    fn answers_follow_what_is_asked_for() {
        let text = "{ all: products(first: 2) { edges { cursor node { id name: title } } pageInfo { hasNextPage end: endCursor } } }";
        let expected = json!({"all": {
            "edges": [
                {"cursor": "cursor-1", "node": {"id": "gid://shopify/Product/1", "name": "title 2"}},
                {"cursor": "cursor-2", "node": {"id": "gid://shopify/Product/3", "name": "title 4"}},
            ],
            "pageInfo": {"hasNextPage": true, "end": "cursor-2"},
        }});
        assert_eq!(answer(text), expected);
        let one = "{ order(id: \"gid://shopify/Order/7\") { id __typename lines(first: 1) { nodes { quantity } } } }";
        let expected = json!({"order": {
            "id": "gid://shopify/Order/7", "__typename": "Order", "lines": {"nodes": [{"quantity": 1}]},
        }});
        assert_eq!(answer(one), expected);
    }

    #[test]
    fn an_object_has_the_type_of_its_id() {
        let text = "{ nodes(ids: [\"gid://shopify/B/1\"]) { ... on A { a } ... on B { id __typename } } }";
        assert_eq!(answer(text), json!({"nodes": [{"id": "gid://shopify/B/1", "__typename": "B"}]}));
    }

    #[test]
    fn names_suggest_types() {
        let types = ["products", "currencies", "address", "shop", ""].map(type_of);
        assert_eq!(types, ["Product", "Currency", "Address", "Shop", ""]);
    }
}
