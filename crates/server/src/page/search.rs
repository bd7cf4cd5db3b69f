//! The search of the header: an id or the end of one, a `field:value`, the name of a group or its
//! beginning, a key, or the text of an error. It leads to a page and shows nothing itself.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tidegate_core::OperationId;

use super::operations::FILTERS;
use super::view::{escape, filled_in, items, text};
use super::{error_page, request_query};
use crate::api::local::LocalApi;
use crate::edge::query::Query;
use crate::error::{Error, Result};

/// The fields of `field:value`, besides those that are filters of operations.
const MORE_FIELDS: [(&str, &str); 3] = [("state", "state"), ("error", "error"), ("key", "dedupe_key")];

/// The shortest end of an id that is searched for.
const ID_END_LEN_MIN: usize = 4;
/// The operations of a page that are searched for the end of an id, and the most pages.
const ID_PAGE: usize = 200;
const ID_PAGES_MAX: usize = 5;

pub(crate) async fn find(State(api): State<LocalApi>, uri: Uri) -> Response {
    let mut query = Query::parse(&filled_in(request_query(&uri)));
    let wanted = query.take("q").unwrap_or_default();
    let found = async {
        query.finish()?;
        Ok::<_, Error>(match by_form(wanted.trim()) {
            Some(target) => target,
            None => by_name(&api, wanted.trim()).await?,
        })
    };
    match found.await {
        Ok(target) => (StatusCode::SEE_OTHER, [(LOCATION, target)]).into_response(),
        Err(error) => error_page(&error),
    }
}

/// Where a text leads that says what it is.
fn by_form(wanted: &str) -> Option<String> {
    if wanted.is_empty() {
        return Some("/operations".to_owned());
    }
    if let Ok(id) = wanted.parse::<OperationId>() {
        return Some(format!("/operations/{id}"));
    }
    let (name, value) = wanted.split_once(':').filter(|(_, value)| !value.is_empty())?;
    let mut fields = FILTERS.iter().map(|name| (*name, *name)).chain(MORE_FIELDS);
    let (_, parameter) = fields.find(|(known, _)| *known == name)?;
    Some(match parameter {
        "group" => format!("/groups/{}", escape(value)),
        parameter => format!("/operations?{parameter}={}", escape(value)),
    })
}

/// Where a name leads: to the group or to the operation that has it, or to the errors with this
/// text.
async fn by_name(api: &LocalApi, wanted: &str) -> Result<String> {
    let name = escape(wanted);
    let of_group = api.get(&format!("/v1/operations?group={name}&limit=1")).await?;
    if !items(&of_group, "operations").is_empty() || api.get(&format!("/v1/groups/{name}")).await.is_ok() {
        return Ok(format!("/groups/{name}"));
    }
    let of_key = api.get(&format!("/v1/operations?dedupe_key={name}&limit=1")).await?;
    if let Some(operation) = items(&of_key, "operations").first() {
        return Ok(format!("/operations/{}", text(operation, "id")));
    }
    let next_group = api.get(&format!("/v1/groups?after={name}&limit=1")).await?;
    if items(&next_group, "groups").first().is_some_and(|group| text(group, "group").starts_with(wanted)) {
        return Ok(format!("/groups?prefix={name}"));
    }
    Ok(match by_end(api, wanted).await? {
        Some(id) => format!("/operations/{id}"),
        None => format!("/operations?error={name}"),
    })
}

/// The newest operation whose id ends like this. Pages show the ends of ids, behind "op_…".
async fn by_end(api: &LocalApi, wanted: &str) -> Result<Option<String>> {
    let Some(end) = id_end(wanted) else { return Ok(None) };
    let mut cursor = String::new();
    for _ in 0..ID_PAGES_MAX {
        let page = api.get(&format!("/v1/operations?limit={ID_PAGE}{cursor}")).await?;
        let mut ids = items(&page, "operations").iter().map(|operation| text(operation, "id"));
        if let Some(id) = ids.find(|id| id.ends_with(end)) {
            return Ok(Some(id.to_owned()));
        }
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={}", escape(next));
    }
    Ok(None)
}

/// The part of a text that may be the end of an id.
fn id_end(wanted: &str) -> Option<&str> {
    let end = wanted.strip_prefix("op_").unwrap_or(wanted).trim_start_matches('…');
    let is_digit =
        |byte: u8| byte.is_ascii_digit() || (byte.is_ascii_lowercase() && !b"ilou".contains(&byte));
    (end.len() >= ID_END_LEN_MIN && end.bytes().all(is_digit)).then_some(end)
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Seq, Time};

    use super::*;

    #[test]
    fn a_text_that_says_what_it_is_leads_there() {
        let id = OperationId::new(Time::from_millis(7), 0, Seq(9)).to_string();
        let table = [
            ("", Some("/operations".to_owned())),
            (&*id, Some(format!("/operations/{id}"))),
            ("state:failed", Some("/operations?state=failed".to_owned())),
            ("key:ord 7", Some("/operations?dedupe_key=ord%207".to_owned())),
            ("group:shop:acme", Some("/groups/shop%3Aacme".to_owned())),
            ("shop:acme", None),
            ("op_…00000wng", None),
            ("state:", None),
        ];
        for (wanted, target) in table {
            assert_eq!(by_form(wanted), target, "{wanted}");
        }
    }

    #[test]
    fn the_end_of_an_id_is_known_by_its_digits() {
        let table =
            [("op_…00000wng", Some("00000wng")), ("…0wng", Some("0wng")), ("wng", None), ("refused", None)];
        for (wanted, end) in table {
            assert_eq!(id_end(wanted), end, "{wanted}");
        }
    }
}
