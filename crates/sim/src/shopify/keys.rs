//! Idempotency keys of one shop: the response to the first call with a key, kept for a day. In
//! bounded memory.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde_json::Value;
use tidegate_core::Time;
use tidegate_core::fingerprint::Fingerprint;

use super::document::Field;

/// How long a key is remembered.
pub const KEY_TTL: Duration = Duration::from_hours(24);
/// Most keys per shop; beyond it the oldest is dropped.
const KEYS_MAX: usize = 100_000;

/// The mutations that are refused without a key, from the version on that requires it.
const NEED_A_KEY: [&str; 17] = [
    "refundCreate",
    "inventoryAdjustQuantities",
    "inventoryMoveQuantities",
    "inventorySetQuantities",
    "inventorySetOnHandQuantities",
    "inventorySetScheduledChanges",
    "inventoryActivate",
    "inventoryShipmentCreate",
    "inventoryShipmentCreateInTransit",
    "inventoryShipmentAddItems",
    "inventoryShipmentReceive",
    "inventoryTransferCreate",
    "inventoryTransferCreateAsReadyToShip",
    "inventoryTransferDuplicate",
    "inventoryTransferSetItems",
    "locationActivate",
    "locationDeactivate",
];

/// The keys.
#[derive(Debug, Default)]
pub struct IdempotencyKeys {
    known: HashMap<String, StoredAnswer>,
    order: VecDeque<(Time, String)>,
}

#[derive(Debug)]
struct StoredAnswer {
    parameters: u128,
    answer: Value,
}

/// The result of looking up a key.
#[derive(Debug, PartialEq)]
pub enum KeyLookup {
    /// The key is new.
    Fresh,
    /// The key was used with the same parameters and got this response.
    Replay(Value),
    /// The key was used with other parameters.
    Mismatch,
}

/// Returns whether a mutation is refused without a key.
#[must_use]
pub fn needs_a_key(mutation: &str) -> bool {
    NEED_A_KEY.contains(&mutation)
}

impl IdempotencyKeys {
    /// Looks up the key of a mutation.
    pub fn lookup(&mut self, key: &str, field: &Field, now: Time) -> KeyLookup {
        while self.order.front().is_some_and(|(at, _)| at.after(KEY_TTL) <= now) {
            self.forget();
        }
        match self.known.get(key) {
            None => KeyLookup::Fresh,
            Some(kept) if kept.parameters == parameters(field) => KeyLookup::Replay(kept.answer.clone()),
            Some(_) => KeyLookup::Mismatch,
        }
    }

    /// Stores a response.
    pub fn store(&mut self, key: &str, field: &Field, answer: &Value, now: Time) {
        if self.order.len() == KEYS_MAX {
            self.forget();
        }
        self.order.push_back((now, key.to_owned()));
        self.known
            .insert(key.to_owned(), StoredAnswer { parameters: parameters(field), answer: answer.clone() });
    }

    fn forget(&mut self) {
        if let Some((_, key)) = self.order.pop_front() {
            self.known.remove(&key);
        }
    }
}

fn parameters(field: &Field) -> u128 {
    let arguments = Value::Object(field.arguments.clone()).to_string();
    Fingerprint::of("sim shopify").part(field.name.as_bytes()).part(arguments.as_bytes()).short()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::shopify::document::Document;

    fn field(delta: i64) -> Field {
        let text = format!("mutation {{ inventoryAdjustQuantities(input: {{delta: {delta}}}) {{ id }} }}");
        Document::parse(&text, None, &Map::new()).unwrap().selection.fields.remove(0)
    }

    #[test]
    fn a_key_is_known_for_a_day_with_its_parameters() {
        let mut keys = IdempotencyKeys::default();
        let (start, day) = (Time::from_millis(5), Time::from_millis(5 + 24 * 3_600 * 1_000));
        assert_eq!(keys.lookup("k", &field(1), start), KeyLookup::Fresh);
        keys.store("k", &field(1), &json!("first"), start);
        assert_eq!(keys.lookup("k", &field(1), start), KeyLookup::Replay(json!("first")));
        assert_eq!(keys.lookup("k", &field(2), start), KeyLookup::Mismatch);
        assert_eq!(keys.lookup("other", &field(1), start), KeyLookup::Fresh);
        assert_eq!(
            keys.lookup("k", &field(1), day.before(Duration::from_micros(1))),
            KeyLookup::Replay(json!("first"))
        );
        assert_eq!(keys.lookup("k", &field(2), day), KeyLookup::Fresh);
    }
}
