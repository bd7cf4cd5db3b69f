//! What the search finds among the newest operations, the groups and the limits: each a bounded
//! number of them, whatever there is.

use serde_json::Value;
use tidegate_core::id::parse_seq_end;

use crate::api::local::LocalApi;
use crate::error::Result;
use crate::page::parts::SHOWN_ID_LEN;
use crate::page::view::{escape, items, text};

/// The shortest end of an id that is searched for.
const ID_END_LEN_MIN: usize = 4;
/// The entries of a page of a list that is scanned, and the most pages.
const PAGE_LEN: usize = 200;
const PAGES_MAX: usize = 5;
/// What an operation is known by elsewhere.
const OTHER_IDS: [&str; 4] = ["request_id", "job_id", "deployment_id", "dedupe_key"];

/// How much of a name is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameMatch {
    Whole,
    Part,
}

/// The operations whose id ends like a page shows it. With several partitions it may be several.
pub(super) async fn by_shown_id(api: &LocalApi, wanted: &str) -> Result<Option<String>> {
    let end = id_end(wanted).unwrap_or_default();
    let Some(shown) = end.len().checked_sub(SHOWN_ID_LEN).map(|start| &end[start..]) else {
        return Ok(None);
    };
    let found = api.get(&format!("/v1/operations?id_end={shown}&limit={PAGE_LEN}")).await?;
    let ids = items(&found, "operations").iter().map(|operation| text(operation, "id"));
    let ids: Vec<&str> = ids.filter(|id| id.ends_with(&end)).collect();
    Ok(match *ids {
        [] => None,
        [id] => Some(format!("/operations/{id}")),
        _ => Some(format!("/operations?id_end={shown}")),
    })
}

/// The newest operation that is known by this text, or whose id ends with it.
pub(super) async fn operations(api: &LocalApi, wanted: &str) -> Result<Option<String>> {
    let (lower, end) = (wanted.to_lowercase(), id_end(wanted));
    let is_it = |operation: &Value| {
        end.as_ref().is_some_and(|end| text(operation, "id").ends_with(end))
            || OTHER_IDS.iter().any(|name| text(operation, name).to_lowercase() == lower)
    };
    let found = scan(api, ("/v1/operations", "operations"), is_it).await?;
    Ok(found.map(|operation| format!("/operations/{}", text(&operation, "id"))))
}

/// The groups whose names begin like this in another case: the first one says how they are written.
/// A group that has nothing to do is known by its operations.
pub(super) async fn groups(api: &LocalApi, wanted: &str) -> Result<Option<String>> {
    let lower = wanted.to_lowercase();
    let is_it = |entry: &Value| text(entry, "group").to_lowercase().starts_with(&lower);
    let found = match scan(api, ("/v1/groups", "groups"), is_it).await? {
        None => scan(api, ("/v1/operations", "operations"), is_it).await?,
        found => found,
    };
    Ok(found.map(|group| {
        let name = text(&group, "group");
        let beginning: String = name.chars().take(wanted.chars().count()).collect();
        match beginning == name {
            true => format!("/groups/{}", escape(name)),
            false => format!("/groups?prefix={}", escape(&beginning)),
        }
    }))
}

/// The limits with this name, or with this text in it.
pub(super) async fn limits(api: &LocalApi, wanted: &str, how: NameMatch) -> Result<Option<String>> {
    let page = api.get("/v1/limits").await?;
    let lower = wanted.to_lowercase();
    let is_it = |limit: &Value| {
        let name = text(limit, "name").to_lowercase();
        name == lower || (how == NameMatch::Part && name.contains(&lower))
    };
    let is_found = items(&page, "limits").iter().any(is_it);
    Ok(is_found.then(|| format!("/limits?name={}", escape(wanted))))
}

/// The first entry of a list that fits, among a bounded number of them.
async fn scan(
    api: &LocalApi,
    (path, name): (&str, &str),
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<Value>> {
    let mut cursor = String::new();
    for _ in 0..PAGES_MAX {
        let page = api.get(&format!("{path}?limit={PAGE_LEN}{cursor}")).await?;
        if let Some(found) = items(&page, name).iter().find(|entry| fits(entry)) {
            return Ok(Some(found.clone()));
        }
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={}", escape(next));
    }
    Ok(None)
}

/// The part of a text that may be the end of an id. Pages show the ends of ids, behind "op_…".
fn id_end(wanted: &str) -> Option<String> {
    let lower = wanted.to_lowercase();
    let end = lower.strip_prefix("op_").unwrap_or(&lower).trim_start_matches(['…', '.']);
    (end.len() >= ID_END_LEN_MIN && parse_seq_end(end).is_some()).then(|| end.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_id_is_known_by_its_digits() {
        let table = [
            ("op_…00000wng", Some("00000wng")),
            ("OP_…00000WNG", Some("00000wng")),
            ("op_...0wng", Some("0wng")),
            ("…0wng", Some("0wng")),
            ("wng", None),
            ("refused", None),
        ];
        for (wanted, end) in table {
            assert_eq!(id_end(wanted).as_deref(), end, "{wanted}");
        }
    }
}
