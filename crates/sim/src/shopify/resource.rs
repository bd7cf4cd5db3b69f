//! REST responses: the path names the resource. Writes are counted and echoed with an id, reads are
//! made up.

use hyper::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::page::RestPage;

/// The effect of a REST call and its response.
#[derive(Debug, PartialEq)]
pub struct SimRestResponse {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub body: Value,
    /// Whether it has an effect.
    pub is_write: bool,
    /// The key of a POST's effect: doing it twice creates two.
    pub key: Option<String>,
}

/// Responds to a call; `number` is the id of a new object. A list with a given page has as many
/// items as in any shop; any other has one.
#[must_use]
pub fn respond(
    method: &Method,
    resource: &str,
    sent: &Value,
    page: Option<RestPage>,
    number: u64,
) -> SimRestResponse {
    let parts: Vec<_> = resource.split('/').collect();
    let last = parts.last().copied().unwrap_or_default();
    let id = last.parse::<u64>().ok();
    // `products/1` is one of the products, `products` are all of them.
    let many = if id.is_some() && parts.len() > 1 { parts[parts.len() - 2] } else { last };
    let one = many.strip_suffix('s').unwrap_or(many);
    let reply = |status, body, is_write| SimRestResponse { status, body, is_write, key: None };
    match *method {
        Method::GET if last == "count" => reply(StatusCode::OK, json!({ "count": 1 }), false),
        Method::GET if id.is_some() || many == one => {
            reply(StatusCode::OK, wrap(one, object(id.unwrap_or(number), None)), false)
        }
        Method::GET => {
            let ids = page.map_or(number..number + 1, super::page::RestPage::ids);
            let things = ids.map(|id| object(id, None)).collect();
            reply(StatusCode::OK, wrap(many, Value::Array(things)), false)
        }
        Method::POST => {
            let inner = sent.get(one).and_then(Value::as_object);
            let text = |name: &str| inner.and_then(|inner| inner.get(name)).and_then(Value::as_str);
            let key =
                text("handle").or_else(|| text("title")).or_else(|| text("email")).or_else(|| text("name"));
            let body = wrap(one, object(number, inner));
            SimRestResponse { status: StatusCode::CREATED, body, is_write: true, key: key.map(str::to_owned) }
        }
        Method::PUT => {
            let inner = sent.get(one).and_then(Value::as_object);
            reply(StatusCode::OK, wrap(one, object(id.unwrap_or(number), inner)), true)
        }
        Method::DELETE => reply(StatusCode::OK, json!({}), true),
        _ => reply(StatusCode::NOT_ACCEPTABLE, json!({ "errors": "Not Acceptable" }), false),
    }
}

fn wrap(name: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value)]))
}

fn object(id: u64, inner: Option<&Map<String, Value>>) -> Value {
    let mut thing = inner.cloned().unwrap_or_default();
    thing.insert("id".to_owned(), json!(id));
    Value::Object(thing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_told_by_their_path() {
        let body =
            |method: Method, resource: &str, sent: Value| respond(&method, resource, &sent, None, 9).body;
        assert_eq!(body(Method::GET, "products", Value::Null), json!({"products": [{"id": 9}]}));
        assert_eq!(body(Method::GET, "products/4", Value::Null), json!({"product": {"id": 4}}));
        assert_eq!(body(Method::GET, "products/count", Value::Null), json!({"count": 1}));
        assert_eq!(body(Method::GET, "shop", Value::Null), json!({"shop": {"id": 9}}));
        let sent = json!({"product": {"title": "A"}});
        assert_eq!(body(Method::POST, "products", sent.clone()), json!({"product": {"id": 9, "title": "A"}}));
        assert_eq!(
            body(Method::PUT, "products/4", sent.clone()),
            json!({"product": {"id": 4, "title": "A"}})
        );
        assert_eq!(body(Method::DELETE, "products/4", Value::Null), json!({}));
        assert_eq!(respond(&Method::POST, "products", &sent, None, 9).key.as_deref(), Some("A"));
    }
}
