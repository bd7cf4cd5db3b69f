//! A GraphQL document as the simulator sees it: one operation, with fragments expanded and
//! variables filled in. The only file that knows the parser. There is no schema: any field exists.

use std::collections::BTreeSet;

use async_graphql_parser::types::{
    DocumentOperations, ExecutableDocument, Field as ParsedField, OperationDefinition, OperationType,
    Selection as ParsedSelection, SelectionSet,
};
use serde_json::{Map, Value};

/// Most fields in a document, with fragments expanded.
pub const FIELDS_MAX: usize = 10_000;
/// Longest document, in bytes.
pub const DOCUMENT_LEN_MAX: usize = 256 * 1024;
/// Deepest nesting, of brackets and of fragments in fragments.
const DEPTH_MAX: usize = 64;

/// One operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Whether it is a mutation.
    pub is_mutation: bool,
    /// What it selects.
    pub selection: Selection,
    /// The directives of its fields and fragments.
    pub directives: BTreeSet<String>,
    /// The directives of the operation itself.
    pub on_operation: BTreeSet<String>,
}

/// A selection on an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Fields for any type.
    pub fields: Vec<Field>,
    /// Fields for objects of one type only.
    pub types: Vec<(String, Vec<Field>)>,
}

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its key in the response.
    pub key: String,
    /// Its arguments, with variables filled in.
    pub arguments: Map<String, Value>,
    /// The key of its `@idempotent`.
    pub idempotent: Option<String>,
    /// What is selected of it; empty for a scalar.
    pub selection: Selection,
}

impl Selection {
    /// Returns whether nothing is selected.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.types.is_empty()
    }

    /// Yields all fields, of whatever type.
    pub fn all(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().chain(self.types.iter().flat_map(|(_, fields)| fields))
    }

    /// Returns the first field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.all().find(|field| field.name == name)
    }
}

impl Document {
    /// Parses a document.
    ///
    /// # Errors
    /// A sentence about what is wrong with it.
    pub fn parse(
        text: &str,
        operation: Option<&str>,
        variables: &Map<String, Value>,
    ) -> Result<Self, String> {
        if text.len() > DOCUMENT_LEN_MAX {
            return Err(format!("The document is longer than {DOCUMENT_LEN_MAX} bytes"));
        }
        // The parser bounds fields in fields, not lists in lists.
        if nesting(text) > DEPTH_MAX {
            return Err(format!("The document is nested deeper than {DEPTH_MAX}"));
        }
        let parsed = async_graphql_parser::parse_query(text).map_err(|error| error.to_string())?;
        let chosen = choose(&parsed.operations, operation)?;
        let mut variables = variables.clone();
        for definition in &chosen.variable_definitions {
            let (name, default) = (definition.node.name.node.as_str(), &definition.node.default_value);
            if let Some(default) = default.as_ref().filter(|_| !variables.contains_key(name)) {
                variables.insert(name.to_owned(), default.node.clone().into_json().unwrap_or_default());
            }
        }
        let mut reader =
            Reader { parsed: &parsed, variables: &variables, fields: 0, directives: BTreeSet::new() };
        let mut selection = Selection::default();
        reader.spread(&chosen.selection_set.node, None, &mut selection, DEPTH_MAX)?;
        let named = |directive: &async_graphql_parser::Positioned<async_graphql_parser::types::Directive>| {
            directive.node.name.node.to_string()
        };
        Ok(Self {
            is_mutation: chosen.ty == OperationType::Mutation,
            selection,
            directives: reader.directives,
            on_operation: chosen.directives.iter().map(named).collect(),
        })
    }
}

fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn choose<'a>(
    operations: &'a DocumentOperations,
    name: Option<&str>,
) -> Result<&'a OperationDefinition, String> {
    let mut all = operations.iter();
    let chosen = match name.filter(|name| !name.is_empty()) {
        Some(name) => all
            .find(|(known, _)| known.is_some_and(|known| known.as_str() == name))
            .ok_or_else(|| format!("No operation named \"{name}\""))?,
        None => match (all.next(), all.next()) {
            (Some(only), None) => only,
            _ => return Err("An operation name is required".to_owned()),
        },
    };
    let operation = &chosen.1.node;
    if operation.ty == OperationType::Subscription {
        return Err("Schema is not configured for subscriptions".to_owned());
    }
    Ok(operation)
}

struct Reader<'a> {
    parsed: &'a ExecutableDocument,
    variables: &'a Map<String, Value>,
    fields: usize,
    directives: BTreeSet<String>,
}

