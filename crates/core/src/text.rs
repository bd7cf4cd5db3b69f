//! The rule for names and notes that people read: they stay on one line, and hold nothing that
//! changes how the text around them is shown. Where any text is shown, what does is made visible.

use std::borrow::Cow;
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

/// A text to show to a person, in which [control characters](is_control) and characters without a
/// width are written as JSON escapes them; line breaks and tabs stay.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(must_be_escaped) {
        return Cow::Borrowed(text);
    }
    // All of these are in the first plane, so one escape is enough.
    let escape = |c: char| match must_be_escaped(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(escape).collect())
}

fn must_be_escaped(c: char) -> bool {
    (is_control(c) && !matches!(c, '\n' | '\t')) || has_no_width(c)
}

/// Whether a character is neither seen nor changes what is next to it. The joiners are not among
/// these: emoji and several scripts need them.
fn has_no_width(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_made_visible() {
        assert_eq!(visible("a\tb\nשלום 👩‍🚀"), "a\tb\nשלום 👩‍🚀");
        let tricky = "a\u{1b}[2J\u{202e}b\u{200b}c\u{feff}\r";
        assert_eq!(visible(tricky), r"a\u001b[2J\u202eb\u200bc\ufeff\u000d");
    }

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
