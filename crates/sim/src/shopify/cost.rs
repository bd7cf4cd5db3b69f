//! The cost of a document, as Shopify documents it: scalars cost nothing, an object one, a mutation
//! ten, a connection two plus, for each object it may return, one and the cost of what is selected
//! of it. Of the types an object may have, the most expensive counts. The ten of a mutation pay for
//! the objects of its response as well.

use super::document::{Document, Field, Selection};
use super::shape::FieldShape;

/// The most a single document may ask for, on any plan.
pub const SINGLE_MAX: u64 = 1_000;

const MUTATION: u64 = 10;
const CONNECTION: u64 = 2;

/// The share of the possible objects that is returned, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnedShare(u64);

impl ReturnedShare {
    /// All of them.
    pub const ALL: Self = Self(1_000);

    /// Creates a share from a random number: three tenths to all.
    #[must_use]
    pub const fn drawn(number: u64) -> Self {
        Self(300 + number % 701)
    }

    /// Returns this share of `most`.
    #[must_use]
    pub fn of(self, most: u64) -> u64 {
        // The product fits: a share is at most a thousand, and the quotient is at most `most`.
        (u128::from(most) * u128::from(self.0) / 1_000) as u64
    }
}

/// Returns the cost when this share of all objects is returned; with [`ReturnedShare::ALL`], the
/// requested cost.
#[must_use]
pub fn cost(document: &Document, share: ReturnedShare) -> u64 {
    if !document.is_mutation {
        return of_selection(&document.selection, share, 1);
    }
    let each = |field: &Field| MUTATION.saturating_add(of_selection(&field.selection, share, 0));
    document.selection.all().map(each).fold(0, u64::saturating_add)
}

fn of_selection(selection: &Selection, share: ReturnedShare, object: u64) -> u64 {
    let sum = |fields: &[Field]| {
        fields.iter().map(|field| of_field(field, share, object)).fold(0, u64::saturating_add)
    };
    let dearest = selection.types.iter().map(|(_, fields)| sum(fields)).max().unwrap_or(0);
    sum(&selection.fields).saturating_add(dearest)
}

fn of_field(field: &Field, share: ReturnedShare, object: u64) -> u64 {
    match FieldShape::of(field) {
        FieldShape::Scalar => 0,
        FieldShape::Object => object.saturating_add(of_selection(&field.selection, share, object)),
        FieldShape::List(most) => {
            let each = 1_u64.saturating_add(of_selection(&field.selection, share, 1));
            share.of(most).saturating_mul(each)
        }
        FieldShape::Connection(most) => {
            let (mut each, mut beside) = (1_u64, CONNECTION);
            for inner in field.selection.all() {
                match inner.name.as_str() {
                    "edges" => each = each.saturating_add(of_edges(&inner.selection, share)),
                    "nodes" => each = each.saturating_add(of_selection(&inner.selection, share, 1)),
                    "pageInfo" => {}
                    _ => beside = beside.saturating_add(of_field(inner, share, 1)),
                }
            }
            beside.saturating_add(share.of(most).saturating_mul(each))
        }
    }
}

/// Returns the cost of edges; an edge is only the wrapper of its node.
fn of_edges(selection: &Selection, share: ReturnedShare) -> u64 {
    let of = |field: &Field| match field.name.as_str() {
        "node" => of_selection(&field.selection, share, 1),
        _ => of_field(field, share, 1),
    };
    selection.all().map(of).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn document(text: &str, variables: &Value) -> Document {
        Document::parse(text, None, variables.as_object().unwrap_or(&Map::new())).unwrap()
    }

    fn asked(text: &str) -> u64 {
        cost(&document(text, &json!({})), ReturnedShare::ALL)
    }

    /// LIM-1: the requested cost is the documented one.
    #[test]
    fn lim_1_the_documented_costs() {
        assert_eq!(asked("{ shop { name email } }"), 1);
        assert_eq!(asked("{ shop { name primaryDomain { url } } }"), 2);
        assert_eq!(asked("{ products(first: 10) { edges { node { id title } } } }"), 12);
        assert_eq!(asked("{ products(last: 10) { nodes { id } pageInfo { endCursor } } }"), 12);
        let nested =
            "{ products(first: 10) { edges { cursor node { id variants(first: 5) { nodes { id } } } } } }";
        assert_eq!(asked(nested), 2 + 10 * (1 + 2 + 5));
        assert_eq!(asked("{ nodes(ids: [1, 2, 3]) { id } }"), 3);
        assert_eq!(asked("{ a: shop { id } b: shop { id } }"), 2);
        assert_eq!(
            asked("mutation { productCreate(product: {}) { product { id } userErrors { message } } }"),
            10
        );
        let answer = "mutation { a: x { product { variants(first: 3) { nodes { id } } } } b: y { ok } }";
        assert_eq!(asked(answer), 10 + 5 + 10);
    }

    #[test]
    fn the_dearest_of_several_types_counts() {
        let text = "{ node(id: 1) { id ... on Order { a { id } b { id } } ... on Product { c { id } } } }";
        assert_eq!(asked(text), 1 + 2);
    }

    #[test]
    fn variables_count_as_what_they_are() {
        let text = "query($n: Int!) { products(first: $n) { nodes { id } } }";
        assert_eq!(cost(&document(text, &json!({"n": 7})), ReturnedShare::ALL), 9);
    }

    #[test]
    fn absurd_sizes_do_not_wrap() {
        let most = u64::MAX;
        assert_eq!(
            asked(&format!("{{ a(first: {most}) {{ nodes {{ b(first: {most}) {{ nodes {{ id }} }} }} }} }}")),
            most
        );
    }

    /// Generates a tree of fields: the text of a selection, and its cost computed by hand.
    fn tree() -> impl Strategy<Value = (String, u64)> {
        let scalar = Just((" id".to_owned(), 0));
        scalar.prop_recursive(5, 40, 4, |inner| {
            prop_oneof![
                inner.clone().prop_map(|(text, cost)| (format!(" thing {{{text} }}"), 1 + cost)),
                (1_u64..20, inner.clone()).prop_map(|(n, (text, cost))| {
                    (format!(" some(first: {n}) {{ nodes {{{text} }} }}"), 2 + n * (1 + cost))
                }),
                (1_u64..20, inner.clone()).prop_map(|(n, (text, cost))| {
                    let text = format!(" some(last: {n}) {{ edges {{ cursor node {{{text} }} }} pageInfo {{ hasNextPage }} }}");
                    (text, 2 + n * (1 + cost))
                }),
                proptest::collection::vec(inner, 1..4).prop_map(|parts| {
                    let mut total = 0;
                    let named = parts.into_iter().enumerate().map(|(n, (text, cost))| {
                        total += 1 + cost;
                        format!(" a{n}: thing {{{text} }}")
                    });
                    (named.collect(), total)
                }),
            ]
        })
    }

    proptest! {
        /// LIM-1: any nesting costs what adding and multiplying by hand gives, in fragments too,
        /// and no call uses more than it requested.
        #[test]
        fn lim_1_costs_add_and_multiply((text, expected) in tree(), drawn: u64) {
            let plain = document(&format!("{{{text} }}"), &json!({}));
            prop_assert_eq!(cost(&plain, ReturnedShare::ALL), expected);
            let spread = document(&format!("{{ ...F }} fragment F on Query {{{text} }}"), &json!({}));
            prop_assert_eq!(cost(&spread, ReturnedShare::ALL), expected);
            prop_assert!(cost(&plain, ReturnedShare::drawn(drawn)) <= expected);
        }
    }
}
