//! The pages, rendered on the server and refreshed by one small script. They work without the
//! script, and what an operator does there is a form with a confirm step.

mod action;
pub(crate) mod actions;
pub(crate) mod assets;
pub(crate) mod audit;
mod bulk;
mod charts;
mod closure;
mod confirm_page;
mod decision;
pub(crate) mod deployments;
pub(crate) mod errors;
mod failure_actions;
pub(crate) mod flights;
pub(crate) mod generations;
pub(crate) mod groups;
mod journey;
pub(crate) mod keys;
mod last_command;
pub(crate) mod ledger;
pub(crate) mod limits;
pub(crate) mod live;
mod needs;
pub(crate) mod nodes;
pub(crate) mod operation;
pub(crate) mod operations;
mod operator_words;
pub(crate) mod overview;
mod parts;
pub(crate) mod providers;
pub(crate) mod reference;
mod repeated_form;
mod request;
mod runs;
pub(crate) mod search;
mod shared_regions;
mod shell;
pub(crate) mod shortened;
mod spark;
mod store_watch;
mod view;
mod words;
pub(crate) mod workers;

use std::borrow::Cow;

use axum::extract::Request;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use tidegate_core::text::visible;

use crate::error::Error;
use crate::pacing::response::{is_from_upstream, sandbox};
use crate::wire::error::{PAGES, status};
use operator_words::OperatorWords;
pub(crate) use view::escape;
use words::Language;

const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'",
);
/// The longest text that is searched for.
const SEARCH_LEN_MAX: usize = 256;
/// Adds security headers. Our own responses load nothing from other origins, and forbid type
/// sniffing, frames and caching. An upstream's response is isolated from this server's pages.
pub(crate) async fn headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if is_from_upstream(&response) {
        sandbox(response.headers_mut());
        return response;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // With `no-referrer`, a browser would send the forms of this site as if from none.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Where pages are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageSite {
    /// By the server.
    Server,
    /// On the admin port of a proxy, which has no overview and no reference of the API.
    Proxy,
}

impl PageSite {
    /// Its first page, and what that is called.
    const fn home(self) -> (&'static str, &'static str) {
        match self {
            Self::Server => ("/", "the overview"),
            Self::Proxy => ("/keys", "the keys"),
        }
    }
}

/// What the pages of a process share.
#[derive(Default)]
pub(crate) struct PageState {
    /// The forms that arrived lately.
    recent_forms: repeated_form::RecentForms,
    /// What open overviews show.
    live_regions: shared_regions::SharedRegions,
    /// Whether the store takes writes.
    store_watch: store_watch::StoreWatch,
}

/// How the value of a field begins.
const FIELD_VALUE: &str = " value=\"";

/// What surrounds the content of a page.
pub(crate) struct Frame<'a> {
    pub title: &'a str,
    pub language: Language,
    /// Where its live regions are fetched; empty for the page itself, `None` for a page that is not
    /// live.
    pub regions: Option<&'a str>,
}

/// A complete HTML document of the server, in English.
pub(crate) fn document(title: &str, is_live: bool, content: &Markup) -> Markup {
    framed(&Frame { title, language: Language::English, regions: is_live.then_some("/page/live") }, content)
}

/// A complete HTML document of the server.
pub(crate) fn framed(frame: &Frame<'_>, content: &Markup) -> Markup {
    framed_at(PageSite::Server, frame, content)
}

/// A complete HTML document in English that is not live.
fn document_at(site: PageSite, title: &str, content: &Markup) -> Markup {
    framed_at(site, &Frame { title, language: Language::English, regions: None }, content)
}

/// A complete HTML document.
fn framed_at(site: PageSite, frame: &Frame<'_>, content: &Markup) -> Markup {
    let (version, words) = (assets::version(), frame.language.words());
    html! {
        (DOCTYPE)
        html lang=(frame.language.code()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (visible(frame.title)) " · Tidegate" }
                link rel="stylesheet" href={ "/assets/page.css?" (version) };
                link rel="icon" type="image/svg+xml" href={ "/assets/icon.svg?" (version) };
                @if frame.regions.is_some() {
                    script type="module" src={ "/assets/page.js?" (version) } {}
                    noscript { meta http-equiv="refresh" content="10"; }
                }
            }
            body {
                a.skip href="#main" { (words.skip) }
                header {
                    a.brand href=(site.home().0) { (assets::icon_markup()) "Tidegate" }
                    (navigation(site, frame))
                    @if site == PageSite::Server { (search_form(frame.language.operator_words())) }
                    @if let Some(regions) = frame.regions {
                        p #store role="status" data-ready=(words.store_ready) data-away=(words.store_away) {}
                        p #live role="status" data-regions=(regions) data-fresh=(words.live) data-lost=(words.lost) data-gone=(words.gone) data-held=(words.held) { (words.as_of_now) }
                        button #hold type="button" data-resume=(words.resume) hidden { (words.pause) }
                    }
                }
                main #main { (without_controls(content)) }
            }
        }
    }
}

