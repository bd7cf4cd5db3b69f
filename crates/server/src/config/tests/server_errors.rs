//! What server errors of an upstream mean.

use super::*;

/// OPS-23: what server errors mean is the dialect's default unless it is configured, and any other
/// word is refused with its location.
#[test]
fn ops_23_server_errors_are_configured_for_an_upstream() {
    let upstream = |more: &str| format!("[[upstream]]\nname = \"a\"\nbase_url = \"http://a\"\n{more}");
    let parsed = |more: &str| parse(&upstream(more)).unwrap().upstreams[0].server_errors;
    assert_eq!(parsed(""), None);
    assert_eq!(parsed("server_errors = \"unknown\""), Some(ServerErrors::Unknown));
    assert_eq!(parsed("dialect = \"discord\"\nserver_errors = \"retry\""), Some(ServerErrors::Retry));
    assert_snapshot!(wrong(&upstream("server_errors = \"maybe\"")), @r#"tidegate.toml:4:17: upstream[0].server_errors: It must be "retry" or "unknown"."#);
}
