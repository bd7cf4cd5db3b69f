//! A JSON object of known fields, each kept as the raw text that was sent: one pass over the body,
//! nothing copied. An error inside one object is reported for that object and does not stop the
//! parsing of the others.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use tidegate_core::text::is_control;

use super::problems::RequestProblems;
use crate::error::{Error, ErrorCode};

/// The fields of an object.
pub(crate) struct Fields<'a, const N: usize> {
    /// The raw values, in the order of the known names.
    pub values: [Option<&'a RawValue>; N],
    /// The problems of their names.
    pub problems: RequestProblems,
}

impl<const N: usize> Fields<'_, N> {
    /// The fields of an empty object.
    pub(crate) fn empty() -> Self {
        Self { values: [None; N], problems: RequestProblems::default() }
    }
}

/// The fields, or why it is not an object.
pub(crate) type ParsedObject<'a, const N: usize> = Result<Fields<'a, N>, Error>;

/// Parses a body that is one object with only these fields. Unknown and duplicate fields are among
/// the problems.
///
/// # Errors
/// When it is not JSON or not an object.
pub(crate) fn read<'a, const N: usize>(
    body: &'a [u8],
    names: &'static [&'static str; N],
) -> ParsedObject<'a, N> {
    let mut from = serde_json::Deserializer::from_slice(body);
    let fields = ObjectVisitor(names).deserialize(&mut from).map_err(|error| malformed(body, &error))?;
    from.end().map_err(|error| malformed(body, &error))?;
    fields
}

/// Parses a body that is one object with one field, a list of objects with only these fields.
///
/// # Errors
/// When the body as a whole is not that. The problems of one object are reported with that object.
pub(crate) fn read_list<'a, const N: usize>(
    body: &'a [u8],
    list: &'static str,
    most: usize,
    names: &'static [&'static str; N],
) -> Result<Vec<ParsedObject<'a, N>>, Error> {
    let mut from = serde_json::Deserializer::from_slice(body);
    let mut found = None;
    let outer = ListBodyVisitor { list, most, names, found: &mut found };
    let problem = outer.deserialize(&mut from).map_err(|error| malformed(body, &error))?;
    from.end().map_err(|error| malformed(body, &error))?;
    match (problem, found) {
        (Some(problem), _) => Err(problem),
        (None, Some(items)) => Ok(items),
        (None, None) => Err(missing(list)),
    }
}

/// The error for a missing field.
pub(crate) fn missing(field: &str) -> Error {
    Error::new(ErrorCode::Malformed, format!("The field {field:?} is missing.")).field(field)
}

/// The beginning of the message about a body that is not JSON.
pub(crate) const NOT_JSON: &str = "The body is not JSON:";

/// What some programs write before text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The error for a body that is not JSON.
fn malformed(body: &[u8], error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    let what = match std::str::from_utf8(body) {
        Ok("") => "it is empty".to_owned(),
        Ok(_) if body.starts_with(BYTE_ORDER_MARK) => {
            "it starts with a byte order mark; send it without".to_owned()
        }
        Ok(_) if error.is_eof() => format!("it ends too early at line {line} column {column}"),
        Ok(_) => format!("something is wrong at line {line} column {column}"),
        Err(wrong) => format!("byte {} and what follows is not UTF-8", wrong.valid_up_to() + 1),
    };
    Error::new(ErrorCode::Malformed, format!("{NOT_JSON} {what}."))
}

fn not_an_object(got: &str) -> Error {
    Error::new(ErrorCode::Malformed, format!("An object is expected, not {got}."))
}

/// Truncates a name from outside for a message.
pub(crate) fn truncate_name(name: &str) -> String {
    name.chars().filter(|c| !is_control(*c)).take(64).collect()
}

fn unknown<const N: usize>(name: &str, names: &[&str; N]) -> Error {
    let name = truncate_name(name);
    let known = match names.len() {
        0 => "there are none".to_owned(),
        _ => format!("the fields are {}", names.join(", ")),
    };
    Error::new(ErrorCode::Malformed, format!("There is no field {name:?}; {known}.")).field(name)
}

struct ObjectVisitor<const N: usize>(&'static [&'static str; N]);

