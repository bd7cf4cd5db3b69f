//! All problems of a template are reported at once, with their positions; and the examples and
//! their schema are valid.

mod schema;

use super::*;
use crate::bounds::{CHANNELS_PER_CATEGORY_MAX, ROLES_MAX};

/// Returns the problems as shown on a terminal.
fn told(text: &str) -> String {
    Template::read("t.yaml", text).expect_err("it is wrong").to_string()
}

fn lines(text: &str) -> Vec<String> {
    told(text).lines().map(str::to_owned).collect()
}

/// OPS-19: all problems are reported at once, each with file, line and column.
#[test]
fn ops_19_all_problems_are_told_at_once() {
    insta::assert_snapshot!(told(include_str!("tests/wrong.yaml")));
}

/// OPS-19: a file that is not YAML, or not one mapping, is also reported with its position.
#[test]
fn ops_19_what_is_no_template_has_its_place() {
    assert_eq!(told(""), "t.yaml:1:1: the template is empty.");
    assert!(told("roles:\n  - key: [a\n").starts_with("t.yaml:"));
    assert_eq!(told("- a\n"), "t.yaml:1:1: this must be a mapping, but is a list.");
    assert!(told("roles: []\n---\nroles: []\n").contains("a second document"));
    assert!(told("roles: !x []\n").contains("tags"));
    assert_eq!(told("? [a]\n: b\n"), "t.yaml:1:3: a key is a single word.");
    assert!(told(&"[".repeat(40)).contains("nested more than 16 levels deep"));
    assert_eq!(told("roles: [1]\n"), "t.yaml:1:9: roles[0]: this must be a mapping, but is a single value.");
}

/// OPS-19: an alias that contains itself, and aliases that grow without end, are refused and not
/// followed.
#[test]
fn ops_19_aliases_are_bounded() {
    assert!(told("roles: &a [*a]\n").contains("refers to itself"));
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let before = format!("*a{}", level - 1);
        let items = vec![before; 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert!(told(&bomb).contains("more than 200000 values"), "{}", told(&bomb));
    let shared =
        "roles:\n  - {key: a, name: A, permissions: &p [SPEAK]}\n  - {key: b, name: B, permissions: *p}\n";
    assert_eq!(Template::read("t", shared).unwrap().roles[1].permissions.to_string(), "SPEAK");
}

/// OPS-19: channels that take each other's overwrites form a cycle, reported once.
#[test]
fn ops_19_a_circle_is_told() {
    let text = "channels:\n  - {key: a, name: A, same_overwrites_as: b}\n  - {key: b, name: B, same_overwrites_as: c}\n  - {key: c, name: C, same_overwrites_as: b}\n";
    assert_eq!(lines(text), ["t.yaml:3:43: channels[1].same_overwrites_as: this is a cycle: b → c → b."]);
}

/// OPS-19: the whole template is checked against Discord's bounds: 250 roles, 500 channels, 50 in a
/// category.
#[test]
fn ops_19_counts_are_held_against_discords() {
    let roles =
        |count: usize| (0..count).map(|n| format!("  - {{key: r{n}, name: R}}\n")).collect::<String>();
    assert!(Template::read("t", &format!("roles:\n{}", roles(ROLES_MAX - 1))).is_ok());
    let text = format!("roles:\n{}", roles(ROLES_MAX));
    assert_eq!(
        lines(&text),
        ["t.yaml:251:5: roles[249]: 251 roles with @everyone; a guild has at most 250."]
    );
    let full = CHANNELS_PER_CATEGORY_MAX;
    let text = |count: usize, category: &str| {
        let channel = |n| format!("  - {{key: c{n}, name: C, {category}}}\n");
        format!(
            "categories:\n  - {{key: k, name: K}}\nchannels:\n{}",
            (0..count).map(channel).collect::<String>()
        )
    };
    assert!(Template::read("t", &text(full, "category: k")).is_ok());
    assert_eq!(
        lines(&text(full + 1, "category: k")),
        ["t.yaml:2:5: categories[0]: 51 channels in k; a category has at most 50."]
    );
    assert!(Template::read("t", &text(499, "nsfw: true")).is_ok());
    assert_eq!(
        lines(&text(500, "nsfw: true")),
        ["t.yaml:4:3: channels: 501 channels with the categories; a guild has at most 500."]
    );
}

/// OPS-13, OPS-19: the length of a name includes what makes it managed; that of a message its
/// marker.
#[test]
fn ops_13_bounds_count_the_decoration() {
    // 〚SSO〛 and two spaces and 〔k〕 are ten characters.
    let role = |length: usize| format!("roles:\n  - {{key: k, name: {}}}\n", "n".repeat(length));
    assert!(Template::read("t", &role(90)).is_ok());
    assert!(told(&role(91)).contains("is 101 characters long; Discord accepts at most 100."));
    let channel = |length: usize| format!("channels:\n  - {{key: k, name: {}}}\n", "щ".repeat(length));
    assert!(Template::read("t", &channel(24)).is_ok(), "24 × shch and -k");
    assert!(told(&channel(25)).contains("is 102 characters"));
    let message = |length: usize| {
        let content = "m".repeat(length);
        format!(
            "channels:\n  - {{key: c, name: C}}\nmessages:\n  - {{key: k, channel: c, content: {content}}}\n"
        )
    };
    // A line break and -# 〔SSO:k〕 are eleven.
    assert!(Template::read("t", &message(1_989)).is_ok());
    assert!(
        told(&message(1_990))
            .contains("1990 characters; with the line that marks it there is room for 1989.")
    );
}

/// OPS-19: missing fields have their defaults, and a channel without overwrites has those of its
/// category.
#[test]
fn ops_19_defaults_and_inheritance() {
    let text = include_str!("../../../../examples/guilds/small.yaml");
    let template = Template::read("small.yaml", text).unwrap();
    assert_eq!(template.prefix, "SSO");
    let of = |key: &str| {
        let channel = template.channels.iter().find(|channel| channel.key.as_str() == key).unwrap();
        template.overwrites_of(channel).len()
    };
    assert_eq!((of("news"), of("intake"), of("desk"), of("archive")), (2, 0, 3, 3));
    assert_eq!(Template::read("t", "{}").unwrap().prefix, DEFAULT_PREFIX);
}

/// OPS-19: the examples are as large as documented.
#[test]
fn ops_19_the_large_example_is_large() {
    let text = include_str!("../../../../examples/guilds/large.yaml");
    let template = Template::read("large.yaml", text).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!((template.roles.len(), template.categories.len(), template.channels.len()), (60, 15, 200));
    assert_eq!(template.messages.len(), 186);
}
