//! Mutations whose effects are remembered, so that duplicates are counted.

use serde_json::{Map, Value, json};

use super::DocumentRun;
use crate::shopify::data::DataGenerator;
use crate::shopify::document::Field;

impl DocumentRun<'_> {
    pub(super) fn create_product(&mut self, field: &Field) -> Value {
        let input = field.arguments.get("product").or_else(|| field.arguments.get("input"));
        let text = |name: &str| input.and_then(|input| input.get(name)).and_then(Value::as_str);
        let title = text("title").unwrap_or_default();
        if title.is_empty() {
            let missing = json!({ "field": ["title"], "message": "Title can't be blank" });
            return self.refused(field, &missing);
        }
        self.stats.writes += 1;
        self.count_duplicate(field, text("handle").or(Some(title)));
        *self.stats.objects.entry("products".to_owned()).or_default() += 1;
        let id = format!("gid://shopify/Product/{}", self.data().number());
        let mut product = input.and_then(Value::as_object).cloned().unwrap_or_default();
        product.insert("id".to_owned(), json!(id));
        self.made_up(field, "Payload", json!({ "product": product }))
    }

    pub(super) fn adjust_inventory(&mut self, field: &Field) -> Value {
        self.stats.writes += 1;
        let input = field.arguments.get("input");
        let reference = input.and_then(|input| input.get("referenceDocumentUri")).and_then(Value::as_str);
        self.count_duplicate(field, reference.or(field.idempotent.as_deref()));
        let changes = input.and_then(|input| input.get("changes")).and_then(Value::as_array);
        let mut results = Vec::new();
        for change in changes.into_iter().flatten() {
            let text = |name: &str| change.get(name).and_then(Value::as_str).unwrap_or_default();
            let delta = change.get("delta").and_then(Value::as_i64).unwrap_or(0);
            let level = self.shop.adjust(text("inventoryItemId"), text("locationId"), delta);
            results.push(json!({ "name": "available", "delta": delta, "quantityAfterChange": level }));
        }
        let group = field.selection.field("inventoryAdjustmentGroup");
        let changes = group.and_then(|group| group.selection.field("changes"));
        let mut data = DataGenerator::new(self.last, self.share);
        let results: Vec<_> = results
            .iter()
            .zip(changes.into_iter().cycle())
            .map(|(result, changes)| {
                data.object(&changes.selection, "InventoryChange", result.as_object().unwrap_or(&Map::new()))
            })
            .collect();
        self.made_up(field, "Payload", json!({ "inventoryAdjustmentGroup": {"changes": results} }))
    }

    /// Counts an effect that had happened before, by its key.
    pub(super) fn count_duplicate(&mut self, field: &Field, key: Option<&str>) {
        let Some(key) = key else { return };
        let again = self.history.record(&format!("{}/{}", self.name, field.name), key);
        self.stats.duplicates += u64::from(again);
    }
}