impl<'a, const N: usize> DeserializeSeed<'a> for ObjectVisitor<N> {
    type Value = ParsedObject<'a, N>;

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

/// A value of another type is a result too, not a parse error: it gets our own message, and the
/// other members of a list are still parsed.
macro_rules! refuse_scalars {
    ($refuse:expr) => {
        refuse_scalars!($refuse, visit_bool(bool) = "true or false", visit_i64(i64) = "a number",
            visit_u64(u64) = "a number", visit_f64(f64) = "a number", visit_str(&str) = "a string");

        fn visit_unit<E: serde::de::Error>(self) -> Result<Self::Value, E> {
            Ok($refuse(&self, "null"))
        }
    };
    ($refuse:expr, $($visit:ident($value:ty) = $word:literal),*) => {
        $(fn $visit<E: serde::de::Error>(self, _: $value) -> Result<Self::Value, E> {
            Ok($refuse(&self, $word))
        })*
    };
}

impl<'a, const N: usize> Visitor<'a> for ObjectVisitor<N> {
    type Value = ParsedObject<'a, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    refuse_scalars!(|_: &Self, got: &str| Err(not_an_object(got)));

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Err(not_an_object("a list")))
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Fields::empty();
        while let Some(FieldName(name)) = map.next_key()? {
            let place = self.0.iter().position(|known| *known == name);
            let slot = place.and_then(|place| fields.values.get_mut(place));
            match slot {
                Some(slot) if slot.is_none() => *slot = Some(map.next_value()?),
                Some(_) => {
                    map.next_value::<IgnoredAny>()?;
                    let message = format!("The field {name:?} appears twice.");
                    fields
                        .problems
                        .add(Error::new(ErrorCode::Malformed, message).field(truncate_name(&name)));
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                    fields.problems.add(unknown(&name, self.0));
                }
            }
        }
        Ok(Ok(fields))
    }
}

/// A key, borrowed unless it contains escapes.
struct FieldName<'a>(Cow<'a, str>);

impl<'a> Deserialize<'a> for FieldName<'a> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        struct FieldNameVisitor;
        impl<'a> Visitor<'a> for FieldNameVisitor {
            type Value = FieldName<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: serde::de::Error>(self, text: &'a str) -> Result<FieldName<'a>, E> {
                Ok(FieldName(Cow::Borrowed(text)))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<FieldName<'a>, E> {
                Ok(FieldName(Cow::Owned(text.to_owned())))
            }
        }
        from.deserialize_str(FieldNameVisitor)
    }
}

struct ListBodyVisitor<'v, 'a, const N: usize> {
    list: &'static str,
    most: usize,
    names: &'static [&'static str; N],
    found: &'v mut Option<Vec<ParsedObject<'a, N>>>,
}

impl<'a, const N: usize> DeserializeSeed<'a> for ListBodyVisitor<'_, 'a, N> {
    type Value = Option<Error>;

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'a, const N: usize> Visitor<'a> for ListBodyVisitor<'_, 'a, N> {
    type Value = Option<Error>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    refuse_scalars!(|_: &Self, got: &str| Some(not_an_object(got)));

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(not_an_object("a list")))
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut problem = None;
        while let Some(FieldName(name)) = map.next_key()? {
            if name == self.list && self.found.is_none() {
                let (items, error) =
                    map.next_value_seed(ListVisitor { list: self.list, most: self.most, names: self.names })?;
                *self.found = Some(items);
                problem = problem.or(error);
            } else {
                map.next_value::<IgnoredAny>()?;
                problem.get_or_insert_with(|| unknown(&name, &[self.list]));
            }
        }
        Ok(problem)
    }
}

struct ListVisitor<const N: usize> {
    list: &'static str,
    most: usize,
    names: &'static [&'static str; N],
}

impl<'a, const N: usize> DeserializeSeed<'a> for ListVisitor<N> {
    type Value = (Vec<ParsedObject<'a, N>>, Option<Error>);

    fn deserialize<D: Deserializer<'a>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<const N: usize> ListVisitor<N> {
    fn not_a_list<'a>(&self, got: &str) -> (Vec<ParsedObject<'a, N>>, Option<Error>) {
        let message = format!("The field {:?} must be a list, not {got}.", self.list);
        (Vec::new(), Some(Error::new(ErrorCode::Malformed, message).field(self.list)))
    }
}

impl<'a, const N: usize> Visitor<'a> for ListVisitor<N> {
    type Value = (Vec<ParsedObject<'a, N>>, Option<Error>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    refuse_scalars!(Self::not_a_list);

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.not_a_list("an object"))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while items.len() < self.most {
            match seq.next_element_seed(ObjectVisitor(self.names))? {
                Some(item) => items.push(item),
                None => return Ok((items, None)),
            }
        }
        let mut count = items.len();
        while seq.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        let (list, most) = (self.list, self.most);
        let too_long = || {
            let message = format!("There are {count} {list} in the batch; the maximum is {most}.");
            Error::new(ErrorCode::BatchTooLong, message).field(list)
        };
        let problem = (count > most).then(too_long);
        Ok((items, problem))
    }
}
