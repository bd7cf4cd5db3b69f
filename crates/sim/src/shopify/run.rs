//! Runs a document that fits: each field of it is answered, and mutations have their effect. What is no bulk operation
//! and not remembered is made up.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tidegate_core::Time;

use super::bodies;
use super::bulk::{Bulk, Kind, Size};
use super::cost::Share;
use super::data::Data;
use super::document::{Document, Field};
use super::keys::{Known, needs_a_key};
use super::rows::Rows;
use super::shop::Shop;
use super::version::{Idempotency, Version};
use crate::seen::Seen;
use crate::stats::Stats;

/// What a run needs.
#[derive(Debug)]
pub struct Run<'a> {
    /// The shop's name.
    pub name: &'a str,
    /// The shop.
    pub shop: &'a mut Shop,
    /// The counts of all shops.
    pub stats: &'a mut Stats,
    /// The effects of all shops.
    pub seen: &'a mut Seen,
    /// The number of the last thing.
    pub last: &'a mut u64,
    /// The version that answers.
    pub version: Version,
    /// Which part of what may be returned is there.
    pub share: Share,
    /// Where results are: `http://…`.
    pub base: &'a str,
    /// How long a bulk operation takes.
    pub bulk_takes: Duration,
    /// How many lines its result has.
    pub bulk_rows: u64,
    /// When.
    pub now: Time,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The data.
    pub data: Map<String, Value>,
    /// Errors beside it.
    pub errors: Vec<Value>,
}

