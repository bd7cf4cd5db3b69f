//! A call before it is made: the request, its estimated cost, and whether it may be sent twice. A
//! mutation that accepts an idempotency key and has none gets one, so that it may.

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tidegate_core::OnUnknown;
use tidegate_core::fingerprint::hex;
use tidegate_core::operation::MICRO;
use tidegate_upstream::{Body, HttpRequest, Method};

use super::attempt::ApiKind;
use super::error::{Error, Result, ShopifyErrorKind};
use crate::cost::{CallShape, CostCache, SINGLE_MAX, UNREADABLE_COST, Variables, estimate};
use crate::document::Document;
use crate::idempotent;
use crate::version::ApiVersion;

/// A call that is ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct PreparedCall {
    pub(crate) request: HttpRequest,
    pub(crate) api: ApiKind,
    /// Its estimated cost, in micro-points; meaningless for REST.
    pub(crate) cost: u64,
    /// The key of its cost in the cache.
    pub(crate) shape: Option<u128>,
    /// What follows an unknown outcome: it is sent again where twice is the same as once.
    pub(crate) on_unknown: OnUnknown,
}

/// What a document contains.
struct DocumentInfo {
    shape: u128,
    cost: u64,
    may_repeat: bool,
    /// The text with keys in it, when it needed any.
    keyed: Option<String>,
}

impl PreparedCall {
    /// Prepares a query or mutation. Its cost is the last one known for its shape, or an estimate.
    pub(crate) fn graphql(
        version: ApiVersion,
        text: &str,
        variables: &Value,
        memory: &CostCache,
    ) -> Result<Self> {
        let variables = to_raw_json(variables)?;
        let read = read_document(version, text, &variables, memory);
        let keyed = read.as_ref().and_then(|read| read.keyed.as_deref()).unwrap_or(text);
        let mut request = HttpRequest::new(Method::Post, format!("/admin/api/{version}/graphql.json"));
        let body = match variables.get() {
            "null" => to_raw_json(&json!({ "query": keyed }))?,
            _ => to_raw_json(&json!({ "query": keyed, "variables": variables }))?,
        };
        request.body = Body::Json(body);
        Ok(Self {
            request,
            api: ApiKind::Graphql,
            cost: read
                .as_ref()
                .map_or(UNREADABLE_COST * MICRO, |read| read.cost)
                .clamp(MICRO, SINGLE_MAX * MICRO),
            shape: read.as_ref().map(|read| read.shape),
            on_unknown: on_unknown(read.is_some_and(|read| read.may_repeat)),
        })
    }

    /// Prepares a REST call. The path is relative to the version's, unless it starts with
    /// `/admin/`.
    pub(crate) fn rest(
        version: ApiVersion,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Self> {
        if path.split('?').next().unwrap_or_default().split('/').any(|part| part == "..") {
            return Err(ShopifyErrorKind::Invalid("The path must not have .. segments.".into()).into());
        }
        let path = if path.starts_with("/admin/") {
            path.to_owned()
        } else {
            format!("/admin/api/{version}/{}", path.trim_start_matches('/'))
        };
        let mut request = HttpRequest::new(method, path);
        if let Some(body) = body {
            request.body = Body::Json(to_raw_json(body)?);
        }
        request.validate()?;
        let on_unknown = on_unknown(method.is_idempotent());
        Ok(Self { request, api: ApiKind::Rest, cost: 0, shape: None, on_unknown })
    }
}

/// Returns what follows an unknown outcome.
const fn on_unknown(may_repeat: bool) -> OnUnknown {
    if may_repeat { OnUnknown::Repeat } else { OnUnknown::Ask }
}

/// Reads a document; returns nothing for an invalid one, which is then sent once, as it is.
fn read_document(
    version: ApiVersion,
    text: &str,
    variables: &RawValue,
    memory: &CostCache,
) -> Option<DocumentInfo> {
    let document = Document::parse(text)?;
    let operation = document.operation(None)?;
    let variables = Variables::read(Some(variables));
    let shape = CallShape::of(&document, operation, &variables, Some(version)).hash;
    let estimated =
        || estimate(&document, operation, &variables).unwrap_or(UNREADABLE_COST).saturating_mul(MICRO);
    let keyed = new_idempotency_key()
        .and_then(|key| idempotent::add_keys(text, &document, operation, Some(version), &key));
    Some(DocumentInfo {
        shape,
        cost: memory.get(shape).unwrap_or_else(estimated),
        may_repeat: idempotent::is_repeatable(&document, operation, Some(version)),
        keyed,
    })
}

/// Creates a unique key; `None` where the system has no randomness, and then no key is added.
fn new_idempotency_key() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}