impl Reader<'_> {
    fn spread(
        &mut self,
        set: &SelectionSet,
        of: Option<&str>,
        into: &mut Selection,
        depth: usize,
    ) -> Result<(), String> {
        let depth = depth.checked_sub(1).ok_or("Fragments are nested too deep, or in themselves")?;
        for item in &set.items {
            let directives =
                item.node.directives().iter().map(|directive| directive.node.name.node.to_string());
            self.directives.extend(directives);
            match &item.node {
                ParsedSelection::Field(field) => self.field(&field.node, of, into, depth)?,
                ParsedSelection::InlineFragment(fragment) => {
                    let on = fragment.node.type_condition.as_ref().map(|on| on.node.on.node.as_str());
                    self.spread(&fragment.node.selection_set.node, on.or(of), into, depth)?;
                }
                ParsedSelection::FragmentSpread(spread) => {
                    let name = &spread.node.fragment_name.node;
                    let fragment = self.parsed.fragments.get(name);
                    let fragment =
                        &fragment.ok_or_else(|| format!("Fragment {name} was used, but not defined"))?.node;
                    let on = fragment.type_condition.node.on.node.as_str();
                    self.spread(&fragment.selection_set.node, Some(on), into, depth)?;
                }
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &ParsedField,
        of: Option<&str>,
        into: &mut Selection,
        depth: usize,
    ) -> Result<(), String> {
        self.fields += 1;
        if self.fields > FIELDS_MAX {
            return Err(format!("The document has more than {FIELDS_MAX} fields"));
        }
        let list = match of {
            None => &mut into.fields,
            Some(of) => {
                let at = into.types.iter().position(|(name, _)| name == of).unwrap_or_else(|| {
                    into.types.push((of.to_owned(), Vec::new()));
                    into.types.len() - 1
                });
                &mut into.types[at].1
            }
        };
        let key = field.response_key().node.as_str();
        // The same field twice is one field with the selections of both.
        let at = match list.iter().position(|known| known.key == key) {
            Some(at) => at,
            None => {
                list.push(self.read(field));
                list.len() - 1
            }
        };
        self.spread(&field.selection_set.node, None, &mut list[at].selection, depth)
    }

    fn read(&self, field: &ParsedField) -> Field {
        let idempotent = field.directives.iter().find(|directive| directive.node.name.node == "idempotent");
        let key = idempotent
            .and_then(|directive| directive.node.get_argument("key"))
            .map(|key| self.value(&key.node));
        let arguments = field.arguments.iter();
        Field {
            name: field.name.node.to_string(),
            key: field.response_key().node.to_string(),
            arguments: arguments
                .map(|(name, value)| (name.node.to_string(), self.value(&value.node)))
                .collect(),
            idempotent: key.and_then(|key| key.as_str().map(str::to_owned)),
            selection: Selection::default(),
        }
    }

    /// Resolves a value. A missing variable is null.
    fn value(&self, value: &async_graphql_value::Value) -> Value {
        let filled = value.clone().into_const_with(|name| {
            let value = self.variables.get(name.as_str()).cloned().unwrap_or_default();
            async_graphql_value::ConstValue::from_json(value)
        });
        filled.and_then(async_graphql_value::ConstValue::into_json).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str, variables: &Value) -> Result<Document, String> {
        Document::parse(text, None, variables.as_object().unwrap())
    }

    #[test]
    fn variables_and_their_defaults_are_filled_in() {
        let text = "query Q($n: Int = 3, $ids: [ID!]!, $none: Int) { a(first: $n, x: {ids: $ids, y: [$none]}) { id } }";
        let document = parse(text, &json!({"ids": ["1", "2"]})).unwrap();
        let expected = json!({"first": 3, "x": {"ids": ["1", "2"], "y": [null]}});
        assert_eq!(Value::Object(document.selection.fields[0].arguments.clone()), expected);
        assert!(!document.is_mutation);
    }

    #[test]
    fn fragments_are_spread_and_equal_fields_are_one() {
        let text =
            "{ node(id: 1) { id ...P ... on Order { name } ... { title } } node(id: 1) { id b: body } }
                    fragment P on Product { title ...Q } fragment Q on Product { title handle }";
        let document = parse(text, &json!({})).unwrap();
        let [node] = document.selection.fields.as_slice() else { panic!("{document:?}") };
        let keys = |fields: &[Field]| fields.iter().map(|field| field.key.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&node.selection.fields), ["id", "title", "b"]);
        let types: Vec<_> =
            node.selection.types.iter().map(|(of, fields)| (of.as_str(), keys(fields))).collect();
        assert_eq!(
            types,
            [("Product", vec!["title".into(), "handle".into()]), ("Order", vec!["name".into()])]
        );
    }

    #[test]
    fn directives_are_told_apart_by_where_they_stand() {
        let text = "mutation M($k: String!) @slow { a(x: 1) @idempotent(key: $k) { id @skip(if: true) } }";
        let document = parse(text, &json!({"k": "one"})).unwrap();
        assert!(document.is_mutation);
        assert_eq!(document.selection.fields[0].idempotent.as_deref(), Some("one"));
        assert_eq!(document.directives, BTreeSet::from(["idempotent".to_owned(), "skip".to_owned()]));
        assert_eq!(document.on_operation, BTreeSet::from(["slow".to_owned()]));
    }

    #[test]
    fn the_operation_is_chosen_by_name() {
        let text = "query A { a } mutation B { b }";
        let named = |name| Document::parse(text, name, &Map::new());
        assert!(named(Some("B")).unwrap().is_mutation);
        assert!(!named(Some("A")).unwrap().is_mutation);
        assert!(named(None).is_err() && named(Some("C")).is_err());
    }

    #[test]
    fn what_has_no_end_is_refused() {
        let itself = "{ ...A } fragment A on Q { a { ...A } }";
        let doubling: String = (0..30)
            .map(|n| {
                format!("fragment F{n} on Q {{ a{n}: x {{ ...F{} }} b{n}: x {{ ...F{} }} }} ", n + 1, n + 1)
            })
            .collect();
        let doubling = format!("{{ ...F0 }} {doubling} fragment F30 on Q {{ id }}");
        let lists = format!("{{ a(x: {}1{}) }}", "[".repeat(100_000), "]".repeat(100_000));
        for text in [itself, &doubling, &lists, "{ ...Missing }", "{", "", "subscription { a }"] {
            assert!(parse(text, &json!({})).is_err(), "{}", &text[..text.len().min(60)]);
        }
    }
}
