//! What exactly was commanded, in one line of the audit log: the fields of the command that say so,
//! and the operations that a command about several changed.

use serde_json::Value;
use tidegate_core::OperationId;
use tidegate_core::bounds::NOTE_LEN_MAX;
use tidegate_core::text::is_control;

/// The most characters of the fields.
const FIELDS_CHARS_MAX: usize = 1_000;
/// The most operations that an entry names: as many as the response does.
const IDS_MAX: usize = 100;

/// The fields of a command that say what it does. Others may hold what a page must not show.
const TOLD_FIELDS: [&str; 21] = [
    "as",
    "group",
    "state",
    "upstream",
    "kind",
    "created_after",
    "created_before",
    "through",
    "error",
    "fault_class",
    "fault_message",
    "may_have_happened",
    "finished_after",
    "finished_before",
    "capacity",
    "refill_per_s",
    "period_ms",
    "at_once",
    "open",
    "reset",
    "status",
];

/// Separates what was commanded from the operations that it changed.
const CHANGED: &str = " changed: ";

/// The fields of a command that say what it does; `None` if it has none.
pub(super) fn of_fields(fields: &Value) -> Option<String> {
    let told = |name: &&str| match &fields[*name] {
        Value::Null => None,
        Value::String(text) => Some(format!("{name} {}", shorten(text))),
        value => Some(format!("{name} {value}")),
    };
    let told: Vec<String> = TOLD_FIELDS.iter().filter_map(told).collect();
    (!told.is_empty()).then(|| told.join(", ").chars().take(FIELDS_CHARS_MAX).collect())
}

/// Adds how many operations a command changed, and which: without their ids, no one who looks at
/// one of them finds out who decided about it.
pub(super) fn with_changed(detail: Option<&str>, count: u64, ids: &[String]) -> String {
    let told = detail.map_or_else(String::new, |detail| format!("{detail}: "));
    let named = &ids[..ids.len().min(IDS_MAX)];
    let names = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
    let more = match count.saturating_sub(named.len() as u64) {
        more if more > 0 && !named.is_empty() => format!(" and {more} more"),
        _ => String::new(),
    };
    format!("{told}{count} changed{names}{more}")
}

/// What was commanded, and the operations that it changed, as far as the entry names them.
pub(crate) fn changed_ids(detail: &str) -> (&str, Vec<&str>) {
    let Some((_, names)) = detail.rsplit_once(CHANGED) else { return (detail, Vec::new()) };
    let words = names.split([',', ' ']).filter(|word| word.parse::<OperationId>().is_ok());
    let ids: Vec<&str> = words.collect();
    let told = detail.len() - names.len() - ": ".len();
    if ids.is_empty() { (detail, ids) } else { (&detail[..told], ids) }
}

/// A text of a caller on one line that is not too long.
pub(super) fn shorten(text: &str) -> String {
    text.chars().filter(|c| !is_control(*c)).take(NOTE_LEN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::bounds::AUDIT_TEXT_LEN_MAX;
    use tidegate_core::{Seq, Time};

    use super::*;

    #[test]
    fn a_command_is_told_by_its_fields() {
        let told = |fields| of_fields(&fields);
        assert_eq!(told(json!({ "as": "failed", "body": "secret" })).as_deref(), Some("as failed"));
        assert_eq!(told(json!({ "at_once": 3, "open": true })).as_deref(), Some("at_once 3, open true"));
        assert_eq!(told(Value::Null), None);
    }

    /// OPS-9: an entry names what a command about several changed, up to a bound.
    #[test]
    fn ops_9_what_was_changed_is_named() {
        let id = |nth| OperationId::new(Time::from_millis(7), 0, Seq(nth)).to_string();
        let ids: Vec<String> = (0..IDS_MAX as u64 + 7).map(id).collect();
        let two = with_changed(Some("group g"), 2, &ids[..2]);
        assert_eq!(two, format!("group g: 2 changed: {}, {}", ids[0], ids[1]));
        assert_eq!(changed_ids(&two), ("group g: 2 changed", vec![&*ids[0], &*ids[1]]));
        assert_eq!(with_changed(None, 0, &[]), "0 changed");
        let longest = "é".repeat(FIELDS_CHARS_MAX);
        let many = with_changed(Some(&longest), 1_000, &ids);
        assert!(many.ends_with(" and 900 more") && many.len() <= AUDIT_TEXT_LEN_MAX, "{}", many.len());
        assert_eq!(changed_ids(&many).1.len(), IDS_MAX);
        for other in ["group g", "error it changed: op_1, nothing", "as failed, group g: 3 changed"] {
            assert_eq!(changed_ids(other), (other, Vec::new()));
        }
    }
}
