//! Calls on bulk operations: start while a slot is free, look up, cancel.

use serde_json::{Value, json};

use super::DocumentRun;
use crate::shopify::bodies;
use crate::shopify::bulk::{BulkKind, BulkRun, BulkSize};
use crate::shopify::document::Field;
use crate::shopify::rows::BulkRows;

impl DocumentRun<'_> {
    pub(super) fn start(&mut self, field: &Field, kind: BulkKind, argument: &str) -> Value {
        let text = field.arguments.get(argument).and_then(Value::as_str).unwrap_or_default();
        let rows = match BulkRows::new(kind, text, self.bulk_rows) {
            Ok(rows) => rows,
            Err(message) => return self.refused(field, &bodies::user_error("INVALID", &message)),
        };
        let uploaded = field.arguments.get("stagedUploadPath").and_then(Value::as_str).unwrap_or_default();
        if kind == BulkKind::Mutation && uploaded.is_empty() {
            let message = "The JSONL file could not be found. Try uploading the file again.";
            return self.refused(field, &bodies::user_error("NO_SUCH_FILE", message));
        }
        let places = self.shop.limits.bulk_at_once.unwrap_or_else(|| self.version.bulk_at_once());
        let under_way = self.shop.bulks.running_ids(kind, self.now);
        if under_way.len() as u64 >= places {
            self.stats.overstepped += 1;
            self.shop.counts.overstepped += 1;
            return self.refused(field, &bodies::in_progress(kind.name(), &under_way));
        }
        self.stats.writes += 1;
        *self.stats.objects.entry("bulk_operations".to_owned()).or_default() += 1;
        let number = self.data().number();
        let size = BulkSize { takes: self.bulk_takes, objects: self.bulk_rows, roots: rows.roots() };
        let bulk = self.shop.bulks.start(number, kind, text, size, self.now).clone();
        self.accepted(field, &bulk)
    }

    fn accepted(&mut self, field: &Field, bulk: &BulkRun) -> Value {
        let facts = bulk.fields(&self.url(bulk), self.now);
        self.made_up(field, "Payload", json!({ "bulkOperation": facts, "userErrors": [] }))
    }

    pub(super) fn cancel(&mut self, field: &Field) -> Value {
        let id = field.arguments.get("id").and_then(Value::as_str).unwrap_or_default();
        match self.shop.bulks.cancel(id, self.now).cloned() {
            Some(bulk) => self.accepted(field, &bulk),
            None => self.refused(field, &bodies::user_error("NOT_FOUND", "Bulk operation does not exist")),
        }
    }

    pub(super) fn bulk(&mut self, field: &Field, id: &str) -> Value {
        let bulk = self.shop.bulks.get(id).cloned();
        self.bulk_json(field, bulk.as_ref())
    }

    pub(super) fn newest_bulk(&mut self, field: &Field) -> Value {
        let is_mutation = field.arguments.get("type").is_some_and(|kind| kind == "MUTATION");
        let newest =
            self.shop.bulks.newest(if is_mutation { BulkKind::Mutation } else { BulkKind::Query }).cloned();
        self.bulk_json(field, newest.as_ref())
    }

    pub(super) fn bulks(&mut self, field: &Field) -> Value {
        let query = field.arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let first = field.arguments.get("first").and_then(Value::as_u64).unwrap_or(0) as usize;
        let found: Vec<_> = self.shop.bulks.search(query, self.now).cloned().collect();
        let has_more = found.len() > first;
        let facts: Vec<_> =
            found.iter().take(first).map(|bulk| bulk.fields(&self.url(bulk), self.now)).collect();
        self.data().connection(&field.selection, "BulkOperation", &facts, has_more)
    }

    fn bulk_json(&mut self, field: &Field, bulk: Option<&BulkRun>) -> Value {
        let Some(bulk) = bulk else { return Value::Null };
        let facts = bulk.fields(&self.url(bulk), self.now);
        self.data().object(&field.selection, "BulkOperation", &facts)
    }

    fn url(&self, bulk: &BulkRun) -> String {
        format!("{}/_bulk/{}/{}.jsonl", self.base, self.name, bulk.number)
    }
}
