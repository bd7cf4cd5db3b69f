//! The rule for names and notes that people read: they stay on one line, and hold nothing that
//! changes how the text around them is shown.

use std::ops::RangeInclusive;

/// Whether a character controls how text is shown and is not shown itself: a control character, or
/// one that turns the direction of what follows.
#[must_use]
pub fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a text has such a length in bytes and no [control character](is_control).
#[must_use]
pub fn is_plain_text(text: &str, bytes: RangeInclusive<usize>) -> bool {
    bytes.contains(&text.len()) && !text.chars().any(is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_text_is_shown_as_it_is() {
        for plain in ["a", "é b/c", "שלום", "مرحبا"] {
            assert!(is_plain_text(plain, 1..=16), "{plain}");
        }
        for other in ["a\nb", "a\0b", "a\u{7f}b", "a\u{85}b", "a\u{202e}b", "a\u{2067}b"] {
            assert!(!is_plain_text(other, 1..=16), "{other:?}");
        }
        assert!(is_plain_text("", 0..=1) && !is_plain_text("", 1..=1) && !is_plain_text("ab", 1..=1));
    }
}
