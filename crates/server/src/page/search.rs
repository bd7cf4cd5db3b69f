//! The search of the header: an id or the end of one, a `field:value`, a name or its beginning, a
//! key, what an operation was submitted with, or the text of an error. Upper and lower case are the
//! same. It leads to a page and shows nothing itself.

mod scan;

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tidegate_core::OperationId;

use super::operations::{FILTERS, LINKED, STATES};
use super::view::{escape, filled_in, items, text};
use super::{error_page, request_query};
use crate::api::local::LocalApi;
use crate::edge::query::Query;
use crate::error::{Error, ErrorCode, Result};

/// The fields of `field:value`, besides those that are filters of operations under the same name.
const MORE_FIELDS: [(&str, &str); 5] =
    [("state", "state"), ("error", "error"), ("key", "dedupe_key"), ("limit", "limit"), ("age", "age")];
/// The states of groups that wait for an operator.
const STOPPED: [&str; 3] = ["paused", "held", "stopped"];
/// What names a group follows this.
const GROUP: &str = "group:";

pub(crate) async fn find(State(api): State<LocalApi>, uri: Uri) -> Response {
    let mut query = Query::parse(&filled_in(request_query(&uri)));
    let wanted = query.take("q").unwrap_or_default();
    let found = async {
        query.finish()?;
        let wanted = wanted.trim();
        if let Some(field) = field_without_value(wanted) {
            let message = format!("Say what {field} is searched for, as in {field}:{}.", example_of(field));
            return Err(Error::new(ErrorCode::Invalid, message));
        }
        let group =
            wanted.split_at_checked(GROUP.len()).filter(|(field, _)| field.eq_ignore_ascii_case(GROUP));
        if let Some((_, group)) = group.filter(|(_, group)| !group.trim().is_empty()) {
            return by_group(&api, group.trim()).await;
        }
        Ok::<_, Error>(match by_form(wanted) {
            Some(target) => target,
            None => by_name(&api, wanted).await?,
        })
    };
    match found.await {
        Ok(target) => (StatusCode::SEE_OTHER, [(LOCATION, target)]).into_response(),
        Err(error) => error_page(&error),
    }
}

/// The fields of `field:value`, and the parameters that they are.
fn fields() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILTERS.iter().chain(&LINKED).map(|name| (*name, *name)).chain(MORE_FIELDS)
}

/// The field that is named with nothing to search for.
fn field_without_value(wanted: &str) -> Option<&'static str> {
    let name = wanted.strip_suffix(':')?.trim();
    fields().map(|(field, _)| field).find(|field| name.eq_ignore_ascii_case(field))
}

/// What may stand for a value of a field.
fn example_of(field: &str) -> &'static str {
    match field {
        "state" => "failed",
        "age" => "1h",
        "created_before" | "finished_after" | "finished_before" => "2026-01-31T12:00:00Z",
        _ => "name",
    }
}

/// Where a text leads that says what it is.
fn by_form(wanted: &str) -> Option<String> {
    if wanted.is_empty() {
        return Some("/operations".to_owned());
    }
    if let Ok(id) = wanted.to_lowercase().parse::<OperationId>() {
        return Some(format!("/operations/{id}"));
    }
    let lower = wanted.to_lowercase();
    if STATES.contains(&&*lower) {
        return Some(format!("/operations?state={lower}"));
    }
    if STOPPED.contains(&&*lower) {
        return Some("/groups?state=stopped".to_owned());
    }
    let (name, value) = wanted.split_once(':').map(|(name, value)| (name, value.trim()))?;
    if value.is_empty() {
        return None;
    }
    let (_, parameter) = fields().find(|(known, _)| name.eq_ignore_ascii_case(known))?;
    Some(match parameter {
        "limit" => format!("/limits?name={}", escape(value)),
        "state" => format!("/operations?state={}", escape(&value.to_lowercase())),
        parameter => format!("/operations?{parameter}={}", escape(value)),
    })
}

/// The page of a group; those whose names begin so in another case, if there is none of this name.
async fn by_group(api: &LocalApi, wanted: &str) -> Result<String> {
    let name = escape(wanted);
    let of_group = api.get(&format!("/v1/operations?group={name}&limit=1")).await?;
    let is_known = !items(&of_group, "operations").is_empty();
    let found = if is_known { None } else { scan::groups(api, wanted).await? };
    Ok(found.unwrap_or_else(|| format!("/groups/{name}")))
}

/// Where a name leads: to what has exactly this name, to what has it in another case or in part, or
/// to the errors with this text.
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
    if let Some(target) = scan::by_shown_id(api, wanted).await? {
        return Ok(target);
    }
    if api.get(&format!("/v1/deployments/{name}")).await.is_ok() {
        return Ok(format!("/deployments/{name}"));
    }
    if let Some(target) = scan::limits(api, wanted, scan::NameMatch::Whole).await? {
        return Ok(target);
    }
    let next_group = api.get(&format!("/v1/groups?after={name}&limit=1")).await?;
    if items(&next_group, "groups").first().is_some_and(|group| text(group, "group").starts_with(wanted)) {
        return Ok(format!("/groups?prefix={name}"));
    }
    if let Some(target) = scan::groups(api, wanted).await? {
        return Ok(target);
    }
    if let Some(target) = scan::operations(api, wanted).await? {
        return Ok(target);
    }
    let of_limits = scan::limits(api, wanted, scan::NameMatch::Part).await?;
    Ok(of_limits.unwrap_or_else(|| format!("/operations?error={name}")))
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
            (&*id.to_uppercase(), Some(format!("/operations/{id}"))),
            ("state:failed", Some("/operations?state=failed".to_owned())),
            ("State:FAILED", Some("/operations?state=failed".to_owned())),
            ("key:ord 7", Some("/operations?dedupe_key=ord%207".to_owned())),
            ("limit:provider:fal/slots", Some("/limits?name=provider%3Afal%2Fslots".to_owned())),
            ("fault_class:validation", Some("/operations?fault_class=validation".to_owned())),
            (
                "finished_after:2031-05-06T07:08:09Z",
                Some("/operations?finished_after=2031-05-06T07%3A08%3A09Z".to_owned()),
            ),
            ("Failed", Some("/operations?state=failed".to_owned())),
            ("held", Some("/groups?state=stopped".to_owned())),
            ("age:1h", Some("/operations?age=1h".to_owned())),
            ("shop:acme", None),
            ("op_…00000wng", None),
            ("state:", None),
        ];
        for (wanted, target) in table {
            assert_eq!(by_form(wanted), target, "{wanted}");
        }
    }

    /// OPS-23: who names a field without a value is told, and not that nothing matches.
    #[test]
    fn ops_23_a_field_needs_a_value() {
        assert_eq!(field_without_value("Group:"), Some("group"));
        assert_eq!(field_without_value("state:"), Some("state"));
        for wanted in ["group", "group:a", "shop:", ":", ""] {
            assert_eq!(field_without_value(wanted), None, "{wanted}");
        }
    }
}
