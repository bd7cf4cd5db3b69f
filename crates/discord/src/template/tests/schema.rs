//! The JSON Schema for editors agrees with the reader.

use serde_json::{Value, json};

use crate::permission;
use crate::template::node::{self, Node};
use crate::template::{ChannelType, FIELDS, Template, node::Value as Yaml};

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../../examples/guilds/template.schema.json")).unwrap()
}

/// Converts YAML to JSON as the editor's validator sees it.
fn json(node: &Node) -> Value {
    match &node.value {
        Yaml::List(items) => Value::Array(items.iter().map(json).collect()),
        Yaml::Map(fields) => fields.iter().map(|(key, _, node)| (key.clone(), json(node))).collect(),
        Yaml::Scalar(text, true) => json!(text),
        Yaml::Scalar(text, false) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
    }
}

fn is_valid(text: &str) -> bool {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    validator.is_valid(&json(&node::read(text).unwrap()))
}

/// OPS-19: the schema has exactly the fields that the reader knows, and the same types and
/// permissions.
#[test]
fn ops_19_the_schema_has_the_fields_that_are_read() {
    let schema = schema();
    for (mapping, fields) in FIELDS {
        let known = &schema["$defs"][mapping];
        let mut names: Vec<_> = known["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut fields = fields.to_vec();
        names.sort_unstable();
        fields.sort_unstable();
        assert_eq!(names, fields, "{mapping}");
        assert_eq!(known["additionalProperties"], json!(false), "{mapping}");
    }
    let words: Vec<_> = ChannelType::ALL.iter().map(|(_, word, _)| *word).collect();
    assert_eq!(schema["$defs"]["channel"]["properties"]["type"]["enum"], json!(words));
    let names: Vec<_> = permission::NAMES.iter().map(|(name, _)| *name).collect();
    assert_eq!(schema["$defs"]["permission"]["enum"], json!(names));
}

/// OPS-19: the examples are valid for the schema and the reader; unknown or wrong fields are valid
/// for neither.
#[test]
fn ops_19_schema_and_reader_agree() {
    for good in [
        include_str!("../../../../../examples/guilds/small.yaml"),
        include_str!("../../../../../examples/guilds/large.yaml"),
        "{}",
    ] {
        assert!(is_valid(good) && Template::read("t", good).is_ok());
    }
    for bad in [
        "colour: red",
        "roles: [{key: a, name: A, colour: '#ffffff'}]",
        "roles: [{key: a b, name: A}]",
        "roles: [{key: a}]",
        "roles: [{key: a, name: A, color: red}]",
        "roles: [{key: a, name: A, hoist: 1}]",
        "roles: [{key: a, name: A, permissions: [VIEW_CHANNELS]}]",
        "roles: [{key: a, name: A, permissions: [SPEAK, SPEAK]}]",
        "roles: {key: a, name: A}",
        "categories: [{key: a, name: A, topic: T}]",
        "channels: [{key: a, name: A, type: thread}]",
        "channels: [{key: a, name: A, slow_mode: 21601}]",
        "channels: [{key: a, name: A, overwrites: [{role: '@here', deny: [SPEAK]}]}]",
        "channels: [{key: a, name: A, overwrites: [], same_overwrites_as: a}]",
        "channels: [{key: c, name: C}]\nmessages: [{key: a, channel: c}]",
        "prefix: ''",
    ] {
        assert!(!is_valid(bad), "the schema takes {bad}");
        assert!(Template::read("t", bad).is_err(), "the reader takes {bad}");
    }
}
