//! The id of a shop, in the one form that groups and leases use. However a shop is written, it is
//! normalized here and nowhere else, or two spellings of one shop would be two groups.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Longest id, in bytes: one label of a host name.
const SHOP_ID_LEN_MAX: usize = 63;
/// The suffix of a shop's host name, after the id.
const DOMAIN: &str = ".myshopify.com";

/// A shop's id: `acme` for `https://Acme.myshopify.com/admin`.
///
/// ```
/// use tidegate_shopify::ShopId;
///
/// let shop: ShopId = " https://Acme.myshopify.com/admin ".parse().unwrap();
/// assert_eq!(shop.as_str(), "acme");
/// assert_eq!(shop.group(), "shop:acme");
/// assert_eq!(shop.bulk_lease(), "bulk-lock:acme");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShopId(String);

/// A text that is not the id of a shop.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not a shop: a shop is 1 to {SHOP_ID_LEN_MAX} letters, digits or '-', as in acme.myshopify.com."
)]
pub struct InvalidShopId(String);

impl ShopId {
    /// Returns the shop that a URL leads to; `None` when it leads to another host than Shopify's.
    pub(crate) fn of_url(url: &str) -> Option<Self> {
        let host = url.split_once("://")?.1.split(['/', '?', '#', ':']).next()?;
        host.to_lowercase().ends_with(DOMAIN).then(|| host.parse().ok())?
    }

    /// Returns the id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the group in which the operations of this shop keep their order.
    #[must_use]
    pub fn group(&self) -> String {
        format!("shop:{}", self.0)
    }

    /// Returns the lease that a bulk operation of this shop holds.
    #[must_use]
    pub fn bulk_lease(&self) -> String {
        format!("bulk-lock:{}", self.0)
    }
}

impl FromStr for ShopId {
    type Err = InvalidShopId;

    fn from_str(text: &str) -> Result<Self, InvalidShopId> {
        let lower = text.trim().to_lowercase();
        let host = lower.split_once("://").map_or(lower.as_str(), |(_, rest)| rest);
        let host = host.split(['/', '?', '#']).next().unwrap_or_default();
        let id = host.strip_suffix(DOMAIN).unwrap_or(host);
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let fits = (1..=SHOP_ID_LEN_MAX).contains(&id.len()) && !id.starts_with('-');
        if fits && id.bytes().all(allowed) {
            return Ok(Self(id.to_owned()));
        }
        Err(InvalidShopId(text.chars().take(SHOP_ID_LEN_MAX).collect()))
    }
}

impl fmt::Display for ShopId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// LIM-15: every spelling of a shop is one id, so its group and its lease are one.
    #[test]
    fn lim_15_every_spelling_of_a_shop_is_one_id() {
        for text in [
            "acme-2",
            "ACME-2",
            "  acme-2\n",
            "acme-2.myshopify.com",
            "Acme-2.MyShopify.com/",
            "https://acme-2.myshopify.com/admin/api/2026-04/graphql.json?x=1",
            "http://acme-2/admin",
            "acme-2.myshopify.com#top",
        ] {
            let shop: ShopId = text.parse().unwrap();
            assert_eq!(
                (shop.group().as_str(), shop.bulk_lease().as_str()),
                ("shop:acme-2", "bulk-lock:acme-2")
            );
        }
    }

    #[test]
    fn what_is_no_shop_is_refused_by_a_sentence() {
        let long = "a".repeat(SHOP_ID_LEN_MAX + 1);
        for text in
            ["", " ", "-acme", "acme.com", "ac me", "shöp", "acme:443", "https://", ".myshopify.com", &long]
        {
            let said = text.parse::<ShopId>().unwrap_err().to_string();
            assert!(said.contains("is not a shop"), "{said}");
        }
    }

    proptest! {
        /// LIM-15: normalizing twice changes nothing, and no text is too odd.
        #[test]
        fn lim_15_an_id_is_its_own_id(text in "\\PC{0,80}") {
            if let Ok(shop) = text.parse::<ShopId>() {
                let again = shop.as_str().parse::<ShopId>();
                prop_assert_eq!(again, Ok(shop));
            }
        }
    }
}
