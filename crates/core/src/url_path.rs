//! Detects URL paths whose `..` segments climb above their starting point. Everything that is sent
//! below a base path uses this one rule.

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