impl Run<'_> {
    /// Runs a document.
    pub fn document(mut self, document: &Document) -> Outcome {
        let mut outcome = Outcome::default();
        for field in document.selection.all() {
            let value = match document.is_mutation {
                false => self.query(field),
                true if self.lacks_a_key(field) => {
                    outcome.errors.push(bodies::key_required(&field.key));
                    Value::Null
                }
                true => self.once(field),
            };
            outcome.data.insert(field.key.clone(), value);
        }
        outcome
    }

    fn lacks_a_key(&self, field: &Field) -> bool {
        let required = self.version.idempotency() == Idempotency::Required && needs_a_key(&field.name);
        required && field.idempotent.is_none()
    }

    fn query(&mut self, field: &Field) -> Value {
        let id = field.arguments.get("id").and_then(Value::as_str).unwrap_or_default();
        let is_bulk = id.starts_with("gid://shopify/BulkOperation/");
        match field.name.as_str() {
            "bulkOperation" | "node" if is_bulk => {
                self.told(field, self.shop.bulks.get(id).cloned().as_ref())
            }
            "currentBulkOperation" => {
                let is_mutation = field.arguments.get("type").is_some_and(|kind| kind == "MUTATION");
                let kind = if is_mutation { Kind::Mutation } else { Kind::Query };
                self.told(field, self.shop.bulks.newest(kind).cloned().as_ref())
            }
            "bulkOperations" => self.bulks(field),
            "shop" => {
                let known =
                    json!({ "name": self.name, "myshopifyDomain": format!("{}.myshopify.com", self.name) });
                self.made_up(field, "Shop", known)
            }
            _ => self.data().field(field, "QueryRoot"),
        }
    }

    /// A mutation, unless its key says that it has happened.
    fn once(&mut self, field: &Field) -> Value {
        let Some(key) = &field.idempotent else { return self.mutate(field) };
        match self.shop.keys.look(key, field, self.now) {
            Known::Again(answer) => answer,
            Known::Mismatch => {
                let message = "The idempotency key was used before with other parameters.";
                self.refused(field, bodies::user_error("IDEMPOTENCY_KEY_PARAMETER_MISMATCH", message))
            }
            Known::Fresh => {
                let answer = self.mutate(field);
                self.shop.keys.keep(key, field, &answer, self.now);
                answer
            }
        }
    }

    fn mutate(&mut self, field: &Field) -> Value {
        match field.name.as_str() {
            "bulkOperationRunQuery" => self.start(field, Kind::Query, "query"),
            "bulkOperationRunMutation" => self.start(field, Kind::Mutation, "mutation"),
            "bulkOperationCancel" => {
                let id = field.arguments.get("id").and_then(Value::as_str).unwrap_or_default();
                match self.shop.bulks.cancel(id, self.now).cloned() {
                    Some(bulk) => self.accepted(field, &bulk),
                    None => {
                        self.refused(field, bodies::user_error("NOT_FOUND", "Bulk operation does not exist"))
                    }
                }
            }
            "productCreate" => self.create_product(field),
            "inventoryAdjustQuantities" => self.adjust_inventory(field),
            _ => {
                self.stats.writes += 1;
                let key = field.idempotent.as_deref();
                self.count_again(field, key);
                self.data().object(&field.selection, "Payload", &Map::new())
            }
        }
    }

    fn create_product(&mut self, field: &Field) -> Value {
        let input = field.arguments.get("product").or_else(|| field.arguments.get("input"));
        let text = |name: &str| input.and_then(|input| input.get(name)).and_then(Value::as_str);
        let title = text("title").unwrap_or_default();
        if title.is_empty() {
            let missing = json!({ "field": ["title"], "message": "Title can't be blank" });
            return self.refused(field, missing);
        }
        self.stats.writes += 1;
        self.count_again(field, text("handle").or(Some(title)));
        *self.stats.objects.entry("products".to_owned()).or_default() += 1;
        let id = format!("gid://shopify/Product/{}", self.data().number());
        let mut product = input.and_then(Value::as_object).cloned().unwrap_or_default();
        product.insert("id".to_owned(), json!(id));
        self.made_up(field, "Payload", json!({ "product": product }))
    }

    fn adjust_inventory(&mut self, field: &Field) -> Value {
        self.stats.writes += 1;
        let input = field.arguments.get("input");
        let reference = input.and_then(|input| input.get("referenceDocumentUri")).and_then(Value::as_str);
        self.count_again(field, reference.or(field.idempotent.as_deref()));
        let changes = input.and_then(|input| input.get("changes")).and_then(Value::as_array);
        let mut told = Vec::new();
        for change in changes.into_iter().flatten() {
            let text = |name: &str| change.get(name).and_then(Value::as_str).unwrap_or_default();
            let delta = change.get("delta").and_then(Value::as_i64).unwrap_or(0);
            let level = self.shop.adjust(text("inventoryItemId"), text("locationId"), delta);
            told.push(json!({ "name": "available", "delta": delta, "quantityAfterChange": level }));
        }
        let group = field.selection.field("inventoryAdjustmentGroup");
        let changes = group.and_then(|group| group.selection.field("changes"));
        let mut data = Data::new(self.last, self.share);
        let told: Vec<_> = told
            .iter()
            .zip(changes.into_iter().cycle())
            .map(|(told, changes)| {
                data.object(&changes.selection, "InventoryChange", told.as_object().unwrap_or(&Map::new()))
            })
            .collect();
        self.made_up(field, "Payload", json!({ "inventoryAdjustmentGroup": {"changes": told} }))
    }

    /// An effect that had happened before, by what names it.
    fn count_again(&mut self, field: &Field, key: Option<&str>) {
        let Some(key) = key else { return };
        let again = self.seen.again(&format!("{}/{}", self.name, field.name), key);
        self.stats.duplicates += u64::from(again);
    }

    fn start(&mut self, field: &Field, kind: Kind, argument: &str) -> Value {
        let text = field.arguments.get(argument).and_then(Value::as_str).unwrap_or_default();
        let rows = match Rows::new(kind, text, self.bulk_rows) {
            Ok(rows) => rows,
            Err(message) => return self.refused(field, bodies::user_error("INVALID", &message)),
        };
        let uploaded = field.arguments.get("stagedUploadPath").and_then(Value::as_str).unwrap_or_default();
        if kind == Kind::Mutation && uploaded.is_empty() {
            let message = "The JSONL file could not be found. Try uploading the file again.";
            return self.refused(field, bodies::user_error("NO_SUCH_FILE", message));
        }
        let places = self.shop.figures.bulk_at_once.unwrap_or_else(|| self.version.bulk_at_once());
        let under_way = self.shop.bulks.under_way(kind, self.now);
        if under_way.len() as u64 >= places {
            self.stats.overstepped += 1;
            self.shop.counts.overstepped += 1;
            return self.refused(field, bodies::in_progress(kind.name(), &under_way));
        }
        self.stats.writes += 1;
        *self.stats.objects.entry("bulk_operations".to_owned()).or_default() += 1;
        let number = self.data().number();
        let size = Size { takes: self.bulk_takes, objects: self.bulk_rows, roots: rows.roots() };
        let bulk = self.shop.bulks.start(number, kind, text, size, self.now).clone();
        self.accepted(field, &bulk)
    }

    fn accepted(&mut self, field: &Field, bulk: &Bulk) -> Value {
        let facts = bulk.facts(&self.url(bulk), self.now);
        self.made_up(field, "Payload", json!({ "bulkOperation": facts, "userErrors": [] }))
    }

    /// A mutation's answer with an error in it and nothing else.
    fn refused(&mut self, field: &Field, error: Value) -> Value {
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

    fn bulks(&mut self, field: &Field) -> Value {
        let query = field.arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let first = field.arguments.get("first").and_then(Value::as_u64).unwrap_or(0) as usize;
        let found: Vec<_> = self.shop.bulks.search(query, self.now).cloned().collect();
        let has_more = found.len() > first;
        let facts = found.iter().take(first).map(|bulk| bulk.facts(&self.url(bulk), self.now)).collect();
        self.data().connection(&field.selection, "BulkOperation", facts, has_more)
    }

    fn told(&mut self, field: &Field, bulk: Option<&Bulk>) -> Value {
        let Some(bulk) = bulk else { return Value::Null };
        let facts = bulk.facts(&self.url(bulk), self.now);
        self.data().object(&field.selection, "BulkOperation", &facts)
    }

    fn url(&self, bulk: &Bulk) -> String {
        format!("{}/_bulk/{}/{}.jsonl", self.base, self.name, bulk.number)
    }

    fn made_up(&mut self, field: &Field, of: &str, known: Value) -> Value {
        let known = if let Value::Object(known) = known { known } else { Map::new() };
        self.data().object(&field.selection, of, &known)
    }

    const fn data(&mut self) -> Data<'_> {
        Data::new(self.last, self.share)
    }
}
