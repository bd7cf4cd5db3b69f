//! The pages of error codes, from the documentation: the targets of the `link` of an error.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::{PageSite, document_at, error_page_at};
use crate::error::{Error, ErrorCode};
use crate::wire::error::PAGES as ADDRESS;
use crate::wire::object::truncate_name;

/// Each code with its page.
macro_rules! pages {
    ($($code:ident)+) => {
        [$((stringify!($code), include_str!(concat!("../../../../docs/errors/", stringify!($code), ".md")))),+]
    };
}

const PAGES: &[(&str, &str)] = &pages! {
    TG0001 TG0002 TG0003 TG0004 TG0005 TG0006 TG0007 TG0008 TG0009 TG0010 TG0011 TG0012
    TG0013 TG0014 TG0015 TG0016 TG0017 TG0018 TG0019 TG0020 TG0021 TG0022 TG0023 TG0024
    TG0025 TG0026 TG0027 TG0028 TG0029 TG0030 TG0031 TG0032 TG0033 TG0034
};

/// Lists every code with its title.
pub(crate) async fn list() -> Response {
    let title = |text: &'static str| text.lines().next().unwrap_or_default().trim_start_matches("# ");
    let content = html! {
        h1 { "Error codes" }
        ul.plain {
            @for (code, text) in PAGES { li { a href={ (ADDRESS) "/" (code) } { (title(text)) } } }
        }
    };
    document_at(PageSite::Server, "Error codes", &content).into_response()
}

pub(crate) async fn show(Path(code): Path<String>) -> Response {
    show_at(PageSite::Server, &code)
}

pub(crate) async fn show_in_proxy(Path(code): Path<String>) -> Response {
    show_at(PageSite::Proxy, &code)
}

fn show_at(site: PageSite, code: &str) -> Response {
    match PAGES.iter().find(|(known, _)| *known == code) {
        Some((code, text)) => document_at(site, code, &content(text)).into_response(),
        None => {
            let message = format!("There is no error code {:?}.", truncate_name(code));
            error_page_at(site, &Error::new(ErrorCode::NoRoute, message))
        }
    }
}

/// Renders a page as HTML: headings, paragraphs, lists and code, which is all that these pages
/// have.
fn content(text: &str) -> Markup {
    let blocks = text.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    html! { @for block in blocks { (one_block(block)) } }
}

fn one_block(block: &str) -> Markup {
    if let Some(title) = block.strip_prefix("# ") {
        return html! { h1 { (title) } };
    }
    if let Some(title) = block.strip_prefix("## ") {
        return html! { h2 { (title) } };
    }
    if let Some(code) = block.strip_prefix("```") {
        let code = code.split_once('\n').map_or("", |(_, code)| code).trim_end_matches("```");
        return html! { pre { code { (code) } } };
    }
    if block.starts_with("- ") {
        let items = block.split("\n- ").map(|item| item.trim_start_matches("- "));
        return html! { ul { @for item in items { li { (inline(item)) } } } };
    }
    html! { p { (inline(block)) } }
}

/// Renders a text with inline code. A link into the documentation becomes its text, because the
/// documentation is not served.
fn inline(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 1 { code { (part) } } @else { (without_links(part)) }
        }
    }
}

fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        match link.split_once("](").and_then(|(name, target)| Some((name, target.split_once(')')?.1))) {
            Some((name, after)) => {
                plain.push_str(name);
                rest = after;
            }
            None => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_page() {
        let codes: Vec<_> = ErrorCode::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(PAGES.iter().map(|(code, _)| *code).collect::<Vec<_>>(), codes);
        for (code, text) in PAGES {
            let page = content(text).into_string();
            assert!(page.starts_with(&format!("<h1>{code} ")), "{page}");
            assert!(page.contains("<pre><code>{") && !page.contains("```") && !page.contains("]("), "{page}");
        }
    }

    #[test]
    fn a_link_is_its_text() {
        assert_eq!(without_links("see [this](../a.md), [x] and [y](z"), "see this, [x] and [y](z");
    }
}
