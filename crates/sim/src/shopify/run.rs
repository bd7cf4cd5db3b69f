//! Runs a document that was admitted: every field gets a value, and mutations have their effect.
//! Data other than bulk operations and remembered objects is made up.

mod bulk;
mod write;

use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_core::Time;

use super::bodies;
use super::bulk::BulkKind;
use super::cost::ReturnedShare;
use super::data::DataGenerator;
use super::document::{Document, Field};
use super::keys::{KeyLookup, needs_a_key};
use super::shop::Shop;
use super::version::{IdempotencyRule, Version};
use crate::effect_history::EffectHistory;
use crate::stats::Stats;

/// The context of a run.
#[derive(Debug)]
pub struct DocumentRun<'a> {
    /// The shop's name.
    pub name: &'a str,
    /// The shop.
    pub shop: &'a mut Shop,
    /// The counts of all shops.
    pub stats: &'a mut Stats,
    /// The effects of all shops.
    pub history: &'a mut EffectHistory,
    /// The last number that was assigned.
    pub last: &'a mut u64,
    /// The version that responds.
    pub version: Version,
    /// The share of the possible objects that is returned.
    pub share: ReturnedShare,
    /// The base URL of results: `http://…`.
    pub base: &'a str,
    /// How long a bulk operation takes.
    pub bulk_takes: Duration,
    /// How many lines its result has.
    pub bulk_rows: u64,
    /// The time.
    pub now: Time,
}

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct DocumentOutcome {
    /// The data.
    pub data: Map<String, Value>,
    /// Errors next to it.
    pub errors: Vec<Value>,
}

impl DocumentRun<'_> {
    /// Runs a document.
    pub fn document(mut self, document: &Document) -> DocumentOutcome {
        let mut outcome = DocumentOutcome::default();
        for field in document.selection.all() {
            let value = match document.is_mutation {
                false => self.query(field),
                true if self.is_missing_key(field) => {
                    outcome.errors.push(bodies::key_required(&field.key));
                    Value::Null
                }
                true => self.mutate_once(field),
            };
            outcome.data.insert(field.key.clone(), value);
        }
        outcome
    }

    fn is_missing_key(&self, field: &Field) -> bool {
        let required = self.version.idempotency() == IdempotencyRule::Required && needs_a_key(&field.name);
        required && field.idempotent.is_none()
    }

    fn query(&mut self, field: &Field) -> Value {
        let id = field.arguments.get("id").and_then(Value::as_str).unwrap_or_default();
        let is_bulk = id.starts_with("gid://shopify/BulkOperation/");
        match field.name.as_str() {
            "bulkOperation" | "node" if is_bulk => self.bulk(field, id),
            "currentBulkOperation" => self.newest_bulk(field),
            "bulkOperations" => self.bulks(field),
            "shop" => {
                let known =
                    json!({ "name": self.name, "myshopifyDomain": format!("{}.myshopify.com", self.name) });
                self.made_up(field, "Shop", known)
            }
            _ => self.data().field(field, "QueryRoot"),
        }
    }

    /// Runs a mutation, unless its key shows that it has happened.
    fn mutate_once(&mut self, field: &Field) -> Value {
        let Some(key) = &field.idempotent else { return self.mutate(field) };
        match self.shop.keys.lookup(key, field, self.now) {
            KeyLookup::Replay(answer) => answer,
            KeyLookup::Mismatch => {
                let message = "The idempotency key was used before with other parameters.";
                self.refused(field, &bodies::user_error("IDEMPOTENCY_KEY_PARAMETER_MISMATCH", message))
            }
            KeyLookup::Fresh => {
                let answer = self.mutate(field);
                self.shop.keys.store(key, field, &answer, self.now);
                answer
            }
        }
    }

    fn mutate(&mut self, field: &Field) -> Value {
        match field.name.as_str() {
            "bulkOperationRunQuery" => self.start(field, BulkKind::Query, "query"),
            "bulkOperationRunMutation" => self.start(field, BulkKind::Mutation, "mutation"),
            "bulkOperationCancel" => self.cancel(field),
            "productCreate" => self.create_product(field),
            "inventoryAdjustQuantities" => self.adjust_inventory(field),
            _ => {
                self.stats.writes += 1;
                let key = field.idempotent.as_deref();
                self.count_duplicate(field, key);
                self.data().object(&field.selection, "Payload", &Map::new())
            }
        }
    }

    /// Returns a mutation's response with only an error in it.
    fn refused(&mut self, field: &Field, error: &Value) -> Value {
        let mut answer = Map::new();
        for inner in field.selection.all() {
            let value = match inner.name.ends_with("rrors") {
                true => json!([self.data().object(
                    &inner.selection,
                    "UserError",
                    error.as_object().unwrap_or(&Map::new())
                )]),
                false => Value::Null,
            };
            answer.insert(inner.key.clone(), value);
        }
        Value::Object(answer)
    }

    fn made_up(&mut self, field: &Field, of: &str, known: Value) -> Value {
        let known = if let Value::Object(known) = known { known } else { Map::new() };
        self.data().object(&field.selection, of, &known)
    }

    const fn data(&mut self) -> DataGenerator<'_> {
        DataGenerator::new(self.last, self.share)
    }
}
