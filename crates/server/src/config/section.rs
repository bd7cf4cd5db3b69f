//! One table of the file, read key by key. A key is looked up in the environment, then in the file, then in the
//! defaults; whatever is there and was never asked for is refused.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, Source, Spot};
use super::value::{Found, Raw, keep, out_of, wanted};

/// Looks a variable of the environment up.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Keys of later versions: told apart from keys that are wrong.
const LATER: [&str; 2] = ["model", "provider"];
/// Keys that would hold a secret.
const SECRET: [&str; 7] = ["token", "value", "secret", "password", "key", "api_key", "authorization"];

pub(super) struct Section<'a> {
    pub place: String,
    /// Where the table begins.
    pub at: Spot,
    pub table: Option<&'a DeTable<'a>>,
    pub source: Source<'a>,
    pub defaults: Option<(&'a DeTable<'a>, Source<'a>)>,
    pub env: Option<Environment<'a>>,
    pub asked: Vec<&'static str>,
}

impl<'a> Section<'a> {
    fn place_of(&self, key: &str) -> String {
        if self.place.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place) }
    }

    /// A problem of the section as a whole.
    pub(super) fn problem(&self, message: impl Into<String>) -> Problem {
        Problem { at: self.at.clone(), place: self.place.clone(), message: message.into() }
    }

    /// Whether the key is there, well written or not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// The text behind a key, if it is one.
    pub(super) fn peek(&self, key: &str) -> Option<&str> {
        match self.table?.get(key)?.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            _ => None,
        }
    }

    /// Where a key stands or which variable says it, or the section when neither does.
    pub(super) fn problem_at(&self, key: &str, message: impl Into<String>) -> Problem {
        let (place, message) = (self.place_of(key), message.into());
        if let Some((variable, _)) = self.said_outside(&place) {
            return Problem { at: Spot::outside(variable), place, message };
        }
        let value = self.table.and_then(|table| table.get(key));
        let at = value.map_or_else(|| self.at.clone(), |value| self.source.at(value.span().start));
        let place = if value.is_some() { place } else { self.place.clone() };
        Problem { at, place, message }
    }

    /// The variable of the environment for a place, and what it says.
    fn said_outside(&self, place: &str) -> Option<(String, String)> {
        let variable = format!("TIDEGATE_{}", place.replace('.', "_").to_ascii_uppercase());
        let text = self.env?(&variable)?;
        Some((variable, text))
    }

    pub(super) fn find(&mut self, key: &'static str) -> Option<Found<Raw<'a>>> {
        self.asked.push(key);
        let place = self.place_of(key);
        if let Some((variable, text)) = self.said_outside(&place) {
            return Some(Found { value: Raw::Text(text), at: Spot::outside(variable), place });
        }
        let own = self.table.and_then(|table| Some((table.get(key)?, self.source)));
        let (value, source) =
            own.or_else(|| self.defaults.and_then(|(table, source)| Some((table.get(key)?, source))))?;
        Some(Found { value: Raw::Value(value.get_ref()), at: source.at(value.span().start), place })
    }

    /// A text.
    pub(super) fn text(&mut self, key: &'static str, problems: &mut Vec<Problem>) -> Option<Found<String>> {
        let found = self.find(key)?;
        let value = match &found.value {
            Raw::Text(text) => Ok(text.clone()),
            Raw::Value(DeValue::String(text)) => Ok(text.to_string()),
            Raw::Value(other) => Err(wanted("a text in quotes", other)),
        };
        keep(found, value, problems)
    }

    /// A whole number within bounds.
    pub(super) fn integer(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<u64>,
        problems: &mut Vec<Problem>,
    ) -> Option<u64> {
        let found = self.find(key)?;
        let number = match &found.value {
            Raw::Text(text) => Ok((text.clone(), 10)),
            Raw::Value(DeValue::Integer(number)) => Ok((number.as_str().to_owned(), number.radix())),
            Raw::Value(other) => Err(wanted("a whole number", other)),
        };
        let value = number.and_then(|(text, radix)| {
            let parsed = u64::from_str_radix(&text.replace('_', ""), radix).ok();
            parsed.filter(|number| bounds.contains(number)).ok_or_else(|| out_of(&bounds, &text))
        });
        keep(found, value, problems).map(|found| found.value)
    }

    /// A number within bounds.
    pub(super) fn number(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<f64>,
        problems: &mut Vec<Problem>,
    ) -> Option<Found<f64>> {
        let found = self.find(key)?;
        let number = match &found.value {
            Raw::Text(text) => Ok(text.as_str()),
            Raw::Value(DeValue::Integer(number)) if number.radix() == 10 => Ok(number.as_str()),
            Raw::Value(DeValue::Float(number)) => Ok(number.as_str()),
            Raw::Value(other) => Err(wanted("a number", other)),
        };
        let value = number.and_then(|text| {
            let parsed = text.parse::<f64>().ok();
            parsed.filter(|number| bounds.contains(number)).ok_or_else(|| out_of(&bounds, text))
        });
        keep(found, value, problems)
    }

    /// True or false.
    pub(super) fn flag(&mut self, key: &'static str, problems: &mut Vec<Problem>) -> Option<bool> {
        let found = self.find(key)?;
        let value = match &found.value {
            Raw::Text(text) => text.parse().map_err(|_| "It must be true or false.".to_owned()),
            Raw::Value(DeValue::Boolean(value)) => Ok(*value),
            Raw::Value(other) => Err(wanted("true or false", other)),
        };
        keep(found, value, problems).map(|found| found.value)
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
        problems: &mut Vec<Problem>,
    ) -> Option<T> {
        let found = self.text(key, problems)?;
        let meant = words.iter().find(|(word, _)| *word == found.value).map(|(_, value)| *value);
        if meant.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            problems.push(found.problem(format!("It must be one of {}.", known.join(", "))));
        }
        meant
    }

    /// A list of texts.
    pub(super) fn texts(
        &mut self,
        key: &'static str,
        problems: &mut Vec<Problem>,
    ) -> Option<Found<Vec<String>>> {
        let found = self.find(key)?;
        let value = match &found.value {
            Raw::Value(DeValue::Array(items)) => items
                .iter()
                .map(|item| match item.get_ref() {
                    DeValue::String(text) => Ok(text.to_string()),
                    other => Err(wanted("a list of texts", other)),
                })
                .collect(),
            Raw::Value(other) => Err(wanted("a list of texts", other)),
            Raw::Text(_) => Err("It cannot be set from the environment.".to_owned()),
        };
        keep(found, value, problems)
    }

    /// A table inside this one, whether it is there or not.
    pub(super) fn section(&mut self, key: &'static str, problems: &mut Vec<Problem>) -> Section<'a> {
        self.asked.push(key);
        let found = self.table.and_then(|table| table.get(key));
        let table = found.and_then(|value| match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        });
        let place = self.place_of(key);
        if let (Some(value), None) = (found, table) {
            let message = format!("This must be a section: [{place}].");
            problems.push(Problem { at: self.source.at(value.span().start), place: place.clone(), message });
        }
        let defaults = self.defaults.and_then(|(table, source)| match table.get(key)?.get_ref() {
            DeValue::Table(table) => Some((table, source)),
            _ => None,
        });
        let at = found.map_or_else(|| self.source.at(0), |value| self.source.at(value.span().start));
        Section { place, at, table, source: self.source, defaults, env: self.env, asked: Vec::new() }
    }

    /// The tables of a list inside this one: `[[key]]`.
    pub(super) fn sections(&mut self, key: &'static str, problems: &mut Vec<Problem>) -> Vec<Section<'a>> {
        self.asked.push(key);
        let place = self.place_of(key);
        let Some(found) = self.table.and_then(|table| table.get(key)) else { return Vec::new() };
        let refuse = |value: &Spanned<DeValue<'_>>, place: &str| {
            let message = format!("This must be a list of sections: [[{key}]].");
            Problem { at: self.source.at(value.span().start), place: place.to_owned(), message }
        };
        let DeValue::Array(items) = found.get_ref() else {
            problems.push(refuse(found, &place));
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let (place, at) = (format!("{place}[{index}]"), self.source.at(item.span().start));
            let DeValue::Table(table) = item.get_ref() else {
                problems.push(refuse(item, &place));
                continue;
            };
            let (table, asked) = (Some(table), Vec::new());
            sections.push(Section {
                place,
                at,
                table,
                source: self.source,
                defaults: None,
                env: None,
                asked,
            });
        }
        sections
    }

    /// Refuses every key that nobody asked for.
    pub(super) fn finish(self, problems: &mut Vec<Problem>) {
        for (key, _) in self.table.into_iter().flatten() {
            let name = key.get_ref().as_ref();
            if self.asked.contains(&name) {
                continue;
            }
            let message = if LATER.contains(&name) {
                "This is not in this version.".to_owned()
            } else if SECRET.contains(&name) {
                "A secret is never in the file. Put it into a variable of the environment and name that in a key that ends in _env.".to_owned()
            } else {
                let mut known = self.asked.clone();
                known.sort_unstable();
                format!("There is no such key; here may stand {}.", known.join(", "))
            };
            let at = self.source.at(key.span().start);
            problems.push(Problem { at, place: self.place_of(name), message });
        }
    }
}
