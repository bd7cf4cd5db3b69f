//! An outgoing response: a status, headers and a body, with what headers report of limits.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tidegate_core::Time;
use tidegate_core::time::{micros, millis_up};

use super::rate_limiter::{LimitExceeded, LimitScope};
use super::window::WindowDecision;
use crate::server;

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub struct DiscordResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: DiscordBody,
}

/// A body.
#[derive(Clone, Debug, PartialEq)]
pub enum DiscordBody {
    /// None.
    None,
    /// JSON.
    Json(Value),
    /// An HTML page of the proxy in front of the API.
    Page(&'static str),
}

const BANNED: &str = "<!DOCTYPE html><html><head><title>Access denied</title></head>\
<body><h1>Error 1015</h1><p>You are being rate limited.</p></body></html>";
const BAD_GATEWAY: &str =
    "<html><head><title>502 Bad Gateway</title></head><body>502 Bad Gateway</body></html>";

impl DiscordResponse {
    /// Creates a response with a JSON body, or with none.
    #[must_use]
    pub fn new(status: StatusCode, body: Option<Value>) -> Self {
        Self { status, headers: Vec::new(), body: body.map_or(DiscordBody::None, DiscordBody::Json) }
    }

    /// Creates the response to a banned address: no JSON, and no header that reports a limit.
    #[must_use]
    pub fn banned(left: Duration) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            headers: vec![("retry-after", seconds_up(left).to_string())],
            body: DiscordBody::Page(BANNED),
        }
    }

    /// Creates a random failure: of the API in JSON, or of the proxy in front of it in HTML.
    #[must_use]
    pub fn failed(drawn: u64) -> Self {
        match drawn % 3 {
            0 => Self::by_status(StatusCode::INTERNAL_SERVER_ERROR),
            1 => Self {
                status: StatusCode::BAD_GATEWAY,
                headers: Vec::new(),
                body: DiscordBody::Page(BAD_GATEWAY),
            },
            _ => Self::by_status(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    fn by_status(status: StatusCode) -> Self {
        Self::new(status, Some(super::refusal::status_body(status)))
    }

    /// Creates the response to a rate-limited call.
    #[must_use]
    pub fn limited(limited: &LimitExceeded) -> Self {
        let message = match limited.scope {
            LimitScope::Shared => "The resource is being rate limited.",
            LimitScope::User | LimitScope::Global => "You are being rate limited.",
        };
        let is_global = limited.scope == LimitScope::Global;
        let wait = millis_up(limited.wait) as f64 / 1_000.0;
        let body = json!({ "message": message, "retry_after": wait, "global": is_global });
        let mut answer = Self::new(StatusCode::TOO_MANY_REQUESTS, Some(body));
        let scope = match limited.scope {
            LimitScope::User => "user",
            LimitScope::Global => "global",
            LimitScope::Shared => "shared",
        };
        answer.headers.push(("retry-after", seconds_up(limited.wait).to_string()));
        answer.headers.push(("x-ratelimit-scope", scope.to_owned()));
        if is_global {
            answer.headers.push(("x-ratelimit-global", "true".to_owned()));
        }
        answer
    }

    /// Adds the headers of the route's limit.
    #[must_use]
    pub fn with_limit_headers(mut self, ruling: Option<WindowDecision>, hash: String, now: Time) -> Self {
        if let Some(ruling) = ruling {
            let reset = now.after(ruling.reset_after);
            self.headers.extend([
                ("x-ratelimit-limit", ruling.limit.to_string()),
                ("x-ratelimit-remaining", ruling.remaining.to_string()),
                ("x-ratelimit-reset", decimal(reset.as_micros().div_ceil(1_000))),
                ("x-ratelimit-reset-after", decimal(millis_up(ruling.reset_after))),
                ("x-ratelimit-bucket", hash),
            ]);
        }
        self
    }

    /// Converts it to an HTTP response.
    #[must_use]
    pub fn to_response(&self) -> Response<Bytes> {
        let mut response = match &self.body {
            DiscordBody::Json(body) => server::json(self.status, body),
            DiscordBody::None => Response::new(Bytes::new()),
            DiscordBody::Page(page) => {
                let mut response = Response::new(Bytes::from_static(page.as_bytes()));
                let html = HeaderValue::from_static("text/html; charset=UTF-8");
                response.headers_mut().insert("content-type", html);
                response
            }
        };
        *response.status_mut() = self.status;
        for (name, value) in &self.headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                response.headers_mut().insert(*name, value);
            }
        }
        response
    }
}

/// Rounds up to whole seconds.
fn seconds_up(duration: Duration) -> u64 {
    micros(duration).div_ceil(1_000_000)
}

/// Formats milliseconds as seconds with three decimals.
fn decimal(millis: u64) -> String {
    format!("{}.{:03}", millis / 1_000, millis % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(answer: &DiscordResponse) -> (u16, String, String) {
        let headers = answer.headers.iter().map(|(name, value)| format!("{name}: {value}"));
        let body = String::from_utf8(answer.to_response().into_body().to_vec()).unwrap();
        (answer.status.as_u16(), headers.collect::<Vec<_>>().join("\n"), body)
    }

    /// LIM-8: the exact responses of the three scopes and of the ban.
    #[test]
    fn lim_8_refusals_are_told_as_documented() {
        let reset_after = Duration::from_millis(1_400);
        let ruling = Some(WindowDecision { allowed: false, limit: 5, remaining: 0, reset_after });
        let user = LimitExceeded {
            scope: LimitScope::User,
            wait: Duration::from_micros(64_569_001),
            decision: ruling,
        };
        let now = Time::from_millis(1_470_173_021_723);
        let answer = DiscordResponse::limited(&user).with_limit_headers(ruling, "abcd".to_owned(), now);
        assert_eq!(
            summary(&answer),
            (
                429,
                "retry-after: 65\nx-ratelimit-scope: user\nx-ratelimit-limit: 5\nx-ratelimit-remaining: 0\n\
             x-ratelimit-reset: 1470173023.123\nx-ratelimit-reset-after: 1.400\nx-ratelimit-bucket: abcd"
                    .to_owned(),
                r#"{"global":false,"message":"You are being rate limited.","retry_after":64.57}"#.to_owned()
            )
        );
        let global =
            LimitExceeded { scope: LimitScope::Global, wait: Duration::from_millis(1), decision: None };
        assert_eq!(
            summary(&DiscordResponse::limited(&global)),
            (
                429,
                "retry-after: 1\nx-ratelimit-scope: global\nx-ratelimit-global: true".to_owned(),
                r#"{"global":true,"message":"You are being rate limited.","retry_after":0.001}"#.to_owned()
            )
        );
        let shared = LimitExceeded { scope: LimitScope::Shared, ..user };
        assert!(
            summary(&DiscordResponse::limited(&shared)).2.contains("The resource is being rate limited.")
        );
        let (status, headers, body) = summary(&DiscordResponse::banned(Duration::from_secs(66_271)));
        assert_eq!((status, headers.as_str()), (429, "retry-after: 66271"));
        assert!(body.starts_with("<!DOCTYPE html>"));
    }
}
