//! Whether a path stays below the upstream's base URL. It is joined to that as text, so everything that a URL
//! parser could read as another host, or as a way up, is refused here.

/// Longest path with its query, in bytes.
pub const PATH_LEN_MAX: usize = 8 * 1024;

/// Says what is wrong with a path, if anything is.
///
/// # Errors
/// A sentence.
pub fn validate(path: &str) -> Result<(), String> {
    if path.len() > PATH_LEN_MAX {
        return Err(format!("The path is {} bytes long; the most is {PATH_LEN_MAX}.", path.len()));
    }
    if !path.starts_with('/') {
        return Err("The path must start with / and is taken below the upstream's base URL.".into());
    }
    if path.starts_with("//") {
        return Err("The path must not start with //, which names another host.".into());
    }
    if path.chars().any(char::is_control) {
        return Err("The path holds a control character; write it in percent-encoding.".into());
    }
    if path.contains('\\') {
        return Err("The path holds a backslash; write it as %5C.".into());
    }
    if path.contains('#') {
        return Err("The path holds a fragment, which is never sent; write # as %23.".into());
    }
    if climbs_out(path.split('?').next().unwrap_or_default()) {
        return Err("The path leads out of the upstream's base URL with its .. segments.".into());
    }
    Ok(())
}

/// Whether the dot segments ever lead above where the path starts. Encoded dots and slashes count as what they
/// stand for, since some servers read them so.
fn climbs_out(path: &str) -> bool {
    let plain = path.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    let mut depth = 0_i64;
    for segment in plain.split('/').skip(1) {
        match segment {
            ".." => depth -= 1,
            // An empty segment is a step for some servers and none for others: the smaller count is the safe one.
            "." | "" => {}
            _ => depth += 1,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn usual_paths_pass() {
        for path in [
            "/",
            "/a/b",
            "/a/../b",
            "/a/./b/",
            "/@me",
            "/a?x=//y&z=../..",
            "/a:80/b",
            "/ä b",
            "/a..b/...",
            "/%20",
        ] {
            assert_eq!(validate(path), Ok(()), "{path}");
        }
    }

    /// No path leads to another host or above the base.
    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let long = format!("/{}", "x".repeat(PATH_LEN_MAX));
        let paths = [
            "",
            "x",
            "http://evil",
            "https:/evil",
            "@evil",
            "?x",
            "//evil",
            "///evil",
            "/\\evil",
            "\\\\evil",
            "/a\\..",
            "/a#b",
            "/\t/evil",
            "/a\r\nHost: evil",
            "/\0",
            "/..",
            "/../x",
            "/a/../../x",
            "/%2e%2E/x",
            "/.%2e/x",
            "/a/..%2f../x",
            "/a/..%5C..%5Cx",
            "/a//../../x",
            "/\u{85}x",
            &long,
        ];
        for path in paths {
            assert!(validate(path).is_err(), "{path}");
        }
    }

    proptest! {
        /// Whatever passes stays on the host and below the base, by the URL parser that is really used.
        #[test]
        fn what_passes_stays_below_the_base(path in "/([a-z.@:/?%\\\\#]|%2e|%2f|\\.\\.|\\PC){0,24}") {
            if validate(&path).is_ok() {
                let url = reqwest::Url::parse(&format!("http://host:81/base{path}")).unwrap();
                prop_assert_eq!(url.host_str(), Some("host"));
                prop_assert_eq!(url.port(), Some(81));
                prop_assert!(url.path().starts_with("/base/"), "{}", url);
            }
        }
    }
}
