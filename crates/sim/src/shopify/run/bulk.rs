//! Bulk operations as calls see them: started while there is a place, looked up, cancelled.

use serde_json::{Value, json};

use super::Run;
use crate::shopify::bodies;
use crate::shopify::bulk::{Bulk, Kind, Size};
use crate::shopify::document::Field;
use crate::shopify::rows::Rows;

impl Run<'_> {
    pub(super) fn start(&mut self, field: &Field, kind: Kind, argument: &str) -> Value {
        let text = field.arguments.get(argument).and_then(Value::as_str).unwrap_or_default();
        let rows = match Rows::new(kind, text, self.bulk_rows) {
            Ok(rows) => rows,
            Err(message) => return self.refused(field, &bodies::user_error("INVALID", &message)),
        };
        let uploaded = field.arguments.get("stagedUploadPath").and_then(Value::as_str).unwrap_or_default();
        if kind == Kind::Mutation && uploaded.is_empty() {
            let message = "The JSONL file could not be found. Try uploading the file again.";
            return self.refused(field, &bodies::user_error("NO_SUCH_FILE", message));
        }
        let places = self.shop.figures.bulk_at_once.unwrap_or_else(|| self.version.bulk_at_once());
        let under_way = self.shop.bulks.under_way(kind, self.now);
        if under_way.len() as u64 >= places {
            self.stats.overstepped += 1;
            self.shop.counts.overstepped += 1;
            return self.refused(field, &bodies::in_progress(kind.name(), &under_way));
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

    pub(super) fn cancel(&mut self, field: &Field) -> Value {
        let id = field.arguments.get("id").and_then(Value::as_str).unwrap_or_default();
        match self.shop.bulks.cancel(id, self.now).cloned() {
            Some(bulk) => self.accepted(field, &bulk),
            None => self.refused(field, &bodies::user_error("NOT_FOUND", "Bulk operation does not exist")),
        }
    }

    pub(super) fn bulk(&mut self, field: &Field, id: &str) -> Value {
        let bulk = self.shop.bulks.get(id).cloned();
        self.told(field, bulk.as_ref())
    }

    pub(super) fn newest_bulk(&mut self, field: &Field) -> Value {
        let is_mutation = field.arguments.get("type").is_some_and(|kind| kind == "MUTATION");
        let newest = self.shop.bulks.newest(if is_mutation { Kind::Mutation } else { Kind::Query }).cloned();
        self.told(field, newest.as_ref())
    }

    pub(super) fn bulks(&mut self, field: &Field) -> Value {
        let query = field.arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let first = field.arguments.get("first").and_then(Value::as_u64).unwrap_or(0) as usize;
        let found: Vec<_> = self.shop.bulks.search(query, self.now).cloned().collect();
        let has_more = found.len() > first;
        let facts: Vec<_> =
            found.iter().take(first).map(|bulk| bulk.facts(&self.url(bulk), self.now)).collect();
        self.data().connection(&field.selection, "BulkOperation", &facts, has_more)
    }

    fn told(&mut self, field: &Field, bulk: Option<&Bulk>) -> Value {
        let Some(bulk) = bulk else { return Value::Null };
        let facts = bulk.facts(&self.url(bulk), self.now);
        self.data().object(&field.selection, "BulkOperation", &facts)
    }

    fn url(&self, bulk: &Bulk) -> String {
        format!("{}/_bulk/{}/{}.jsonl", self.base, self.name, bulk.number)
    }
}
