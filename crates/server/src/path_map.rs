//! Settings by path: the longest matching route wins. Paths are compared as a service would read
//! them, so that no spelling of a path bypasses its route.

use std::sync::Arc;

use crate::config::PolicyRoute;

/// A default value for all paths, and other values below some of them.
#[derive(Clone)]
pub(crate) struct PathMap<T> {
    usual: T,
    others: Arc<[(Vec<Vec<u8>>, T)]>,
}

impl<T> PathMap<T> {
    pub(crate) fn new<'a>(usual: T, others: impl IntoIterator<Item = (&'a str, T)>) -> Self {
        let others = others.into_iter().map(|(path, other)| (PolicyRoute::segments(path), other));
        let mut others: Vec<_> = others.collect();
        others.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Self { usual, others: others.into() }
    }

    pub(crate) fn get(&self, path: &str) -> &T {
        if self.others.is_empty() {
            return &self.usual;
        }
        let asked = PolicyRoute::segments(path);
        let fits = self.others.iter().find(|(path, _)| asked.starts_with(path));
        fits.map_or(&self.usual, |(_, other)| other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-5, IDM-12: a route is for whole segments, however they are spelled; the longest decides.
    #[test]
    fn no_spelling_of_a_path_slips_past_its_route() {
        let by_path = PathMap::new(0, [("/payments", 1), ("/payments/card", 2)]);
        for path in [
            "/payments/card",
            "/payments/card/",
            "//payments//card/7",
            "/%70ayments/card",
            "/./payments/x/../card",
            "/payments%2Fcard",
        ] {
            assert_eq!(*by_path.get(path), 2, "{path}");
        }
        for path in ["/", "/x/payments/card", "/payments/card/../..", "/payment"] {
            assert_eq!(*by_path.get(path), 0, "{path}");
        }
        for path in ["/payments", "/payments/cards"] {
            assert_eq!(*by_path.get(path), 1, "{path}");
        }
    }
}
