//! The shape that calls of the same cost share: the text without its literals, but with its counts.
//! Two calls of one shape differ in what they look for, not in how much.

use std::fmt::Write as _;

use tidegate_core::fingerprint::{Fingerprint, hex};

use super::Variables;
use crate::document::{Document, OperationDefinition, Token, TokenKind};
use crate::version::ApiVersion;

/// Longest name in a label, in characters.
const NAME_LEN_MAX: usize = 100;
/// Longest path segment that is taken for the name of a resource.
const WORD_LEN_MAX: usize = 32;
/// Arguments whose values are counts.
const COUNTING: [&str; 3] = ["first", "last", "ids"];

/// A shape, by its hash and by a label for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallShape {
    /// The hash, used as the cache key.
    pub hash: u128,
    /// A name and a short hash: `GetOrders#1f0c9a2b`.
    pub label: String,
}

impl CallShape {
    /// Returns the shape of an operation in this version of the API.
    #[must_use]
    pub fn of(
        document: &Document<'_>,
        operation: &OperationDefinition<'_>,
        variables: &Variables<'_>,
        version: Option<ApiVersion>,
    ) -> Self {
        let text = normalize(document, operation, variables);
        let version = version.map(|version| version.to_string()).unwrap_or_default();
        let hash = Fingerprint::of("shopify shape 1")
            .part(version.as_bytes())
            .part(operation.name.unwrap_or_default().as_bytes())
            .part(text.as_bytes())
            .short();
        let first = || document.fields(&operation.selection)?.first().map(|field| field.name);
        let name: String =
            operation.name.or_else(first).unwrap_or("query").chars().take(NAME_LEN_MAX).collect();
        Self { hash, label: format!("{name}#{}", hex(&hash.to_be_bytes()[..4])) }
    }
}

/// Writes the tokens of a document with `?` for literals, except for counts.
fn normalize(
    document: &Document<'_>,
    operation: &OperationDefinition<'_>,
    variables: &Variables<'_>,
) -> String {
    let tokens = &document.tokens;
    let counts = |at: usize| {
        let named = |token: &Token<'_>| token.kind == TokenKind::Name && COUNTING.contains(&token.text);
        at >= 2 && tokens[at - 1].is_punctuator(":") && named(&tokens[at - 2])
    };
    let mut text = String::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Name | TokenKind::Punctuator => text.push_str(token.text),
            TokenKind::Int if counts(at) => text.push_str(token.text),
            TokenKind::Int | TokenKind::Float | TokenKind::Text => text.push('?'),
        }
        text.push(' ');
        if token.is_punctuator("$")
            && counts(at)
            && let Some(name) = tokens.get(at + 1)
        {
            let value = crate::document::ArgumentValue::Variable(name.text);
            // The variable is represented by its value; its name comes next.
            let _ = write!(text, "{:?} ", variables.count(value, operation));
        }
    }
    text
}

/// Returns the label of a REST call: its method and its path, with numbers as `{id}` and without
/// version and query.
///
/// ```
/// use tidegate_shopify::cost::rest_shape;
///
/// let path = "/admin/api/2026-04/products/123.json?fields=id";
/// assert_eq!(rest_shape("GET", path), "GET /products/{id}.json");
/// ```
#[must_use]
pub fn rest_shape(method: &str, path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let path = path
        .split_once("/admin/api/")
        .and_then(|(_, rest)| rest.split_once('/'))
        .map_or(path, |(_, rest)| rest);
    let parts = path.trim_start_matches('/').split('/').map(|part| {
        let (stem, end) = part.split_once('.').map_or((part, ""), |(stem, end)| (stem, end));
        // Ids, tokens, addresses and handles identify someone; resources are short words.
        let is_word = stem.len() <= WORD_LEN_MAX && stem.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        match (is_word, end) {
            (true, "" | "json") => part.to_owned(),
            (_, "json") => "{id}.json".to_owned(),
            _ => "{id}".to_owned(),
        }
    });
    let label = format!("{method} /{}", parts.collect::<Vec<_>>().join("/"));
    label.chars().take(NAME_LEN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn shape(text: &str, variables: &str) -> CallShape {
        let raw: Box<RawValue> = serde_json::from_str(variables).unwrap();
        let document = Document::parse(text).unwrap();
        let version = "2026-04".parse().ok();
        CallShape::of(&document, document.operation(None).unwrap(), &Variables::read(Some(&raw)), version)
    }

    /// LIM-8: what a call looks for does not change its shape; how much it asks for does.
    #[test]
    fn lim_8_a_shape_is_how_much_and_not_what() {
        let text = |id: u32, n: u32| {
            format!("query Q {{ a(id: {id}, at: \"{id}\", first: {n}) {{ nodes {{ id }} }} }}")
        };
        let one = shape(&text(1, 10), "{}");
        assert_eq!(one, shape(&text(2, 10), "{}"));
        assert_eq!(
            one,
            shape(&text(1, 10).replace(' ', "\n# c\n "), "{}"),
            "blanks and comments are nothing"
        );
        assert_ne!(one, shape(&text(1, 11), "{}"));
        assert!(one.label.starts_with("Q#") && one.label.len() == 10, "{}", one.label);

        let by_variable = "query($n: Int = 3, $q: String) { a(first: $n, query: $q) { nodes { id } } }";
        let three = shape(by_variable, r#"{"q":"x"}"#);
        assert_eq!(three, shape(by_variable, r#"{"q":"y","n":3}"#));
        assert_ne!(three, shape(by_variable, r#"{"n":4}"#));
        assert!(three.label.starts_with("a#"));
        let list = "query($ids: [ID!]!) { nodes(ids: $ids) { id } }";
        assert_eq!(shape(list, r#"{"ids":["a"]}"#), shape(list, r#"{"ids":["b"]}"#));
        assert_ne!(shape(list, r#"{"ids":["a"]}"#), shape(list, r#"{"ids":["a","b"]}"#));
    }

    /// LIM-10: what is kept of calls identifies no one.
    #[test]
    fn lim_10_a_rest_call_is_told_without_whose_it_is() {
        let told = "GET /customers/{id}/checkouts/{id}.json";
        assert_eq!(
            rest_shape("GET", "/admin/api/2026-04/customers/ann.b@x.org/checkouts/5f3aTok.json"),
            told
        );
    }

    #[test]
    fn a_rest_call_is_told_without_its_numbers() {
        assert_eq!(
            rest_shape("PUT", "/admin/api/2026-04/orders/1/refunds/22"),
            "PUT /orders/{id}/refunds/{id}"
        );
        assert_eq!(
            rest_shape("GET", "/admin/oauth/access_scopes.json"),
            "GET /admin/oauth/access_scopes.json"
        );
        assert_eq!(rest_shape("GET", "/"), "GET /");
    }
}
