//! How Discord normalizes names. Its documentation only gives the length of a name; the rest is
//! what people observed.

/// Longest name, in characters.
pub const NAME_LEN_MAX: usize = 100;

/// ASCII that is removed from the names of text and announcement channels; `.`, `-` and `_` stay.
const DROPPED: &str = "!\"#$%&'()*+,/:;<=>?@[\\]^`{|}~";

/// Normalizes the name of a text or announcement channel: lower case, dashes for spaces, one dash
/// for several, no ASCII punctuation. Letters of any script, emoji and other symbols stay.
#[must_use]
pub fn slug(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for letter in name.trim().chars() {
        let letter = if letter.is_whitespace() { '-' } else { letter };
        if DROPPED.contains(letter) || letter == '-' && slug.ends_with('-') {
            continue;
        }
        slug.extend(letter.to_lowercase());
    }
    slug
}

/// Normalizes any other name: trims the spaces around it.
#[must_use]
pub fn trimmed(name: &str) -> String {
    name.trim().to_owned()
}

/// Returns whether a name has an allowed length.
#[must_use]
pub fn fits(name: &str) -> bool {
    (1..=NAME_LEN_MAX).contains(&name.chars().count())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// OPS-13: what is left of a managed name.
    #[test]
    fn ops_13_names_become_what_was_seen() {
        for (asked, made) in [
            ("General Chat", "general-chat"),
            ("  a \u{2009} b--c  ", "a-b-c"),
            ("what's up? (now!)", "whats-up-now"),
            ("priemnaya-intake", "priemnaya-intake"),
            ("v1.2_x", "v1.2_x"),
            ("Приёмная Émile", "приёмная-émile"),
            ("〚SSO〛 Desk 〔Key〕", "〚sso〛-desk-〔key〕"),
            ("🎉・party ？", "🎉・party-？"),
            ("!?", ""),
        ] {
            assert_eq!(slug(asked), made, "{asked}");
        }
        assert_eq!(trimmed("  〚SSO〛 Desk  〔Key〕 "), "〚SSO〛 Desk  〔Key〕");
        assert!(fits(&"ж".repeat(100)) && !fits(&"ж".repeat(101)) && !fits(""));
    }

    proptest! {
        /// OPS-13: a normalized name stays as it is when it is sent again, and has nothing in it
        /// that would be removed.
        #[test]
        fn ops_13_a_slug_is_its_own_slug(name in "\\PC{0,60}|[ -~\u{2009}\t]{0,60}") {
            let made = slug(&name);
            prop_assert!(slug(&made) == made, "{made}");
            prop_assert!(!made.contains("--") && !made.contains(char::is_whitespace), "{made}");
            prop_assert!(made.chars().all(|c| !DROPPED.contains(c)), "{made}");
        }
    }
}
