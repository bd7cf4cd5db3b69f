//! Pages of a REST list, by cursor: each response links to the adjacent pages, and only the links
//! have their positions.

use std::ops::Range;

/// The length of every list that is requested in pages.
pub const LIST_LEN: u64 = 120;
/// Most items per page.
const LIMIT_MAX: u64 = 250;

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestPage {
    limit: u64,
    offset: u64,
}

impl RestPage {
    /// Parses a query; `None` when it does not give the page length.
    #[must_use]
    pub fn of(query: &str) -> Option<Self> {
        let value = |name: &str| {
            query.split('&').filter_map(|pair| pair.split_once('=')).find(|(known, _)| *known == name)
        };
        let limit: u64 = value("limit")?.1.parse().ok()?;
        let cursor = value("page_info").and_then(|(_, text)| u64::from_str_radix(text, 16).ok());
        Some(Self { limit: limit.clamp(1, LIMIT_MAX), offset: cursor.unwrap_or(0).min(LIST_LEN) })
    }

    /// Returns the ids on the page.
    #[must_use]
    pub fn ids(self) -> Range<u64> {
        self.offset + 1..(self.offset + self.limit).min(LIST_LEN) + 1
    }

    /// Returns the `Link` header of a list at this URL; `None` when there is no other page.
    #[must_use]
    pub fn links(self, url: &str) -> Option<String> {
        let Self { limit, offset } = self;
        let to =
            |offset: u64, rel: &str| format!("<{url}?limit={limit}&page_info={offset:08x}>; rel=\"{rel}\"");
        let previous = (offset > 0).then(|| to(offset.saturating_sub(limit), "previous"));
        let next = (offset + limit < LIST_LEN).then(|| to(offset + limit, "next"));
        let links: Vec<_> = previous.into_iter().chain(next).collect();
        (!links.is_empty()).then(|| links.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_one_another_to_the_end() {
        assert_eq!(RestPage::of("fields=id"), None);
        let mut page = RestPage::of("limit=50").unwrap();
        let mut ids = Vec::new();
        loop {
            ids.extend(page.ids());
            let links = page.links("http://shop/x.json").unwrap_or_default();
            let Some(next) = links.split(", ").find(|link| link.ends_with("rel=\"next\"")) else { break };
            page = RestPage::of(next.split(['?', '>']).nth(1).unwrap()).unwrap();
        }
        assert_eq!(ids, (1..=LIST_LEN).collect::<Vec<_>>());
        assert_eq!(RestPage::of("limit=250").unwrap().links("u"), None);
    }
}
