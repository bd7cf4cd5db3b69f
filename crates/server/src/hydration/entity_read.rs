//! How an upstream is asked for an entity, and what its response says: paths, queries, statuses and
//! JSON pointers. Nothing is sent here.

use axum::http::{Method, StatusCode};
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use tidegate_hydration::{AbsenceReason, SourceAnswer, SourceError};

use crate::config::{ENTITY_ID, SourceConfig};
use crate::wire::time;

/// What is escaped in an id: all but the characters that mean nothing anywhere in a URL.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A read of one entity.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EntityRead {
    pub(super) method: Method,
    /// Path and query below the upstream.
    pub(super) path: String,
    pub(super) body: Bytes,
}

impl EntityRead {
    /// The read that answers for an id.
    ///
    /// # Errors
    /// When the id would be a path of its own.
    pub(super) fn new(config: &SourceConfig, id: &str) -> Result<Self, SourceError> {
        let escaped = utf8_percent_encode(id, ESCAPED).to_string();
        let path = config.path.replace(ENTITY_ID, &escaped);
        // A segment of dots stays one, however it is written.
        let segments = path.split('?').next().unwrap_or_default().split('/');
        if segments.into_iter().any(|segment| matches!(segment, "." | "..")) {
            return Err("the id cannot be part of a path".into());
        }
        Ok(match &config.query {
            None => Self { method: Method::GET, path, body: Bytes::new() },
            Some(query) => {
                let id = query.id.replace(ENTITY_ID, id);
                let body = json!({ "query": query.text, "variables": { "id": id } });
                Self { method: Method::POST, path, body: body.to_string().into() }
            }
        })
    }
}

/// What the upstream's own response says about an entity.
///
/// # Errors
/// When it says nothing: an error is not absence.
pub(super) fn read_answer(
    config: &SourceConfig,
    status: StatusCode,
    body: &[u8],
) -> Result<SourceAnswer, SourceError> {
    let absent = |reason| Ok(SourceAnswer::NotFound { reason, version: None });
    if config.not_found.contains(&status.as_u16()) {
        return absent(AbsenceReason::DeletedOrNeverExisted);
    }
    if config.inaccessible.contains(&status.as_u16()) {
        return absent(AbsenceReason::Inaccessible);
    }
    if !status.is_success() {
        return Err(format!("the upstream answered with status {status}").into());
    }
    let body: Value = serde_json::from_slice(body).map_err(|_| "the upstream did not answer with JSON")?;
    // GraphQL reports errors with status 200, next to what it could find.
    if config.query.is_some() && body.get("errors").is_some_and(|errors| !errors.is_null()) {
        return Err("the upstream answered with errors".into());
    }
    match body.pointer(&config.data) {
        Some(Value::Object(entity)) => {
            let (data, version) = (fields(config, entity)?, version(config, entity)?);
            Ok(SourceAnswer::Found { data, version })
        }
        Some(Value::Null) => absent(AbsenceReason::DeletedOrNeverExisted),
        Some(_) => Err(format!("there is no object at {:?}", config.data).into()),
        None => Err(format!("there is nothing at {:?}", config.data).into()),
    }
}

/// The fields of the entity: its own, or those that are configured. One that is missing is left
/// out.
fn fields(config: &SourceConfig, entity: &Map<String, Value>) -> Result<Map<String, Value>, SourceError> {
    if config.fields.is_empty() {
        return Ok(entity.clone());
    }
    let entity = Value::Object(entity.clone());
    let one = |(name, pointer): (&String, &String)| Some((name.clone(), entity.pointer(pointer)?.clone()));
    let fields: Map<_, _> = config.fields.iter().filter_map(one).collect();
    if fields.is_empty() {
        return Err("it has none of the configured fields".into());
    }
    Ok(fields)
}

