//! Counts in sentences.

/// Returns a count with its noun: `1 call`, `2 calls`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Returns the word that fits the count.
pub(crate) fn agreeing<'a>(count: usize, one: &'a str, more: &'a str) -> &'a str {
    if count == 1 { one } else { more }
}
