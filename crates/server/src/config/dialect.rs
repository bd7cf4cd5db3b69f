//! How an upstream is spoken to: `dialect`, and the keys that only one of them has.

use tidegate_shopify::budget::{BULK_AT_ONCE_DEFAULT, BULK_AT_ONCE_MAX};
use tidegate_upstream::http::TokenHeader;

use super::problem::Problem;
use super::section::Section;

/// The header in which Shopify wants its token.
const SHOPIFY_TOKEN: &str = "x-shopify-access-token";

/// What an upstream of the dialect `shopify` has besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShopifyConfig {
    /// Bulk operations at once.
    pub bulk_at_once: u32,
    /// All its other calls at once; nothing for as many as its budgets allow.
    pub at_once: Option<u32>,
}

/// The dialect of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Http,
    Shopify(ShopifyConfig),
}

impl Dialect {
    /// The header that carries the credential, when none is named.
    pub(super) fn token_header(self) -> TokenHeader {
        match self {
            Self::Http => TokenHeader::default(),
            Self::Shopify(_) => TokenHeader::parse(SHOPIFY_TOKEN),
        }
    }

    /// Whether it makes limits by itself.
    pub(super) const fn makes_limits(self) -> bool {
        matches!(self, Self::Shopify(_))
    }
}

pub(super) fn read(section: &mut Section<'_>, problems: &mut Vec<Problem>) -> Dialect {
    let named = section.text("dialect", problems);
    let bulk_at_once = section.integer("bulk_at_once", 1..=u64::from(BULK_AT_ONCE_MAX), problems);
    let at_once = section.integer("at_once", 1..=u64::from(u32::MAX), problems);
    match named.as_ref().map(|named| named.value.as_str()) {
        Some("shopify") => {
            if section.has("limit") {
                let message = "The dialect \"shopify\" makes its limits itself and learns their figures: take this out.";
                problems.push(section.problem_at("limit", message));
            }
            let places = |said: Option<u64>| said.and_then(|most| u32::try_from(most).ok());
            return Dialect::Shopify(ShopifyConfig {
                bulk_at_once: places(bulk_at_once).unwrap_or(BULK_AT_ONCE_DEFAULT),
                at_once: places(at_once),
            });
        }
        None | Some("http") => {}
        Some(other) => {
            let is = if other == "discord" { "is not in this version" } else { "is not known" };
            let message = format!("The dialect {other:?} {is}; there are \"http\" and \"shopify\".");
            problems.push(section.problem_at("dialect", message));
        }
    }
    if section.has("bulk_at_once") {
        let message = "Only the dialect \"shopify\" has places for bulk operations.";
        problems.push(section.problem_at("bulk_at_once", message));
    }
    if section.has("at_once") {
        let message = "Only the dialect \"shopify\" has this key: put an [[upstream.limit]] with it below.";
        problems.push(section.problem_at("at_once", message));
    }
    Dialect::Http
}
