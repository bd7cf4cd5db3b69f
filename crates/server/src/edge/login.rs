//! The login of a browser: a form that takes a token, and a cookie that holds it. Scripts cannot
//! read the cookie, and browsers do not send it for other sites; each request is still authorized
//! by the token itself, so revoking that ends the login.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::header::{ACCEPT, COOKIE, LOCATION, RETRY_AFTER, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::html;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::auth::{self, PeerAddr};
use super::content::RequestBody;
use super::query::Query;
use crate::api::HandlerResult;
use crate::config::TokenScope;
use crate::error::{Error, ErrorCode, Result};
use crate::listen::TlsConnection;
use crate::page;
use crate::state::ServerState;

/// The name of the cookie.
const NAME: &str = "tidegate_token";
/// How long a browser keeps it, in seconds: a working day.
const MAX_AGE_S: u32 = 12 * 3_600;
/// The path of the form.
pub(crate) const PATH: &str = "/login";
/// The longest path to return to, in bytes.
const NEXT_LEN_MAX: usize = 1_024;

/// Shows the form.
pub(crate) async fn show(State(server): State<Arc<ServerState>>, mut query: Query) -> HandlerResult {
    let next = read_next(&mut query);
    query.finish()?;
    if !server.tokens.are_required() {
        return Ok(redirect("/"));
    }
    Ok(form(&next, None, None).into_response())
}

/// Checks the token in the form, and keeps it in the cookie.
pub(crate) async fn enter(
    State(server): State<Arc<ServerState>>,
    peer: Option<Extension<PeerAddr>>,
    tls: Option<Extension<TlsConnection>>,
    body: RequestBody,
) -> HandlerResult {
    let body = body.read().await?;
    let mut fields = Query::parse(std::str::from_utf8(&body).map_err(|_| malformed())?);
    let (token, next) = (fields.take("token"), read_next(&mut fields));
    fields.finish()?;
    let token = token.ok_or_else(malformed)?;
    let peer = peer.map(|Extension(peer)| peer);
    let problem = match auth::verify(&server, peer, token.trim()) {
        Ok(token) if token.scopes.contains(&TokenScope::Read) => None,
        Ok(token) => {
            let message = format!("The token {:?} does not have the scope \"read\".", token.name);
            Some(Error::new(ErrorCode::Unauthorized, message))
        }
        Err(error) => Some(error),
    };
    if let Some(problem) = problem {
        return Ok(refusal(&next, &problem));
    }
    let mut response = redirect(&next);
    response.headers_mut().insert(SET_COOKIE, cookie(token.trim(), MAX_AGE_S, tls.is_some())?);
    Ok(response)
}

/// Removes the cookie.
pub(crate) async fn leave(tls: Option<Extension<TlsConnection>>) -> HandlerResult {
    let mut response = redirect(PATH);
    response.headers_mut().insert(SET_COOKIE, cookie("", 0, tls.is_some())?);
    Ok(response)
}

/// Leads a browser that opens a page without a valid token to the form, and shows it with the
/// reason to one whose token lacks the scope; `None` for anyone else.
pub(super) fn lead_to_form(head: &Parts, error: &Error) -> Option<Response> {
    let accepts = head.headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if head.method != Method::GET || !accepts.contains("text/html") {
        return None;
    }
    let asked = head.uri.path_and_query().map_or("/", |asked| asked.as_str());
    match error.code {
        // It may have a token, and has to wait all the same.
        ErrorCode::Unauthorized if error.retry_after_s.is_some() => Some(refusal(asked, error)),
        ErrorCode::Unauthorized => Some(redirect(&format!("{PATH}?next={}", page::escape(asked)))),
        ErrorCode::Forbidden if error.scope.is_some() => {
            Some((StatusCode::FORBIDDEN, form(asked, Some(&error.message), error.scope)).into_response())
        }
        _ => None,
    }
}

/// The form with the reason why a token is refused, and for how long.
fn refusal(next: &str, error: &Error) -> Response {
    let form = form(next, Some(&error.message), None);
    let mut response = (StatusCode::UNAUTHORIZED, form).into_response();
    if let Some(seconds) = error.retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, seconds.get().into());
    }
    response
}

