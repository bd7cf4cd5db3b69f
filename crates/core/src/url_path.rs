//! The spellings of a URL path: whether its `..` segments climb above their starting point, which
//! everything that is sent below a base path is checked for, and the one spelling under which equal
//! paths are remembered.

use std::borrow::Cow;

use crate::fingerprint::hex;

/// The maximum number of times a path is decoded: some servers decode again what was already
/// decoded.
const DECODED_MAX: usize = 4;

/// Whether a path, without its query, climbs above its starting point. Anything that some server
/// treats as a dot, a slash or a separator counts as one: percent-encoding, also of itself,
/// backslashes, and parameters after `;`.
#[must_use]
pub fn escapes_base(path: &str) -> bool {
    if !path.contains("..") && !path.contains('%') {
        return false;
    }
    let plain = decoded(path);
    let mut depth = 0_usize;
    for segment in plain.split(['/', '\\']) {
        match segment.split(';').next().unwrap_or_default() {
            ".." if depth == 0 => return true,
            ".." => depth -= 1,
            // Some servers count an empty segment as a step, others do not: the smaller count is
            // the safe one.
            "." | "" => {}
            _ => depth += 1,
        }
    }
    false
}

/// Returns a path in which characters that need no encoding are not encoded and the others are in
/// upper case. Its segments stay as they are: for services that do not resolve any.
#[must_use]
pub fn literal(path: &str) -> Cow<'_, str> {
    if path.contains('%') { Cow::Owned(without_needless_encoding(path)) } else { Cow::Borrowed(path) }
}

/// Returns the spelling that paths which lead to the same place have in common: characters that
/// need no encoding are not encoded, the others are in upper case, and there are no dot segments
/// and no empty segments but the last. An encoded slash stays encoded: a service may tell it from a
/// slash.
#[must_use]
pub fn normalized(path: &str) -> Cow<'_, str> {
    if !path.contains('%') && !path.contains("//") && !path.contains("/.") {
        return Cow::Borrowed(path);
    }
    let plain = without_needless_encoding(path);
    let mut segments: Vec<&str> = Vec::new();
    let (mut ends_open, mut parts) = (false, plain.split('/').peekable());
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "" | "." => ends_open = is_last,
            ".." => {
                segments.pop();
                ends_open = is_last;
            }
            part => segments.push(part),
        }
    }
    let end = if ends_open && !segments.is_empty() { "/" } else { "" };
    Cow::Owned(format!("/{}{end}", segments.join("/")))
}

fn without_needless_encoding(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        plain.push_str(before);
        let encoded = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match encoded.filter(|_| after.as_bytes()[0] != b'+') {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                plain.push(char::from(byte));
                rest = &after[2..];
            }
            Some(byte) => {
                plain.push('%');
                plain.push_str(&hex(&[byte]).to_ascii_uppercase());
                rest = &after[2..];
            }
            None => {
                plain.push('%');
                rest = after;
            }
        }
    }
    plain + rest
}

/// Decodes the characters that matter to this check: dots, slashes, backslashes and semicolons.
fn decoded(path: &str) -> String {
    let mut plain = path.to_ascii_lowercase();
    for _ in 0..DECODED_MAX {
        if !plain.contains('%') {
            break;
        }
        for (code, character) in [("%2e", "."), ("%2f", "/"), ("%5c", "\\"), ("%3b", ";"), ("%25", "%")] {
            plain = plain.replace(code, character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_stay_do_not_climb() {
        for path in [
            "",
            "/",
            "/a/b",
            "/a/../b",
            "/a/b/../../c",
            "/a/./b/",
            "/a..b/...",
            "/..a/a..",
            "/%20",
            "/100%",
            "/a/%2e%2e/b",
            "/a;v=1/..;x/b",
            "/.. ",
        ] {
            assert!(!escapes_base(path), "{path}");
        }
    }

    #[test]
    fn equal_paths_have_one_spelling() {
        for (path, common) in [
            ("/pay", "/pay"),
            ("/%70ay", "/pay"),
            ("//pay", "/pay"),
            ("/pay/.", "/pay/"),
            ("/pay/./x", "/pay/x"),
            ("/a/../pay", "/pay"),
            ("/a/%2e%2E/pay", "/pay"),
            ("/pay/", "/pay/"),
            ("/pay//", "/pay/"),
            ("/..", "/"),
            ("/", "/"),
            ("/a%2fb", "/a%2Fb"),
            ("/%c3%a9%20", "/%C3%A9%20"),
            ("/100%", "/100%"),
            ("/%+1/%4", "/%+1/%4"),
            ("/%é", "/%é"),
            ("/.well-known/x", "/.well-known/x"),
        ] {
            assert_eq!(normalized(path), common, "{path}");
            assert_eq!(normalized(common), common, "{path}");
        }
    }

    #[test]
    fn a_literal_path_keeps_its_segments() {
        for (path, common) in [
            ("/%70ay", "/pay"),
            ("/a//b", "/a//b"),
            ("/a/./b/../c/", "/a/./b/../c/"),
            ("/a/%2e/b", "/a/./b"),
            ("/a%2fb", "/a%2Fb"),
        ] {
            assert_eq!(literal(path), common, "{path}");
            assert_eq!(literal(common), common, "{path}");
        }
    }

    #[test]
    fn paths_that_climb_are_found_however_they_are_spelled() {
        for path in [
            "..",
            "/..",
            "/../x",
            "/a/../../x",
            "/./../x",
            "/%2e%2E/x",
            "/.%2e/x",
            "/%252e%252e/x",
            "/%25252e./x",
            "/a/..%2f../x",
            "/a/..%252F../x",
            "/..\\x",
            "/a/..%5C..%5Cx",
            "/a//../../x",
            "/..;/x",
            "/a/..;v=1/%2e%2e%3bv/x",
        ] {
            assert!(escapes_base(path), "{path}");
        }
    }
}
