//! A response of the server: as JSON to look at, and as the text that was sent. What an upstream
//! answered is in it as it came, with numbers that no type holds and text that is not Unicode.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tidegate_upstream::request::json_text;

/// A response.
#[derive(Debug)]
pub(crate) struct ServerReply {
    /// The response, as far as it can be represented.
    pub value: Value,
    /// The response as it was sent.
    pub text: String,
}

#[derive(Deserialize)]
struct OperationText<'a> {
    #[serde(borrow)]
    result: Option<BodyText<'a>>,
    #[serde(borrow)]
    request: Option<BodyText<'a>>,
}

#[derive(Deserialize)]
struct BodyText<'a> {
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

impl ServerReply {
    pub(crate) fn parse(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body).into_owned();
        Self { value: json_text::read(text.as_bytes()).unwrap_or_default(), text }
    }

    /// The body of an operation's result: a string as its text, anything else as it is written.
    pub(crate) fn result_body(&self) -> String {
        self.body_text(|operation| operation.result)
    }

    /// The body of an operation's request, likewise.
    pub(crate) fn request_body(&self) -> String {
        self.body_text(|operation| operation.request)
    }

    fn body_text<'a>(&'a self, part: impl Fn(OperationText<'a>) -> Option<BodyText<'a>>) -> String {
        let operation = serde_json::from_str::<OperationText<'a>>(&self.text).ok();
        let body = operation.and_then(|operation| part(operation)?.body).map(RawValue::get);
        let body = body.filter(|body| *body != "null").unwrap_or_default();
        serde_json::from_str::<String>(body).unwrap_or_else(|_| body.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(body: &str) -> ServerReply {
        ServerReply::parse(format!(r#"{{"id":"op_1","result":{{"status":200,"body":{body}}}}}"#).as_bytes())
    }

    #[test]
    fn a_body_is_shown_as_it_came() {
        let table = [
            (r#"{"n":12345678901234567890123,"f":1.10}"#, r#"{"n":12345678901234567890123,"f":1.10}"#),
            (r#"{"a":1,"a":2}"#, r#"{"a":1,"a":2}"#),
            (r#"{"u":"\ud800"}"#, r#"{"u":"\ud800"}"#),
            (r#"{"e":[1e400]}"#, r#"{"e":[1e400]}"#),
            (r#""a \"text\"""#, "a \"text\""),
            ("null", ""),
        ];
        for (body, shown) in table {
            let reply = reply(body);
            assert_eq!((reply.value["id"].as_str(), &*reply.result_body()), (Some("op_1"), shown), "{body}");
            assert!(reply.text.contains(body), "{body}");
        }
    }

    #[test]
    fn what_is_not_json_is_nothing() {
        for text in ["", "<html>", "{", r#"{"a":tru}"#] {
            assert!(ServerReply::parse(text.as_bytes()).value.is_null(), "{text}");
        }
    }
}
