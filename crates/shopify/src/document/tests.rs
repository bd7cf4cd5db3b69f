//! Documents as clients write them, and invalid texts.

use proptest::prelude::*;

use super::*;

#[test]
fn everything_a_document_may_hold_is_read() {
    let text = r#"
        # a comment, with { braces
        query Orders($n: Int! = 5, $ids: [ID!]! = ["a", "b"], $o: X = {a: [1]}) @live {
          mine: orders(first: $n, after: null, query: "a \" }", sort: ID) @include(if: true) {
            edges { cursor node { ...O } }
            ... on Thing @skip(if: $x) { id }
            ... { b(first: 10) { nodes { id } } }
          }
        }
        fragment O on Order { id note(long: """ a "quoted" \""" } """) total(scale: -1.5e3) }
    "#;
    let document = Document::parse(text).unwrap();
    let operation = document.operation(Some("Orders")).unwrap();
    assert_eq!((operation.operation_type, operation.name), (OperationType::Query, Some("Orders")));
    assert_eq!(
        operation.defaults,
        [("n", ArgumentValue::Number(5)), ("ids", ArgumentValue::List(2)), ("o", ArgumentValue::Other)]
    );
    let fields = document.fields(&operation.selection).unwrap();
    assert_eq!(fields.len(), 1);
    assert_eq!((fields[0].name, fields[0].argument("first")), ("orders", Some(ArgumentValue::Variable("n"))));
    assert_eq!(fields[0].directives, ["include"]);
    assert!(text[..fields[0].head_end].ends_with("sort: ID)"));
    let inner: Vec<_> =
        document.fields(&fields[0].selection).unwrap().iter().map(|field| field.name).collect();
    assert_eq!(inner, ["edges", "id", "b"]);
    assert_eq!(document.fragment("O").unwrap().on, "Order");
}

#[test]
fn the_operation_that_is_meant_is_found() {
    let document = Document::parse("query A { a } mutation B { b }").unwrap();
    assert_eq!(document.operation(Some("B")).unwrap().operation_type, OperationType::Mutation);
    assert!(document.operation(None).is_none() && document.operation(Some("C")).is_none());
    assert_eq!(
        Document::parse("{ a }").unwrap().operation(None).unwrap().operation_type,
        OperationType::Query
    );
}

#[test]
fn what_is_no_document_is_none() {
    let deep = "{a".repeat(70) + &"}".repeat(70);
    let lists = format!("{{ a(b: {}{}) }}", "[".repeat(70), "]".repeat(70));
    let long = " ".repeat(DOCUMENT_LEN_MAX) + "{ a }";
    for text in [
        "",
        "{",
        "}",
        "{ a",
        "query",
        "query {",
        "{ a(b }",
        "{ a(b:) }",
        "type A { b: C }",
        "fragment F on A { b }",
        "{ a(b: \"c) }",
        "{ a(b: \"\"\"c\") }",
        "{ a. }",
        "{ }",
        "{ a { } }",
        "{ ... { } }",
        "{ a(b: -) }",
        "{ é }",
        "hello",
        &deep,
        &lists,
        &long,
    ] {
        assert!(Document::parse(text).is_none(), "{text}");
    }
}

#[test]
fn fragments_that_are_missing_or_go_in_circles_are_noticed() {
    for text in [
        "{ ...A }",
        "{ ...A } fragment A on Q { ...A }",
        "{ ...A } fragment A on Q { x ...B } fragment B on Q { ...A }",
    ] {
        let document = Document::parse(text).unwrap();
        assert!(document.fields(&document.operations[0].selection).is_none(), "{text}");
    }
}

proptest! {
    /// No text is too odd: it is parsed, or `None`.
    #[test]
    fn no_text_is_too_odd(text in r##"([{}()\[\]:$@!="#.,0-9-]|\.\.\.|a|on|query|fragment|\\|\PC| |\n){0,60}"##) {
        if let Some(document) = Document::parse(&text) {
            for operation in &document.operations {
                let _ = document.fields(&operation.selection);
            }
        }
    }
}
