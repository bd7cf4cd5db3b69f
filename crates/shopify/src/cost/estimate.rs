//! Estimates the cost of a query from its text, by Shopify's rules: a scalar costs nothing, an
//! object one, a mutation ten plus the objects of its response, a connection two plus, for each
//! object it may return, one and the cost of what is selected of it.

use super::Variables;
use crate::bounds::PAGE_MAX;
use crate::document::{Document, Field, OperationDefinition, OperationType, Selection};

const MUTATION: u64 = 10;
const CONNECTION: u64 = 2;
/// The assumed page size when nothing specifies it.
const PAGE_DEFAULT: u64 = 50;
/// Most fields visited.
const VISITS_MAX: usize = 20_000;
/// Deepest nesting, with fragments expanded.
const DEPTH_MAX: u32 = 64;

/// Returns the points that an operation asks for; `None` when its fragments are invalid.
///
/// ```
/// use tidegate_shopify::cost::{Variables, estimate};
/// use tidegate_shopify::document::Document;
///
/// let text = "{ products(first: 10) { nodes { id variants(first: 5) { nodes { id } } } } }";
/// let document = Document::parse(text).unwrap();
/// let operation = document.operation(None).unwrap();
/// assert_eq!(estimate(&document, operation, &Variables::default()), Some(2 + 10 * (1 + 2 + 5)));
/// ```
#[must_use]
pub fn estimate(
    document: &Document<'_>,
    operation: &OperationDefinition<'_>,
    variables: &Variables<'_>,
) -> Option<u64> {
    let mut estimator = Estimator { document, operation, variables, visits: 0, depth: 0 };
    if operation.operation_type == OperationType::Mutation {
        let mut sum = 0_u64;
        for field in document.fields(&operation.selection)? {
            let answer = estimator.selection(&field.selection, 0)?;
            sum = sum.saturating_add(MUTATION).saturating_add(answer);
        }
        return Some(sum);
    }
    estimator.selection(&operation.selection, 1)
}

struct Estimator<'d, 'a> {
    document: &'d Document<'a>,
    operation: &'d OperationDefinition<'a>,
    variables: &'d Variables<'d>,
    visits: usize,
    depth: u32,
}

