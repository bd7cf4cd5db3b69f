//! Resolves the path of a request below an upstream's base URL, in one place and on the URL as the
//! parser reads it: what is checked is what is sent. A path that leads to another host or above the
//! base is refused, for any base.

use std::sync::LazyLock;

use tidegate_core::url_path::escapes_base;
use url::{Position, Url};

/// Longest path with its query, in bytes.
const PATH_LEN_MAX: usize = 8 * 1024;

/// A base that every path is tried on: one segment deep, so that it shows whether a path climbs.
const TRIAL: &str = "http://upstream.invalid/base";
static TRIAL_URL: LazyLock<Option<Url>> = LazyLock::new(|| Url::parse(TRIAL).ok());

const LEADS_OUT: &str = "The path leads out of the upstream's base URL.";

/// Validates a path: the same result for every base.
///
/// # Errors
/// A message that describes the problem.
pub fn validate(path: &str) -> Result<(), String> {
    let base = TRIAL_URL.as_ref().ok_or(LEADS_OUT)?;
    below(base, path).map(drop)
}

/// The path and query as they are sent, whatever the base; `None` for an invalid path.
pub(super) fn as_sent(path: &str) -> Option<String> {
    let url = below(TRIAL_URL.as_ref()?, path).ok()?;
    Some(url[Position::BeforePath..].to_owned())
}

/// Resolves a path below a base, which has neither a query nor a fragment.
///
/// # Errors
/// A message about a path that leads elsewhere.
pub fn resolve(base: &Url, path: &str) -> Result<Url, String> {
    if base.path() == "/" {
        // `..` cannot lead out of the root of a host: the trial base shows whether a path climbs.
        validate(path)?;
    }
    below(base, path)
}

fn below(base: &Url, path: &str) -> Result<Url, String> {
    refuse_text(path)?;
    let start = base.path().trim_end_matches('/');
    // Joined, not parsed as a whole: the host was parsed once, with the base.
    let joined = if start.is_empty() { base.join(path) } else { base.join(&format!("{start}{path}")) };
    let url = joined.map_err(|_| "The path does not form a URL.".to_owned())?;
    let is_same_host = url.authority() == base.authority() && url.scheme() == base.scheme();
    let rest = url.path().strip_prefix(start);
    let stays = rest.is_some_and(|rest| rest.starts_with('/') && !escapes_base(rest));
    // Some servers read a path before its dots are resolved, and some of them skip empty segments.
    let asked = path.split('?').next().unwrap_or_default();
    if is_same_host && stays && !escapes_base(asked) { Ok(url) } else { Err(LEADS_OUT.to_owned()) }
}

/// Refuses characters that a URL parser would drop or reinterpret, so that exactly the requested
/// path is sent.
fn refuse_text(path: &str) -> Result<(), String> {
    if path.len() > PATH_LEN_MAX {
        return Err(format!("The path is {} bytes long; the most is {PATH_LEN_MAX}.", path.len()));
    }
    let problem = if !path.starts_with('/') {
        "The path must start with / and is taken below the upstream's base URL."
    } else if path.starts_with("//") {
        "The path must not start with //, which names another host."
    } else if path.chars().any(char::is_control) {
        "The path holds a control character; write it in percent-encoding."
    } else if path.ends_with(' ') {
        "The path ends with a space, which is never sent; write it as %20."
    } else if path.contains('\\') {
        "The path holds a backslash; write it as %5C."
    } else if path.contains('#') {
        "The path holds a fragment, which is never sent; write # as %23."
    } else {
        return Ok(());
    };
    Err(problem.to_owned())
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
            // The URL parser trims trailing spaces, and what is left climbs.
            "/.. ",
            "/%2e%2e ",
            "/a/../..  ",
            "/..?x=1 ",
            "/x ",
            "/%252e%252e/x",
            "/..;/x",
            &long,
        ];
        for path in paths {
            assert!(validate(path).is_err(), "{path}");
        }
    }

    /// What is checked is what is sent: the same result for each base, also for one without a path.
    #[test]
    fn a_path_is_decided_alike_below_every_base() {
        let bases = ["http://host:81", "http://host:81/", "https://host/api", "https://host/api/v1/"];
        for base in bases.map(|base| Url::parse(base).unwrap()) {
            for path in ["/.. ", "/..", "/a/../../x", "/%2e%2e/x", "//evil", "/\t..", "/x ", "x", ""] {
                assert_eq!(resolve(&base, path).unwrap_err(), validate(path).unwrap_err(), "{base} {path:?}");
            }
            let url = resolve(&base, "/a/../b c?q=..").unwrap();
            assert_eq!(url.path(), format!("{}/b%20c", base.path().trim_end_matches('/')));
            assert_eq!(url.query(), Some("q=.."));
        }
    }

    proptest! {
        /// Whatever passes stays on the host and below the base, by the URL parser that is actually
        /// used.
        #[test]
        fn what_passes_stays_below_the_base(path in "/?([a-z.@:/?%;\\\\# \t]|%2e|%2f|\\.\\.|\\PC){0,24}") {
            if validate(&path).is_ok() {
                let url = Url::parse(&format!("http://host:81/base{path}")).unwrap();
                prop_assert_eq!(url.host_str(), Some("host"));
                prop_assert_eq!(url.port(), Some(81));
                prop_assert!(url.path().starts_with("/base/"), "{}", url);
            }
        }

        /// For any path, a resulting URL is on the host and below the base, and the base does not
        /// change that.
        #[test]
        fn no_path_leaves_the_base(path in "/?([a-z.@:/?%;\\\\# \t]|%2e|%2f|\\.\\.|\\PC){0,24}") {
            for base in ["http://host:81/base", "http://host:81"] {
                let resolved = resolve(&Url::parse(base).unwrap(), &path);
                prop_assert_eq!(resolved.is_ok(), validate(&path).is_ok());
                if let Ok(url) = resolved {
                    prop_assert!(url.as_str().starts_with(&format!("{base}/")), "{}", url);
                }
            }
        }
    }
}
