//! Rules for what follows a failure.

use insta::assert_snapshot;
use tidegate_core::OnFailure;

use super::{parse, wrong};

/// OPS-25: rules for failures keep their order, and problems are reported with their locations.
#[test]
fn ops_25_rules_for_failures_are_read() {
    let config = parse("[[on_failure]]\ngroup = \"shop:*\"\nkind = \"http\"\nthen = \"hold\"\n[[on_failure]]\nkind = \"shopify.bulk\"\nthen = \"skip\"").unwrap();
    let read: Vec<_> = config
        .on_failure
        .iter()
        .map(|rule| (rule.group.as_deref(), rule.kind.as_deref(), rule.on_failure))
        .collect();
    assert_eq!(
        read,
        [(Some("shop:*"), Some("http"), OnFailure::Hold), (None, Some("shopify.bulk"), OnFailure::Skip)]
    );
    assert_snapshot!(wrong("[[on_failure]]\nthen = \"stop\"\n[[on_failure]]\ngroup = \"a**\"\n[[on_failure]]\nkind = \"\"\nthen = \"hold\"\nwhen = 1"), @r#"
    tidegate.toml:1:1: on_failure[0]: A rule needs a group, a kind, or both.
    tidegate.toml:2:8: on_failure[0].then: It must be "skip" or "hold", not "stop".
    tidegate.toml:3:1: on_failure[1]: The key then is missing.
    tidegate.toml:4:9: on_failure[1].group: One * at its end stands for all groups that begin so.
    tidegate.toml:6:8: on_failure[2].kind: It must be 1 to 64 bytes long.
    tidegate.toml:8:1: on_failure[2].when: There is no such key; known keys: group, kind, then.
    "#);
}