/// The version of the entity: a number, or the time of its last change.
fn version(config: &SourceConfig, entity: &Map<String, Value>) -> Result<Option<u64>, SourceError> {
    let Some(pointer) = &config.version else { return Ok(None) };
    let entity = Value::Object(entity.clone());
    let version = match entity.pointer(pointer) {
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => {
            text.parse().ok().or_else(|| time::parse(text).map(tidegate_core::Time::as_micros))
        }
        _ => None,
    };
    match version {
        Some(version) => Ok(Some(version)),
        None => Err(format!("there is no number and no time at {pointer:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GraphqlQuery;

    fn source(path: &str) -> SourceConfig {
        SourceConfig::new("product", "shop", path)
    }

    /// HYD-14, HYD-27: an id is one part of a path, whatever is in it.
    #[test]
    fn hyd_14_hyd_27_an_id_cannot_leave_its_place() {
        let path = |id: &str| EntityRead::new(&source("/products/{id}"), id).map(|read| read.path);
        for (id, expected) in [
            ("42", "/products/42"),
            ("a/../../b", "/products/a%2F..%2F..%2Fb"),
            ("x?limit=250#y", "/products/x%3Flimit%3D250%23y"),
            ("é\r\n", "/products/%C3%A9%0D%0A"),
            ("%2e%2e", "/products/%252e%252e"),
        ] {
            assert_eq!(path(id).unwrap(), expected, "{id:?}");
        }
        for id in [".", ".."] {
            path(id).unwrap_err();
        }
        let read = EntityRead::new(&source("/products/{id}.json"), "..").unwrap();
        assert_eq!(read.path, "/products/...json", "not a segment of dots");
    }

    /// HYD-14, HYD-27: in a query the id is a variable, never part of the text.
    #[test]
    fn hyd_14_hyd_27_an_id_in_a_query_is_a_variable() {
        let text = "query($id: ID!) { product(id: $id) { title } }".to_owned();
        let query = Some(GraphqlQuery { text: text.clone(), id: "gid://shopify/Product/{id}".to_owned() });
        let source = SourceConfig { query, ..source("/graphql.json") };
        let read = EntityRead::new(&source, "1\") { x } #").unwrap();
        let body: Value = serde_json::from_slice(&read.body).unwrap();
        assert_eq!((read.method, &body["query"]), (Method::POST, &json!(text)));
        assert_eq!(body["variables"]["id"], "gid://shopify/Product/1\") { x } #");
    }

    /// HYD-14: what is found, what is not, and what says nothing.
    #[test]
    fn hyd_14_a_response_is_an_answer_or_an_error() {
        let plain = source("/products/{id}");
        let absent = |reason| SourceAnswer::NotFound { reason, version: None };
        let read = |status: u16, body: &str| {
            read_answer(&plain, StatusCode::from_u16(status).unwrap(), body.as_bytes())
        };
        assert_eq!(read(404, "<html>").unwrap(), absent(AbsenceReason::DeletedOrNeverExisted));
        assert_eq!(read(410, "").unwrap(), absent(AbsenceReason::DeletedOrNeverExisted));
        assert_eq!(read(403, "").unwrap(), absent(AbsenceReason::Inaccessible));
        assert_eq!(read(200, "null").unwrap(), absent(AbsenceReason::DeletedOrNeverExisted));
        for (status, body) in [(401, "{}"), (500, "{}"), (302, "{}"), (200, "[]"), (200, "<html>")] {
            read(status, body).unwrap_err();
        }
    }

    /// HYD-14, HYD-21: fields and the version are where the configuration says.
    #[test]
    fn hyd_14_hyd_21_fields_and_version_are_found_by_pointers() {
        let fields = [("name", "/title"), ("vendor", "/vendor/name"), ("absent", "/x")];
        let source = SourceConfig {
            data: "/data/product".to_owned(),
            version: Some("/updatedAt".to_owned()),
            fields: fields.map(|(name, pointer)| (name.to_owned(), pointer.to_owned())).into(),
            query: Some(GraphqlQuery { text: "{ product }".to_owned(), id: ENTITY_ID.to_owned() }),
            ..source("/graphql.json")
        };
        let read = |body: Value| read_answer(&source, StatusCode::OK, body.to_string().as_bytes());
        let product = json!({ "title": "Tide", "vendor": { "name": "Acme" }, "updatedAt": 7 });
        let found = read(json!({ "data": { "product": product } })).unwrap();
        let data = json!({ "name": "Tide", "vendor": "Acme" }).as_object().cloned().unwrap();
        assert_eq!(found, SourceAnswer::Found { data, version: Some(7) });
        let at = |time: &str| {
            let product = json!({ "title": "Tide", "updatedAt": time });
            match read(json!({ "data": { "product": product } })) {
                Ok(SourceAnswer::Found { version, .. }) => version,
                _ => None,
            }
        };
        assert!(at("2026-01-02T03:04:05Z") < at("2026-01-02T03:04:06+00:00"));
        assert_eq!(at("yesterday"), None, "refused");
        read(json!({ "data": { "product": product }, "errors": [{ "message": "throttled" }] })).unwrap_err();
        read(json!({ "data": {} })).unwrap_err();
        assert!(matches!(
            read(json!({ "data": { "product": null } })).unwrap(),
            SourceAnswer::NotFound { .. }
        ));
    }
}
