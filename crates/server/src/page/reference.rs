//! The API reference as a page, rendered only from the OpenAPI document that tools get.

use std::sync::LazyLock;

use axum::response::Html;
use maud::{Markup, html};
use serde_json::Value;

use super::document;
use crate::api::openapi::DOCUMENT;

/// The page, which never changes while the server runs.
static PAGE: LazyLock<String> = LazyLock::new(|| document("API", false, &content(&DOCUMENT)).into_string());

pub(crate) async fn show() -> Html<&'static str> {
    Html(PAGE.as_str())
}

fn content(all: &Value) -> Markup {
    let sections = all["tags"].as_array().into_iter().flatten();
    html! {
        h1 { "The API" }
        p.sentence { (text(&all["info"]["description"])) }
        p { (text(&all["components"]["securitySchemes"]["bearer"]["description"])) }
        p { "For tools: " a href="/openapi.json" { "openapi.json" } ". " a href="#shapes" { "All shapes" } "." }
        @for section in sections {
            h2 { (text(&section["name"])) }
            p.quiet { (text(&section["description"])) }
            @for (path, method, call) in calls(all, text(&section["name"])) { (one_call(all, path, method, call)) }
        }
        h2 #shapes { "Shapes" }
        @for (name, shape) in fields(&all["components"]["schemas"]) { (one_shape(name, shape)) }
    }
}

/// The calls of a section.
fn calls<'a>(all: &'a Value, section: &str) -> Vec<(&'a str, &'a str, &'a Value)> {
    let calls = fields(&all["paths"])
        .flat_map(|(path, item)| fields(item).map(move |(method, call)| (path, method, call)));
    calls.filter(|(_, _, call)| call["tags"][0] == section).collect()
}

fn one_call(all: &Value, path: &str, method: &str, call: &Value) -> Markup {
    let scope = call["security"][0]["bearer"][0].as_str();
    let parameters = call["parameters"].as_array().filter(|parameters| !parameters.is_empty());
    let body = &call["requestBody"]["content"]["application/json"]["schema"];
    html! {
        section id=(text(&call["operationId"])) {
            h3 { code { (method.to_uppercase()) " " (path) } }
            p {
                (text(&call["summary"])) ". " (text(&call["description"])) " "
                @if let Some(scope) = scope { span.quiet { "Scope " (scope) "." } }
            }
            @if let Some(parameters) = parameters { (table("Parameters", parameters.iter().map(|said| parameter(resolve_reference(all, said))).collect())) }
            @if !body.is_null() { p { "Takes " (kind(body)) "." } }
            dl {
                @for (status, answer) in fields(&call["responses"]) {
                    @let answer = resolve_reference(all, answer);
                    dt { (status) }
                    dd {
                        (text(&answer["description"]))
                        @for (media, content) in fields(&answer["content"]) {
                            " " @if media == "application/json" { (kind(&content["schema"])) } @else { code { (media) } }
                        }
                    }
                }
            }
        }
    }
}

fn parameter(said: &Value) -> FieldRow<'_> {
    FieldRow {
        name: text(&said["name"]).to_owned(),
        kind: html! { (text(&said["in"])) ", " (kind(&said["schema"])) },
        must: said["required"] == true,
        says: text(&said["description"]),
    }
}

fn one_shape(name: &str, shape: &Value) -> Markup {
    let choices = shape["oneOf"].as_array().map_or_else(|| vec![shape], |shapes| shapes.iter().collect());
    html! {
        section id={ "shape-" (name) } {
            h3 { (name) }
            p { (text(&shape["description"])) }
            @for choice in choices {
                @let caption = text(&choice["description"]);
                (table(caption, rows(choice, "")))
            }
        }
    }
}

/// The fields of a shape, and those of the objects inside it as `outer.inner`.
fn rows<'a>(shape: &'a Value, before: &str) -> Vec<FieldRow<'a>> {
    let needed = shape["required"].as_array();
    let mut all = Vec::new();
    for (name, field) in fields(&shape["properties"]) {
        let must = needed.is_some_and(|needed| needed.iter().any(|one| one == name));
        let name = format!("{before}{name}");
        let inner = rows(field, &format!("{name}."));
        all.push(FieldRow { name, kind: kind(field), must, says: text(&field["description"]) });
        all.extend(inner);
    }
    all
}

struct FieldRow<'a> {
    name: String,
    kind: Markup,
    must: bool,
    says: &'a str,
}

fn table(caption: &str, rows: Vec<FieldRow<'_>>) -> Markup {
    html! {
        table.cards {
            caption.hidden { (caption) }
            thead { tr { th.c-name scope="col" { "Name" } th.c-left scope="col" { "Type" } th.c-state scope="col" { "Required" } th scope="col" { "Meaning" } } }
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { code { (row.name) } }
                        td.why { (row.kind) }
                        td data-label=[row.must.then_some("Required")] { @if row.must { "yes" } }
                        td.why { (row.says) }
                    }
                }
            }
        }
    }
}

/// Describes the type of a value in a few words.
fn kind(schema: &Value) -> Markup {
    if let Some(name) = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next()) {
        return html! { a href={ "#shape-" (name) } { (name) } };
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        return html! { @for (index, choice) in choices.iter().enumerate() { @if index > 0 { " or " } (kind(choice)) } };
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
        return html! { (words.join(", ")) };
    }
    let names = match &schema["type"] {
        Value::Array(names) => names.iter().map(text).collect::<Vec<_>>().join(" or "),
        Value::String(name) => name.clone(),
        _ => "any JSON".to_owned(),
    };
    let bounds = match (&schema["minimum"], &schema["maximum"]) {
        (Value::Number(least), Value::Number(most)) => format!(", {least} to {most}"),
        (Value::Number(least), _) => format!(", at least {least}"),
        _ => String::new(),
    };
    html! { (names) (bounds) @if !schema["items"].is_null() { " of " (kind(&schema["items"])) } }
}

/// Resolves a reference; returns any other value itself.
fn resolve_reference<'a>(all: &'a Value, value: &'a Value) -> &'a Value {
    let target = value["$ref"].as_str().and_then(|target| all.pointer(target.strip_prefix('#')?));
    target.unwrap_or(value)
}

fn fields(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, field)| (name.as_str(), field))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
