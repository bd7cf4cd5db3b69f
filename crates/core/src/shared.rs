//! The decisions on shared records, as pure functions from the current state to the next state and
//! a result. A backend does each as one atomic step; the contract suite compares backends with
//! these functions.

pub mod bucket;
pub mod lease;
pub mod record;
pub mod window;

use crate::bounds::NAME_LEN_MAX;
use crate::text::is_plain_text;

/// Whether this may name a stand-alone bucket or a lease: every store can keep it, and it shows on
/// one line.
#[must_use]
pub fn is_name(name: &str) -> bool {
    is_plain_text(name, 1..=NAME_LEN_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_on_one_line() {
        assert!(is_name("a") && is_name("é b/c") && is_name(&"x".repeat(NAME_LEN_MAX)));
        assert!(!is_name("") && !is_name("a\nb") && !is_name("a\u{202e}b"));
        assert!(!is_name(&"x".repeat(NAME_LEN_MAX + 1)));
    }
}
