//! The dialect of an upstream: `dialect`, and the keys that only one dialect has.

use tidegate_discord::dialect::{AT_ONCE_DEFAULT, BASE_URL, GLOBAL_PER_S_DEFAULT, INVALID_MAX};
use tidegate_shopify::bounds::BULK_AT_ONCE_MAX;
use tidegate_shopify::budget::BULK_AT_ONCE_DEFAULT;
use tidegate_upstream::http::TokenHeader;

use super::problem::ConfigProblem;
use super::section::Section;

/// The header of Shopify's access token.
const SHOPIFY_TOKEN: &str = "x-shopify-access-token";

/// The header of Discord's bot token.
const DISCORD_TOKEN: &str = "authorization: Bot";
/// The highest number of calls per second that can be configured for Discord.
const GLOBAL_PER_S_MAX: u64 = 100_000;

/// The additional settings of an upstream with the dialect `shopify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShopifyConfig {
    /// The maximum number of concurrent bulk operations.
    pub bulk_at_once: u32,
    /// The maximum number of its other calls in flight; `None` for as many as its budgets allow.
    pub at_once: Option<u32>,
}

/// The additional settings of an upstream with the dialect `discord`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscordConfig {
    /// The calls per second that Discord allows this bot.
    pub global_per_s: u32,
    /// How many refused calls it may cause in ten minutes; by default an even share of those of the
    /// address.
    pub invalid_max: Option<u64>,
    /// The maximum number of groups that run concurrently.
    pub at_once: u32,
}

/// The dialect of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DialectConfig {
    Http,
    Shopify(ShopifyConfig),
    Discord(DiscordConfig),
}

impl DialectConfig {
    /// The default header of the credential.
    pub(super) fn token_header(self) -> TokenHeader {
        match self {
            Self::Http => TokenHeader::default(),
            Self::Shopify(_) => TokenHeader::parse(SHOPIFY_TOKEN),
            Self::Discord(_) => TokenHeader::parse(DISCORD_TOKEN),
        }
    }

    /// The default base URL, if it has one.
    pub(super) const fn base_url(self) -> Option<&'static str> {
        match self {
            Self::Http | Self::Shopify(_) => None,
            Self::Discord(_) => Some(BASE_URL),
        }
    }

    /// Whether it creates its own limits.
    pub(super) const fn makes_limits(self) -> bool {
        matches!(self, Self::Shopify(_) | Self::Discord(_))
    }
}

pub(super) fn read(section: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> DialectConfig {
    let named = section.text("dialect", problems).map_or_else(|| "http".to_owned(), |named| named.value);
    let bulk_at_once = section.integer("bulk_at_once", 1..=u64::from(BULK_AT_ONCE_MAX), problems);
    let at_once = section.integer("at_once", 1..=u64::from(u32::MAX), problems);
    let global_per_s = section.integer("global_per_s", 1..=GLOBAL_PER_S_MAX, problems);
    let invalid_max = section.integer("invalid_max", 2..=INVALID_MAX, problems);
    let small = |figure: Option<u64>| figure.and_then(|most| u32::try_from(most).ok());
    let dialect = match named.as_str() {
        "http" => DialectConfig::Http,
        "shopify" => {
            let bulk_at_once = small(bulk_at_once).unwrap_or(BULK_AT_ONCE_DEFAULT);
            DialectConfig::Shopify(ShopifyConfig { bulk_at_once, at_once: small(at_once) })
        }
        "discord" => {
            let global_per_s = small(global_per_s).unwrap_or(GLOBAL_PER_S_DEFAULT);
            let at_once = small(at_once).unwrap_or(AT_ONCE_DEFAULT);
            DialectConfig::Discord(DiscordConfig { global_per_s, invalid_max, at_once })
        }
        other => {
            let message = format!(
                "The dialect {other:?} is not known; there are \"http\", \"shopify\" and \"discord\"."
            );
            problems.push(section.problem_at("dialect", message));
            DialectConfig::Http
        }
    };
    if dialect.makes_limits() && section.has("limit") {
        let message =
            format!("The dialect {named:?} makes its limits itself and learns their figures: take this out.");
        problems.push(section.problem_at("limit", message));
    }
    let only =
        |key: &'static str, whose: &'static [&'static str], message: &'static str| (key, whose, message);
    for (key, whose, message) in [
        only("bulk_at_once", &["shopify"], "Only the dialect \"shopify\" has places for bulk operations."),
        only(
            "at_once",
            &["shopify", "discord"],
            "Only the dialects \"shopify\" and \"discord\" have this key: put an [[upstream.limit]] with it below.",
        ),
        only(
            "global_per_s",
            &["discord"],
            "Only the dialect \"discord\" has a limit on all calls by itself.",
        ),
        only("invalid_max", &["discord"], "Only the dialect \"discord\" counts refused calls."),
    ] {
        if section.has(key) && !whose.contains(&named.as_str()) {
            problems.push(section.problem_at(key, message));
        }
    }
    dialect
}