impl<'d, 'a> Estimator<'d, 'a> {
    /// Returns the cost of a selection on one object, when each object in it costs `object`. Of the
    /// types it may have, the most expensive counts.
    fn selection(&mut self, selection: &'d [Selection<'a>], object: u64) -> Option<u64> {
        if self.depth == DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let cost = self.selection_cost(selection, object);
        self.depth -= 1;
        cost
    }

    fn selection_cost(&mut self, selection: &'d [Selection<'a>], object: u64) -> Option<u64> {
        let mut sum = 0_u64;
        let mut by_type: Vec<(&str, u64)> = Vec::new();
        for part in selection {
            let (on, inner) = match part {
                Selection::Field(field) => {
                    sum = sum.saturating_add(self.field(field, object)?);
                    continue;
                }
                Selection::Inline(on, inner) => (*on, inner),
                Selection::Spread(name) => {
                    let fragment = self.document.fragment(name)?;
                    (Some(fragment.on), &fragment.selection)
                }
            };
            let cost = self.selection(inner, object)?;
            match (on, by_type.iter_mut().find(|(known, _)| Some(*known) == on)) {
                (None, _) => sum = sum.saturating_add(cost),
                (Some(_), Some((_, known))) => *known = known.saturating_add(cost),
                (Some(on), None) => by_type.push((on, cost)),
            }
        }
        let dearest = by_type.iter().map(|(_, cost)| *cost).max().unwrap_or(0);
        Some(sum.saturating_add(dearest))
    }

    fn field(&mut self, field: &'d Field<'a>, object: u64) -> Option<u64> {
        self.visit(1)?;
        if field.selection.is_empty() {
            return Some(0);
        }
        if let Some(page) = field.argument("first").or_else(|| field.argument("last")) {
            let page = self.variables.count(page, self.operation).unwrap_or(PAGE_DEFAULT);
            return self.connection(field, page.min(PAGE_MAX));
        }
        if field.name == "nodes"
            && let Some(ids) = field.argument("ids")
        {
            let count = self.variables.count(ids, self.operation).unwrap_or(PAGE_DEFAULT).min(PAGE_MAX);
            let each = self.selection(&field.selection, 1)?.saturating_add(1);
            return Some(count.saturating_mul(each));
        }
        Some(object.saturating_add(self.selection(&field.selection, object)?))
    }

    fn visit(&mut self, fields: usize) -> Option<()> {
        self.visits += fields;
        (self.visits <= VISITS_MAX).then_some(())
    }

    /// Returns the fields of a wrapper: a connection or its edges.
    fn frame(&mut self, field: &'d Field<'a>) -> Option<Vec<&'d Field<'a>>> {
        let fields = self.document.fields(&field.selection)?;
        self.visit(fields.len())?;
        Some(fields)
    }

    fn connection(&mut self, field: &'d Field<'a>, page: u64) -> Option<u64> {
        let (mut each, mut beside) = (1_u64, CONNECTION);
        for inner in self.frame(field)? {
            match inner.name {
                "edges" => each = each.saturating_add(self.edges(inner)?),
                "nodes" => each = each.saturating_add(self.selection(&inner.selection, 1)?),
                "pageInfo" => {}
                _ => beside = beside.saturating_add(self.field(inner, 1)?),
            }
        }
        Some(beside.saturating_add(page.saturating_mul(each)))
    }

    /// Returns the cost of edges; an edge is only the wrapper of its node.
    fn edges(&mut self, edges: &'d Field<'a>) -> Option<u64> {
        let mut sum = 0_u64;
        for inner in self.frame(edges)? {
            let cost = match inner.name {
                "node" => self.selection(&inner.selection, 1)?,
                _ => self.field(inner, 1)?,
            };
            sum = sum.saturating_add(cost);
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn cost(text: &str, variables: &str) -> Option<u64> {
        let raw: Box<RawValue> = serde_json::from_str(variables).unwrap();
        let document = Document::parse(text).unwrap();
        estimate(&document, document.operation(None)?, &Variables::read(Some(&raw)))
    }

    /// LIM-1: the documented costs.
    #[test]
    fn lim_1_a_text_is_estimated_by_the_documented_rules() {
        let table = [
            ("{ shop { name email } }", 1),
            ("{ __typename }", 0),
            ("{ shop { name primaryDomain { url } } }", 2),
            ("{ products(first: 10) { edges { cursor node { id title } } pageInfo { hasNextPage } } }", 12),
            ("{ products(last: 10) { nodes { id } } }", 12),
            ("{ products(first: 10) { nodes { featuredImage { url } } } }", 2 + 10 * 2),
            ("{ products(first: 10) { nodes { v: variants(first: 5) { nodes { id } } } } }", 2 + 10 * 8),
            ("{ products(first: 9999) { nodes { id } } }", 252),
            ("{ nodes(ids: [\"a\", \"b\", \"c\"]) { id } }", 3),
            ("{ a: shop { id } b: shop { id } }", 2),
            ("mutation { productCreate(product: {}) { product { id } userErrors { message } } }", 10),
            ("mutation { a: x { p { variants(first: 3) { nodes { id } } } } b: y { ok } }", 10 + 5 + 10),
            ("{ ...F } fragment F on Q { products(first: 2) { ...G } } fragment G on C { nodes { id } }", 4),
            ("{ node(id: 1) { id ... on Order { a { id } b { id } } ... on Product { c { id } } } }", 3),
        ];
        for (text, points) in table {
            assert_eq!(cost(text, "{}"), Some(points), "{text}");
        }
    }

    /// LIM-1: counts come from variables or their defaults, and from a guess when neither specifies
    /// them.
    #[test]
    fn lim_1_variables_and_their_defaults_count() {
        let text = "query($n: Int = 7, $ids: [ID!]) { products(first: $n) { nodes { id } } nodes(ids: $ids) { id } }";
        assert_eq!(cost(text, r#"{"n":20,"ids":["a","b"]}"#), Some(22 + 2));
        assert_eq!(cost(text, r#"{"ids":[]}"#), Some(9));
        assert_eq!(cost(text, r#"{"n":"many","ids":{}}"#), Some(2 + PAGE_DEFAULT + PAGE_DEFAULT));
        assert_eq!(cost(text, "[]"), Some(9 + PAGE_DEFAULT));
    }

    #[test]
    fn circles_and_bombs_are_none() {
        assert_eq!(cost("{ a { ...A } } fragment A on Q { b { ...A } }", "{}"), None);
        let mut bomb = "{ ...F0 }".to_owned();
        for n in 0..11 {
            let next = n + 1;
            bomb.push_str(&format!(" fragment F{n} on Q {{ a {{ x }} ...F{next} ...F{next} ...F{next} }}"));
        }
        bomb.push_str(" fragment F11 on Q { z { x } }");
        assert_eq!(cost(&bomb, "{}"), None);
    }
}
