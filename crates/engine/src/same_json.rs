//! Whether two JSON texts say the same: objects whatever the order of their fields, numbers and strings however they are
//! written. Numbers are compared exactly, by their digits. An object that has a field twice means what its reader makes
//! of it, so it is the same as nothing but its own text.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Whether both are JSON and of the same value.
pub(crate) fn is_same_json(one: &[u8], other: &[u8]) -> bool {
    let read = |text| serde_json::from_slice::<&RawValue>(text).ok();
    matches!((read(one), read(other)), (Some(one), Some(other)) if is_same(one.get(), other.get()))
}

fn is_same(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let first = |text: &str| text.bytes().next().unwrap_or_default();
    match (first(one), first(other)) {
        (b'{', b'{') => match (fields(one), fields(other)) {
            (Some(one), Some(other)) => {
                one.len() == other.len()
                    && one.iter().zip(&other).all(|((name, value), (other_name, other))| {
                        name == other_name && is_same(value.get(), other.get())
                    })
            }
            _ => false,
        },
        (b'[', b'[') => match (items(one), items(other)) {
            (Some(one), Some(other)) => {
                one.len() == other.len()
                    && one.iter().zip(&other).all(|(one, other)| is_same(one.get(), other.get()))
            }
            _ => false,
        },
        (b'"', b'"') => {
            let text = |json| serde_json::from_str::<String>(json).ok();
            text(one).is_some_and(|one| text(other) == Some(one))
        }
        (b'-' | b'0'..=b'9', b'-' | b'0'..=b'9') => {
            decimal(one).is_some_and(|one| decimal(other) == Some(one))
        }
        _ => false,
    }
}

/// The fields of an object; `None` when one of them is there twice.
fn fields(object: &str) -> Option<BTreeMap<String, &RawValue>> {
    struct Fields<'a>(Option<BTreeMap<String, &'a RawValue>>);

    impl<'a> serde::Deserialize<'a> for Fields<'a> {
        fn deserialize<D: serde::Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
            struct Once;
            impl<'a> serde::de::Visitor<'a> for Once {
                type Value = Fields<'a>;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'a>>(self, mut map: A) -> Result<Fields<'a>, A::Error> {
                    let (mut fields, mut is_twice) = (BTreeMap::new(), false);
                    while let Some((name, value)) = map.next_entry::<String, &'a RawValue>()? {
                        is_twice |= fields.insert(name, value).is_some();
                    }
                    Ok(Fields((!is_twice).then_some(fields)))
                }
            }
            from.deserialize_map(Once)
        }
    }
    serde_json::from_str::<Fields<'_>>(object).ok()?.0
}

fn items(list: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(list).ok()
}

/// A number as its sign, its digits without zeros at either end, and the power of ten of the last of them.
fn decimal(number: &str) -> Option<(bool, String, i64)> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (number, 0),
    };
    let is_negative = mantissa.starts_with('-');
    let (whole, fraction) =
        mantissa.trim_start_matches('-').split_once('.').unwrap_or((mantissa.trim_start_matches('-'), ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    let power = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(zeros)?;
    let significant = significant.trim_start_matches('0');
    if significant.is_empty() {
        return Some((false, String::new(), 0));
    }
    Some((is_negative, significant.to_owned(), power))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn same(one: &str, other: &str) -> bool {
        let forth = is_same_json(one.as_bytes(), other.as_bytes());
        assert_eq!(forth, is_same_json(other.as_bytes(), one.as_bytes()), "{one} {other}");
        forth
    }

    /// OPS-7: what is written otherwise and means the same is the same, to the last digit.
    #[test]
    fn ops_7_json_is_compared_by_value() {
        for (one, other) in [
            (r#"{"a":1,"b":[true,null]}"#, "{ \"b\" : [ true , null ],\n\"a\":1 }"),
            (r#""A\/é""#, r#""\u0041/\u00e9""#),
            ("1", "1.0"),
            ("100", "1e2"),
            ("0.10", "1E-1"),
            ("-0", "0.00"),
            ("123456789012345678901234567890", "123456789012345678901234567890.0"),
            (r#"{"a":{}}"#, r#"{"\u0061":{ }}"#),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
            (r#"{"a":1}"#, r#"{"A":1}"#),
            ("[1,2]", "[2,1]"),
            ("1", "-1"),
            ("1", "\"1\""),
            ("9007199254740993", "9007199254740992"),
            ("0.1", "0.10000000000000001"),
            ("1e999999999999999999999", "1e999999999999999999998"),
            ("null", "false"),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{"a":1,"a":2}"#, r#"{ "a":1,"a":2}"#),
            ("[1", "[1 "),
            ("", ""),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            "[a-c\"\\\\é]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]{1,2}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        /// Two texts are the same exactly when a parser makes the same of them.
        #[test]
        fn it_agrees_with_a_parser(one in value(), other in value()) {
            let (compact, pretty) = (one.to_string(), serde_json::to_string_pretty(&one).unwrap());
            prop_assert!(same(&compact, &pretty));
            prop_assert_eq!(same(&pretty, &other.to_string()), one == other);
        }
    }
}
