//! Events: the code at the door and the published schemas agree.

use serde_json::{Value, json};
use tidegate_hydration::{
    ASYNC_API, DEFAULT_TENANT, ENTITY_NOT_FOUND_SCHEMA, ENTITY_UNKNOWN_SCHEMA, ENTITY_UPDATED_SCHEMA,
    EntityEvent,
};

const EXAMPLES: [(&str, &str, &str); 3] = [
    ("entity/unknown", ENTITY_UNKNOWN_SCHEMA, include_str!("../../schemas/examples/entity-unknown.json")),
    ("entity/updated", ENTITY_UPDATED_SCHEMA, include_str!("../../schemas/examples/entity-updated.json")),
    (
        "entity/not-found",
        ENTITY_NOT_FOUND_SCHEMA,
        include_str!("../../schemas/examples/entity-not-found.json"),
    ),
];

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// What the code says, and what the schema says.
fn verdicts(event: &Value, schema: &Value) -> (bool, bool) {
    let options = jsonschema::options().should_validate_formats(true);
    let validator = options.build(schema).unwrap();
    (EntityEvent::decode(event.to_string().as_bytes()).is_ok(), validator.is_valid(event))
}

/// HYD-2: the golden examples are read and written as they are.
#[test]
fn hyd_2_examples_are_read_and_written() {
    for (event, schema, example) in EXAMPLES {
        let (schema, example) = (parse(schema), parse(example));
        assert_eq!(verdicts(&example, &schema), (true, true), "{event}");
        let read = EntityEvent::decode(example.to_string().as_bytes()).unwrap();
        assert_eq!(read.name(), event);
        assert_eq!(parse(std::str::from_utf8(&read.encode()).unwrap()), example);
    }
}

/// Each member of an object taken away, and replaced by what it must not be.
fn mutations(example: &Value) -> Vec<Value> {
    let wrong = [
        json!(null),
        json!(true),
        json!(-1),
        json!(""),
        json!("nonsense"),
        json!([]),
        json!([""]),
        json!({}),
    ];
    let mut mutated = Vec::new();
    for part in ["", "/payload"] {
        for name in example.pointer(part).unwrap().as_object().unwrap().keys() {
            let mut without = example.clone();
            without.pointer_mut(part).unwrap().as_object_mut().unwrap().remove(name);
            mutated.push(without);
            for value in &wrong {
                let mut changed = example.clone();
                changed.pointer_mut(part).unwrap()[name] = value.clone();
                mutated.push(changed);
            }
            let mut long = example.clone();
            long.pointer_mut(part).unwrap()[name] = json!("x".repeat(300));
            mutated.push(long);
        }
    }
    mutated
}

/// HYD-2: whatever is missing or wrong, the door and the schema say the same.
#[test]
fn hyd_2_the_door_and_the_schema_agree() {
    let mut refused = 0;
    for (event, schema, example) in EXAMPLES {
        let schema = parse(schema);
        for changed in mutations(&parse(example)) {
            // Of another event another schema speaks.
            if changed["event"] != event {
                continue;
            }
            let (code, file) = verdicts(&changed, &schema);
            assert_eq!(code, file, "{changed}");
            refused += usize::from(!code);
        }
    }
    assert!(refused > 100, "{refused}");
}

/// HYD-2: a tenant and a version need not be named, answers need no correlation id, and fields that
/// are not known are left alone.
#[test]
fn hyd_2_the_least_that_is_accepted() {
    let least = json!({
        "event": "entity/updated",
        "payload": { "entity_type": "customer", "entity_id": "c-7", "source_module": "m", "data": {}, "x": 1 }
    });
    let read = EntityEvent::decode(least.to_string().as_bytes()).unwrap();
    assert_eq!((read.key().tenant(), read.correlation_id()), (DEFAULT_TENANT, None));
    assert_eq!(verdicts(&least, &parse(ENTITY_UPDATED_SCHEMA)), (true, true));
    let millis = json!({
        "event": "entity/not-found",
        "payload": { "entity_type": "customer", "entity_id": "c-7", "source_module": "m",
            "reason": "inaccessible", "as_of": 1_780_000_000_250_u64 }
    });
    assert_eq!(verdicts(&millis, &parse(ENTITY_NOT_FOUND_SCHEMA)), (true, true));
}

/// HYD-2: what is wrong is refused by its name, and a list is no object, whatever is in it.
#[test]
fn hyd_2_what_is_wrong_is_named() {
    let event = |payload: &str| format!(r#"{{"event":"entity/updated","payload":{payload}}}"#);
    let rest = r#""entity_type":"customer","source_module":"m","data":{}"#;
    for (text, field, problem) in [
        (event(r#"["customer","c-7","m",{"a":1}]"#), "payload", "must be an object"),
        (event("{}"), "payload.entity_type", "is missing"),
        (event(&format!(r#"{{"entity_id":7,{rest}}}"#)), "payload.entity_id", "must be a string"),
        (event(&format!(r#"{{"entity_id":"",{rest}}}"#)), "payload.entity_id", "must have 1 to 255 bytes"),
        (event(&format!(r#"{{"entity_id":"c","version":-1,{rest}}}"#)), "payload.version", "whole number"),
        (event(&format!(r#"{{"entity_id":"c","fields":["a"],{rest}}}"#)), "payload.fields", "needs"),
        (event(&format!(r#"{{"entity_id":"c","as_of":"now",{rest}}}"#)), "payload.as_of", "RFC 3339"),
        (r#"{"event":"entity/updated","tenant":1,"payload":{}}"#.to_owned(), "tenant", "must be a string"),
        (r#"{"event":"entity/deleted","payload":{}}"#.to_owned(), "event", "there is no event"),
        (r#"{"event":"entity/updated","schema_version":2}"#.to_owned(), "schema_version", "version 2"),
    ] {
        let error = EntityEvent::decode(text.as_bytes()).unwrap_err();
        assert_eq!(error.field(), Some(field), "{text}: {error}");
        assert!(error.to_string().contains(problem), "{text}: {error}");
    }
    for (text, problem) in [("not json", "not JSON"), ("[1", "not JSON"), ("[1]", "must be an object")] {
        let error = EntityEvent::decode(text.as_bytes()).unwrap_err();
        assert!(error.field().is_none() && error.to_string().contains(problem), "{text}: {error}");
    }
}

/// The AsyncAPI document names the schemas that are there, and its examples are the golden ones.
#[test]
fn the_async_api_document_agrees() {
    let document = parse(ASYNC_API);
    for (event, _, example) in EXAMPLES {
        let messages = document["components"]["messages"].as_object().unwrap();
        let message = messages.values().find(|message| message["name"] == event).unwrap();
        let file = format!("./{}.schema.json", event.replace('/', "-"));
        assert_eq!(message["payload"]["schema"]["$ref"], file);
        assert_eq!(message["examples"][0]["payload"], parse(example));
    }
}