/// The token in the cookie.
pub(super) fn token_in_cookie(headers: &HeaderMap) -> Option<String> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let value = pairs.flat_map(|pairs| pairs.split(';')).find_map(value_of_ours)?;
    percent_decode_str(value).decode_utf8().ok().map(Into::into).filter(|token: &String| !token.is_empty())
}

fn value_of_ours(pair: &str) -> Option<&str> {
    pair.trim().strip_prefix(NAME)?.strip_prefix('=')
}

fn cookie(token: &str, max_age_s: u32, is_tls: bool) -> Result<HeaderValue> {
    let value = utf8_percent_encode(token, NON_ALPHANUMERIC);
    let secure = if is_tls { "; Secure" } else { "" };
    let text = format!("{NAME}={value}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Strict{secure}");
    let mut value = HeaderValue::from_str(&text).map_err(|_| malformed())?;
    value.set_sensitive(true);
    Ok(value)
}

fn malformed() -> Error {
    Error::new(ErrorCode::Malformed, "Send the form of the page: token and next.")
}

/// The path to return to, on this server only.
fn read_next(fields: &mut Query) -> String {
    let is_own = |path: &String| {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        path.starts_with('/')
            && !path.starts_with("//")
            && path.len() <= NEXT_LEN_MAX
            && path.bytes().all(is_plain)
    };
    fields.take("next").filter(is_own).unwrap_or_else(|| "/".to_owned())
}

fn redirect(to: &str) -> Response {
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response()
}

/// The form; every page needs the scope `read`, and some pages another one too.
fn form(next: &str, problem: Option<&str>, scope: Option<TokenScope>) -> maud::Markup {
    let other = scope.filter(|scope| *scope != TokenScope::Read);
    page::document(
        "Log in",
        false,
        &html! {
            h1 { "Log in" }
            @if let Some(problem) = problem {
                p role="alert" { (problem) }
            }
            form method="post" action=(PATH) {
                input type="hidden" name="next" value=(next);
                p {
                    label for="token" { "Token" }
                    " "
                    input #token type="password" name="token" autocomplete="current-password"
                        required autofocus;
                    " "
                    button type="submit" { "Log in" }
                }
                p {
                    "A token with the scope " (TokenScope::Read.as_str())
                    @if let Some(other) = other { " and " (other.as_str()) }
                    ", as " code { "tidegate token create" } " prints it."
                }
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(cookies: &[&str]) -> HeaderMap {
        cookies.iter().map(|text| (COOKIE, HeaderValue::from_str(text).unwrap())).collect()
    }

    #[test]
    fn our_cookie_is_found_among_others() {
        let some = headers(&["c=3", "a=1; tidegate_token=to%20ken; b=2"]);
        assert_eq!(token_in_cookie(&some).as_deref(), Some("to ken"));
        let none = headers(&["x_tidegate_token=1; tidegate_tokens=2", "tidegate_token="]);
        assert_eq!(token_in_cookie(&none), None);
    }

    /// A link to the form cannot lead to another site.
    #[test]
    fn only_paths_of_this_server_are_returned_to() {
        for (next, kept) in [
            ("%2Fgroups%2Fa", "/groups/a"),
            ("%2F%2Fevil.example", "/"),
            ("https%3A%2F%2Fevil.example", "/"),
            ("%2F%5Cevil.example", "/"),
            ("%2Fa%0D%0Ax%3Ay", "/"),
        ] {
            assert_eq!(read_next(&mut Query::parse(&format!("next={next}"))), kept, "{next}");
        }
    }

    #[test]
    fn the_cookie_is_for_this_site_and_no_script() {
        let text = |is_tls| cookie("a;b", 60, is_tls).unwrap().to_str().unwrap().to_owned();
        assert_eq!(text(false), "tidegate_token=a%3Bb; Path=/; Max-Age=60; HttpOnly; SameSite=Strict");
        assert!(text(true).ends_with("; Secure"));
    }
}
