//! `@idempotent(key: …)`: the mutations that accept it, from which version on, and how it is added
//! to a field that has none. With it a call whose response was lost can be sent again, for as long
//! as Shopify remembers the key: a day.

use crate::document::{Document, Field, OperationDefinition, OperationType};
use crate::version::{ApiVersion, IDEMPOTENT_SINCE};

/// The directive.
const DIRECTIVE: &str = "idempotent";

/// The mutations that accept it.
const MUTATIONS: [&str; 17] = [
    "inventoryActivate",
    "inventoryAdjustQuantities",
    "inventoryMoveQuantities",
    "inventorySetOnHandQuantities",
    "inventorySetQuantities",
    "inventorySetScheduledChanges",
    "inventoryShipmentAddItems",
    "inventoryShipmentCreate",
    "inventoryShipmentCreateInTransit",
    "inventoryShipmentReceive",
    "inventoryTransferCreate",
    "inventoryTransferCreateAsReadyToShip",
    "inventoryTransferDuplicate",
    "inventoryTransferSetItems",
    "locationActivate",
    "locationDeactivate",
    "refundCreate",
];

/// Returns whether the same call may be sent again: it only reads, or each of its mutations has a
/// key or gets one.
#[must_use]
pub(crate) fn is_repeatable(
    document: &Document<'_>,
    operation: &OperationDefinition<'_>,
    version: Option<ApiVersion>,
) -> bool {
    match operation.operation_type {
        OperationType::Query => true,
        OperationType::Subscription => false,
        OperationType::Mutation => document
            .fields(&operation.selection)
            .is_some_and(|fields| fields.iter().all(|field| has_key(field) || takes_key(field, version))),
    }
}

fn has_key(field: &Field<'_>) -> bool {
    field.directives.contains(&DIRECTIVE)
}

fn takes_key(field: &Field<'_>, version: Option<ApiVersion>) -> bool {
    version.is_some_and(|version| version >= IDEMPOTENT_SINCE) && MUTATIONS.contains(&field.name)
}

/// Adds a key to each mutation that accepts one and has none; `None` when there is no such
/// mutation. The first one gets the key as it is, the others with a number appended, because a key
/// stands for one change.
#[must_use]
pub(crate) fn add_keys(
    text: &str,
    document: &Document<'_>,
    operation: &OperationDefinition<'_>,
    version: Option<ApiVersion>,
    key: &str,
) -> Option<String> {
    if operation.operation_type != OperationType::Mutation {
        return None;
    }
    let fields = document.fields(&operation.selection)?;
    let mut places: Vec<_> = fields
        .iter()
        .filter(|field| !has_key(field) && takes_key(field, version))
        .map(|field| field.head_end)
        .collect();
    // A fragment that is spread twice has its fields once.
    places.sort_unstable();
    places.dedup();
    if places.is_empty() {
        return None;
    }
    let (mut keyed, mut from) = (String::with_capacity(text.len() + 64 * places.len()), 0);
    for (nth, place) in places.into_iter().enumerate() {
        let key = if nth == 0 { key.to_owned() } else { format!("{key}-{}", nth + 1) };
        keyed.push_str(text.get(from..place)?);
        // A JSON string is a GraphQL string.
        keyed.push_str(&format!(" @{DIRECTIVE}(key: {})", serde_json::to_string(&key).ok()?));
        from = place;
    }
    keyed.push_str(text.get(from..)?);
    Some(keyed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(text: &str, version: &str) -> Option<String> {
        let document = Document::parse(text).unwrap();
        add_keys(text, &document, document.operation(None).unwrap(), version.parse().ok(), "op-1")
    }

    fn repeatable(text: &str, version: &str) -> bool {
        let document = Document::parse(text).unwrap();
        is_repeatable(&document, document.operation(None).unwrap(), version.parse().ok())
    }

    /// OPS-23: a key is added where the version accepts it, and only there.
    #[test]
    fn ops_23_a_key_is_put_on_the_field() {
        let text = "mutation($i: X!) { r: refundCreate(input: $i) { refund { id } } }";
        let expected =
            "mutation($i: X!) { r: refundCreate(input: $i) @idempotent(key: \"op-1\") { refund { id } } }";
        for version in ["2026-01", "2026-04", "unstable"] {
            assert_eq!(keyed(text, version).as_deref(), Some(expected), "{version}");
        }
        assert_eq!(keyed(text, "2025-10"), None);
        assert_eq!(keyed(text, "no version"), None);
        assert_eq!(keyed(expected, "2026-04"), None, "it has one");
        assert_eq!(keyed("mutation { productCreate(product: {}) { product { id } } }", "2026-04"), None);
        assert_eq!(keyed("{ refundCreate { id } }", "2026-04"), None, "it only reads");
        let plain =
            keyed("mutation { locationActivate @include(if: $x) { location { id } } }", "2026-04").unwrap();
        assert!(plain.contains("locationActivate @idempotent(key: \"op-1\") @include"), "{plain}");
    }

    /// OPS-23: two changes in one call have two keys, and a fragment that is spread twice has one.
    #[test]
    fn ops_23_each_change_has_a_key_of_its_own() {
        let two =
            keyed("mutation { a: inventoryActivate { x } b: inventoryActivate { x } }", "2026-04").unwrap();
        assert!(two.contains("inventoryActivate @idempotent(key: \"op-1\") { x } b:"), "{two}");
        assert!(two.contains("@idempotent(key: \"op-1-2\") { x } }"), "{two}");
        let spread = "mutation { ...A ...A } fragment A on Mutation { refundCreate(input: {}) { id } }";
        assert_eq!(keyed(spread, "2026-04").unwrap().matches("@idempotent").count(), 1);
    }

    /// OPS-23: a read, or a call with a key for every change, may be sent again; nothing else.
    #[test]
    fn ops_23_only_what_has_a_key_is_repeatable() {
        assert!(repeatable("{ shop { id } }", "2024-01"));
        assert!(!repeatable("subscription { x }", "2026-04"));
        assert!(repeatable("mutation { refundCreate { id } }", "2026-01"));
        assert!(!repeatable("mutation { refundCreate { id } }", "2025-10"));
        assert!(!repeatable("mutation { refundCreate { id } productCreate { id } }", "2026-04"));
        assert!(repeatable("mutation { productCreate @idempotent(key: $k) { id } }", "2026-04"));
    }
}
