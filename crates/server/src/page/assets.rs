//! The style sheet, the script and the icon of the pages, kept by browsers until they change. The
//! style sheet is served without its comments and indentation: every first view waits for it.

use std::sync::LazyLock;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use maud::PreEscaped;
use tidegate_core::fingerprint::{Fingerprint, hex};

const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");
const ICON: &str = include_str!("assets/icon.svg");

static SHORT_STYLE: LazyLock<String> = LazyLock::new(|| shortened(STYLE));

/// The version suffix of the assets' URLs, so that browsers can cache them and fetch new versions.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let assets = [STYLE, SCRIPT, ICON].map(str::as_bytes);
    hex(&assets.iter().fold(Fingerprint::of("assets"), |hash, asset| hash.part(asset)).finish()[..6])
});

pub(super) fn version() -> &'static str {
    &VERSION
}

/// The icon, as a part of a page.
pub(super) const fn icon_markup() -> PreEscaped<&'static str> {
    PreEscaped(ICON)
}

pub(crate) async fn style() -> Response {
    asset(&SHORT_STYLE, "text/css; charset=utf-8")
}

pub(crate) async fn script() -> Response {
    asset(SCRIPT, "text/javascript; charset=utf-8")
}

pub(crate) async fn icon() -> Response {
    asset(ICON, "image/svg+xml")
}

fn asset(text: &'static str, kind: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "public, max-age=31536000, immutable")], text).into_response()
}

/// A style sheet without comments and indentation. It has no comment marks in strings.
fn shortened(style: &str) -> String {
    let mut parts = style.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    let bare = parts.fold(first, |bare, part| bare + part.split_once("*/").map_or("", |(_, rest)| rest));
    bare.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_sheet_is_served_without_comments() {
        let style = "/* One. */\na {\n  color: red; /* Two. */\n}\n\n/* Three,\n   longer. */\nb { }\n";
        assert_eq!(shortened(style), "a {\ncolor: red;\n}\nb { }");
    }
}
