//! Kinds of remote workers.

use super::parse;

/// A kind of remote workers has limits like an upstream, and a name of its own.
#[test]
fn a_kind_is_read_or_refused() {
    let kind = "[[kind]]\nname = \"resize\"\nworker = \"remote\"\n";
    let limit = "[[kind.limit]]\nname = \"slots\"\nat_once = 2\n";
    let config = parse(&format!("{kind}{limit}")).unwrap();
    let read = &config.remote_kinds[0];
    assert_eq!((read.name.as_str(), read.repeatable, read.limits.len()), ("resize", true, 1));
    let upstream = "[[upstream]]\nname = \"resize\"\nbase_url = \"http://localhost\"\n";
    for (text, said) in [
        (kind.replace("remote", "local"), "It must be \\\"remote\\\"."),
        (kind.replace("resize", "a b"), "A name is 1 to 64 letters"),
        ("[[kind]]\nname = \"resize\"\n".to_owned(), "The key worker is missing."),
        (format!("{kind}{kind}"), "There is another one called"),
        (format!("{upstream}{kind}"), "There is an upstream called"),
        (format!("{}repeatable = true\n", kind.replace("resize", "http")), "This kind is built in"),
        (format!("{kind}retries = 3\n"), "There is no such key"),
    ] {
        let problems = format!("{:?}", parse(&text).unwrap_err());
        assert!(problems.contains(said), "{text}: {problems}");
    }
}
