//! The difference between two orders, for people: only the part that differs is shown.

use std::borrow::Cow;

use super::field::FieldChange;
use crate::{Id, ObjectKey};

/// Names shown of one order.
const SHOWN_MAX: usize = 20;

/// Returns how the order of a list changes: from that of its live objects to the wanted one. None
/// if it stays, or if all of its objects are new, because those are created in the wanted order.
pub(super) fn order_change<'a>(
    field: Cow<'static, str>,
    wanted: impl Iterator<Item = (&'a ObjectKey, Option<Id>)>,
    live: &[Id],
) -> Option<FieldChange> {
    let wanted: Vec<_> = wanted.collect();
    let key_of = |id: &Id| wanted.iter().find(|(_, own)| *own == Some(*id)).map(|(key, _)| key.to_string());
    let from: Vec<String> = live.iter().filter_map(key_of).collect();
    let to: Vec<String> = wanted
        .iter()
        .map(|(key, id)| if id.is_some() { key.to_string() } else { format!("{key} (new)") })
        .collect();
    if from.is_empty() || to.len() < 2 || from == to {
        return None;
    }
    let start = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
    let most = from.len().min(to.len()) - start;
    let backwards = from.iter().rev().zip(to.iter().rev());
    let end = backwards.take(most).take_while(|(from, to)| from == to).count();
    let shown = |list: &[String]| show_part(list, start, list.len() - end);
    Some(FieldChange { field, from: Some(shown(&from)), to: shown(&to) })
}

/// Shows a part of a list, with marks where something is left out.
fn show_part(list: &[String], start: usize, end: usize) -> String {
    let part = list.get(start..end).unwrap_or_default();
    let mut names: Vec<&str> = part.iter().take(SHOWN_MAX).map(String::as_str).collect();
    if start > 0 {
        names.insert(0, "…");
    }
    if end < list.len() || part.len() > SHOWN_MAX {
        names.push("…");
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-19: an order is shown with what moves, and without what stays.
    #[test]
    fn ops_19_a_changed_order_shows_what_moves() {
        let keys: Vec<_> = ["a", "b", "c", "d"].map(|key| ObjectKey::new(key).unwrap()).into();
        let change = |ids: [Option<u64>; 4], live: &[u64]| {
            let wanted = keys.iter().zip(ids.map(|id| id.map(Id)));
            let live: Vec<_> = live.iter().copied().map(Id).collect();
            let change = order_change("roles".into(), wanted, &live)?;
            Some(format!("{} → {}", change.from.unwrap(), change.to))
        };
        let all = [Some(1), Some(2), Some(3), Some(4)];
        assert_eq!(change(all, &[1, 9, 2, 3, 4]), None, "others in between are no concern");
        assert_eq!(change(all, &[1, 3, 2, 4]).unwrap(), "…, c, b, … → …, b, c, …");
        assert_eq!(change(all, &[4, 1, 2, 3]).unwrap(), "d, a, b, c → a, b, c, d");
        assert_eq!(change([Some(1), None, Some(3), None], &[1, 3]).unwrap(), "…, c → …, b (new), c, d (new)");
        assert_eq!(change([None; 4], &[7, 8]), None, "new ones are created in order");
    }
}