/// Content in which nothing turns the text around it, whoever wrote what it shows: a caller, an
/// upstream or a worker. The values of fields stay as they are, because they are sent back.
fn without_controls(content: &Markup) -> PreEscaped<Cow<'_, str>> {
    let Cow::Owned(_) = visible(&content.0) else { return PreEscaped(Cow::Borrowed(&content.0)) };
    let mut parts = content.0.split(FIELD_VALUE);
    let mut shown = visible(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        // Quotes in a value are written as references.
        let (value, rest) = part.split_at(part.find('"').unwrap_or(part.len()));
        shown.extend([FIELD_VALUE, value, &visible(rest)]);
    }
    PreEscaped(Cow::Owned(shown))
}

/// The search, on every page.
fn search_form(words: &OperatorWords) -> Markup {
    html! {
        form.search method="get" action="/search" role="search" {
            input type="search" name="q" aria-label=(words.search) placeholder=(words.search) maxlength=(SEARCH_LEN_MAX);
            button.hidden type="submit" tabindex="-1" { (words.find) }
        }
    }
}

/// The links to the other pages; the one that is open is marked.
fn navigation(site: PageSite, frame: &Frame<'_>) -> Markup {
    let (words, operator_words) = (frame.language.words(), frame.language.operator_words());
    let of_the_server = site == PageSite::Server;
    let links = [
        ("/", operator_words.overview, of_the_server),
        ("/operations", operator_words.operations, of_the_server),
        ("/groups", operator_words.groups, of_the_server),
        ("/limits", operator_words.limits, of_the_server),
        ("/workers", operator_words.workers, of_the_server),
        ("/generations", words.generations, of_the_server),
        ("/providers", words.providers, of_the_server),
        ("/ledger", words.ledger, of_the_server),
        ("/keys", words.keys, true),
        ("/flights", words.flights, of_the_server),
        ("/deployments", deployments::title(frame.language), of_the_server),
        ("/nodes", operator_words.nodes, of_the_server),
        ("/audit", operator_words.audit, of_the_server),
        ("/docs", words.api, of_the_server),
    ];
    html! {
        nav {
            @for (path, name, _) in links.iter().filter(|(_, _, is_here)| *is_here) {
                a href=(path) aria-current=[(*name == frame.title).then_some("page")] { (name) }
            }
        }
    }
}

/// The query of a URL.
fn request_query(uri: &Uri) -> &str {
    uri.query().unwrap_or_default()
}

/// Whether the caller is a browser that wants to show a page.
pub(crate) fn is_wanted(method: &Method, headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    method == Method::GET && accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// The HTML page of an error of the server.
pub(crate) fn error_page(error: &Error) -> Response {
    error_page_at(PageSite::Server, error)
}

/// The HTML page of an error.
fn error_page_at(site: PageSite, error: &Error) -> Response {
    let (home, name) = site.home();
    let content = html! {
        h1 { (error.message) }
        p { "Code " a href={ (PAGES) "/" (error.code) } { (error.code) } ". " a href=(home) { "Back to " (name) } "." }
    };
    let code: StatusCode = status(error.code);
    let title = match code {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::SERVICE_UNAVAILABLE => "Not available now",
        code if code.is_client_error() => "Not understood",
        _ => "Something went wrong",
    };
    (code, document_at(site, title, &content)).into_response()
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::error::ErrorCode;

    /// OPS-22: what others wrote turns nothing on a page, wherever it is shown.
    #[test]
    fn ops_22_a_page_has_no_control_characters() {
        let wrote = "a\u{202e}b\u{1b}[2J";
        let page = document(wrote, true, &html! { p title=(wrote) { (wrote) } }).into_string();
        assert_eq!(page.matches("a\\u202eb\\u001b[2J").count(), 3, "{page}");
        assert_eq!(visible(&page), page);
        let field = html! { input value=(wrote); b { (wrote) } };
        let shown = without_controls(&field).0.into_owned();
        assert!(shown.contains(&format!("value=\"{wrote}\"")) && shown.contains("<b>a\\u202eb"), "{shown}");
    }

    #[tokio::test]
    async fn the_title_of_an_error_is_what_happened() {
        let table = [
            (ErrorCode::NoOperation, "Not found"),
            (ErrorCode::StoreUnavailable, "Not available now"),
            (ErrorCode::Malformed, "Not understood"),
            (ErrorCode::Internal, "Something went wrong"),
        ];
        for (code, title) in table {
            let body = error_page(&Error::new(code, "…")).into_body();
            let page = axum::body::to_bytes(body, 64 * 1024).await.unwrap();
            let page = String::from_utf8(page.to_vec()).unwrap();
            assert!(page.contains(&format!("<title>{title} · Tidegate</title>")), "{page}");
        }
    }
}