fn to_raw_json(json: &impl serde::Serialize) -> Result<Box<RawValue>> {
    to_raw_value(json)
        .map_err(|error| Error::with_source(ShopifyErrorKind::Invalid("The body is not JSON.".into()), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str, version: &str, memory: &CostCache) -> PreparedCall {
        PreparedCall::graphql(version.parse().unwrap(), text, &json!({ "n": 7 }), memory).unwrap()
    }

    fn sent(ask: &PreparedCall) -> String {
        let Body::Json(body) = &ask.request.body else { panic!("no body") };
        body.get().to_owned()
    }

    /// LIM-17: what may be sent twice is decided by parsing the document, not by a word in it.
    #[test]
    fn lim_17_what_may_be_sent_twice() {
        let memory = CostCache::default();
        for (text, may_repeat) in [
            ("{ shop { id } }", true),
            ("query { mutation { id } }", true),
            ("mutation { tagsAdd(id: 1) { node { id } } }", false),
            ("fragment A on Shop { id } mutation { tagsAdd(id: 1) { node { id } } }", false),
            ("mutation { tagsAdd(id: \"@idempotent\") { node { id } } } # @idempotent", false),
            (
                "mutation { refundCreate(input: {}) @idempotent(key: \"7\") { id } tagsAdd(id: 1) { id } }",
                false,
            ),
            ("mutation { tagsAdd(id: 1) @idempotent(key: \"7\") { id } }", true),
            ("what is this", false),
        ] {
            assert_eq!(ask(text, "2026-04", &memory).on_unknown, on_unknown(may_repeat), "{text}");
        }
    }

    /// A mutation that accepts a key gets one of its own, where the version supports keys.
    #[test]
    fn a_key_is_put_on_where_it_is_taken() {
        let memory = CostCache::default();
        let refund = "mutation { refundCreate(input: {}) { refund { id } } }";
        let (one, other) = (ask(refund, "2026-04", &memory), ask(refund, "2026-04", &memory));
        assert!(
            one.on_unknown == OnUnknown::Repeat && sent(&one).contains("@idempotent(key: "),
            "{}",
            sent(&one)
        );
        assert_ne!(sent(&one), sent(&other), "each call has a key of its own");
        let old = ask(refund, "2025-10", &memory);
        assert!(old.on_unknown == OnUnknown::Ask && !sent(&old).contains("@idempotent"));
    }

    /// LIM-8: a cost is estimated from the text, and cached by its shape once it was reported.
    #[test]
    fn lim_8_a_cost_is_estimated_then_remembered() {
        let memory = CostCache::default();
        let text = "query($n: Int!) { products(first: $n) { nodes { id } } }";
        let first = ask(text, "2026-04", &memory);
        assert_eq!(first.cost, 9 * MICRO, "two and one for each of seven");
        memory.put(first.shape.unwrap(), 23 * MICRO);
        assert_eq!(ask(text, "2026-04", &memory).cost, 23 * MICRO);
        assert_eq!(ask("no document", "2026-04", &memory).cost, UNREADABLE_COST * MICRO);
    }
}
