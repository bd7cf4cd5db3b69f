//! One table of the file, read key by key. A key is looked up in the environment, then in the file,
//! then in the defaults; keys that are present but were never looked up are refused as unknown.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{ConfigProblem, SourceLocation, SourceText};
use super::value::{LocatedValue, RawConfigValue, out_of_bounds, type_mismatch, value_or_problem};

/// Looks up an environment variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Keys that would hold a secret.
const SECRET: [&str; 7] = ["token", "value", "secret", "password", "key", "api_key", "authorization"];

pub(super) struct Section<'a> {
    pub key_path: String,
    /// The location of the table.
    pub at: SourceLocation,
    pub table: Option<&'a DeTable<'a>>,
    pub source: SourceText<'a>,
    pub defaults: Option<(&'a DeTable<'a>, SourceText<'a>)>,
    pub env: Option<Environment<'a>>,
    pub asked: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The whole file over its defaults.
    pub(super) fn of_root(
        (table, source): (&'a DeTable<'a>, SourceText<'a>),
        defaults: (&'a DeTable<'a>, SourceText<'a>),
        env: Environment<'a>,
    ) -> Self {
        Section {
            key_path: String::new(),
            at: source.location(0),
            table: Some(table),
            source,
            defaults: Some(defaults),
            env: Some(env),
            asked: Vec::new(),
        }
    }

    fn key_path_of(&self, key: &str) -> String {
        if self.key_path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.key_path) }
    }

    /// A problem of the section as a whole.
    pub(super) fn problem(&self, message: impl Into<String>) -> ConfigProblem {
        ConfigProblem { at: self.at.clone(), key_path: self.key_path.clone(), message: message.into() }
    }

    /// Whether the value of a key is a table.
    pub(super) fn has_table(&self, key: &str) -> bool {
        self.table
            .and_then(|table| table.get(key))
            .is_some_and(|value| matches!(value.get_ref(), DeValue::Table(_)))
    }

    /// Whether the key is present, valid or not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    /// The text value of a key, if it is a text.
    pub(super) fn peek(&self, key: &str) -> Option<&str> {
        match self.table?.get(key)?.get_ref() {
            DeValue::String(text) => Some(text.as_ref()),
            _ => None,
        }
    }

    /// A problem at the location of a key: in the file, at the variable that sets it, or else at
    /// the section.
    pub(super) fn problem_at(&self, key: &str, message: impl Into<String>) -> ConfigProblem {
        let (place, message) = (self.key_path_of(key), message.into());
        if let Some((variable, _)) = self.environment_override(&place) {
            return ConfigProblem { at: SourceLocation::outside_file(variable), key_path: place, message };
        }
        let value = self.table.and_then(|table| table.get(key));
        let at = value.map_or_else(|| self.at.clone(), |value| self.source.location(value.span().start));
        let place = if value.is_some() { place } else { self.key_path.clone() };
        ConfigProblem { at, key_path: place, message }
    }

    /// The environment variable of a key, and its value.
    fn environment_override(&self, place: &str) -> Option<(String, String)> {
        let variable = format!("TIDEGATE_{}", place.replace('.', "_").to_ascii_uppercase());
        let text = self.env?(&variable)?;
        Some((variable, text))
    }

    pub(super) fn find(&mut self, key: &'static str) -> Option<LocatedValue<RawConfigValue<'a>>> {
        self.asked.push(key);
        let place = self.key_path_of(key);
        if let Some((variable, text)) = self.environment_override(&place) {
            return Some(LocatedValue {
                value: RawConfigValue::Text(text),
                at: SourceLocation::outside_file(variable),
                key_path: place,
            });
        }
        let own = self.table.and_then(|table| Some((table.get(key)?, self.source)));
        let (value, source) =
            own.or_else(|| self.defaults.and_then(|(table, source)| Some((table.get(key)?, source))))?;
        Some(LocatedValue {
            value: RawConfigValue::Value(value.get_ref()),
            at: source.location(value.span().start),
            key_path: place,
        })
    }

    /// Reads a text.
    pub(super) fn text(
        &mut self,
        key: &'static str,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<LocatedValue<String>> {
        let found = self.find(key)?;
        let value = match &found.value {
            RawConfigValue::Text(text) => Ok(text.clone()),
            RawConfigValue::Value(DeValue::String(text)) => Ok(text.to_string()),
            RawConfigValue::Value(other) => Err(type_mismatch("a text in quotes", other)),
        };
        value_or_problem(found, value, problems)
    }

    /// Reads a whole number within bounds.
    pub(super) fn integer(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<u64>,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<u64> {
        let found = self.find(key)?;
        let number = match &found.value {
            RawConfigValue::Text(text) => Ok((text.clone(), 10)),
            RawConfigValue::Value(DeValue::Integer(number)) => {
                Ok((number.as_str().to_owned(), number.radix()))
            }
            RawConfigValue::Value(other) => Err(type_mismatch("a whole number", other)),
        };
        let value = number.and_then(|(text, radix)| {
            let parsed = u64::from_str_radix(&text.replace('_', ""), radix).ok();
            parsed.filter(|number| bounds.contains(number)).ok_or_else(|| out_of_bounds(&bounds, &text))
        });
        value_or_problem(found, value, problems).map(|found| found.value)
    }

    /// Reads a number within bounds.
    pub(super) fn number(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<f64>,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<LocatedValue<f64>> {
        let found = self.find(key)?;
        let number = match &found.value {
            RawConfigValue::Text(text) => Ok(text.as_str()),
            RawConfigValue::Value(DeValue::Integer(number)) if number.radix() == 10 => Ok(number.as_str()),
            RawConfigValue::Value(DeValue::Float(number)) => Ok(number.as_str()),
            RawConfigValue::Value(other) => Err(type_mismatch("a number", other)),
        };
        let value = number.and_then(|text| {
            let parsed = text.parse::<f64>().ok();
            parsed.filter(|number| bounds.contains(number)).ok_or_else(|| out_of_bounds(&bounds, text))
        });
        value_or_problem(found, value, problems)
    }

    /// Reads true or false.
    pub(super) fn flag(&mut self, key: &'static str, problems: &mut Vec<ConfigProblem>) -> Option<bool> {
        let found = self.find(key)?;
        let value = match &found.value {
            RawConfigValue::Text(text) => text.parse().map_err(|_| "It must be true or false.".to_owned()),
            RawConfigValue::Value(DeValue::Boolean(value)) => Ok(*value),
            RawConfigValue::Value(other) => Err(type_mismatch("true or false", other)),
        };
        value_or_problem(found, value, problems).map(|found| found.value)
    }

    /// Reads one of a few words.
    pub(super) fn word<T: Copy>(
        &mut self,
        key: &'static str,
        words: &[(&str, T)],
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<T> {
        let found = self.text(key, problems)?;
        let meant = words.iter().find(|(word, _)| *word == found.value).map(|(_, value)| *value);
        if meant.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            problems.push(found.problem(format!("It must be one of {}.", known.join(", "))));
        }
        meant
    }

    /// Reads a list of texts.
    pub(super) fn texts(
        &mut self,
        key: &'static str,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<LocatedValue<Vec<String>>> {
        let found = self.find(key)?;
        let value = match &found.value {
            RawConfigValue::Value(DeValue::Array(items)) => items
                .iter()
                .map(|item| match item.get_ref() {
                    DeValue::String(text) => Ok(text.to_string()),
                    other => Err(type_mismatch("a list of texts", other)),
                })
                .collect(),
            RawConfigValue::Value(other) => Err(type_mismatch("a list of texts", other)),
            RawConfigValue::Text(_) => Err("It cannot be set from the environment.".to_owned()),
        };
        value_or_problem(found, value, problems)
    }

    /// Returns a table inside this one, present or not.
    pub(super) fn section(&mut self, key: &'static str, problems: &mut Vec<ConfigProblem>) -> Section<'a> {
        self.asked.push(key);
        let found = self.table.and_then(|table| table.get(key));
        let table = found.and_then(|value| match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        });
        let place = self.key_path_of(key);
        if let (Some(value), None) = (found, table) {
            let message = format!("This must be a section: [{place}].");
            problems.push(ConfigProblem {
                at: self.source.location(value.span().start),
                key_path: place.clone(),
                message,
            });
        }
        let defaults = self.defaults.and_then(|(table, source)| match table.get(key)?.get_ref() {
            DeValue::Table(table) => Some((table, source)),
            _ => None,
        });
        let at =
            found.map_or_else(|| self.source.location(0), |value| self.source.location(value.span().start));
        Section {
            key_path: place,
            at,
            table,
            source: self.source,
            defaults,
            env: self.env,
            asked: Vec::new(),
        }
    }

    /// Returns the tables of a list inside this one: `[[key]]`.
    pub(super) fn sections(
        &mut self,
        key: &'static str,
        problems: &mut Vec<ConfigProblem>,
    ) -> Vec<Section<'a>> {
        self.asked.push(key);
        let place = self.key_path_of(key);
        let Some(found) = self.table.and_then(|table| table.get(key)) else { return Vec::new() };
        let refuse = |value: &Spanned<DeValue<'_>>, place: &str| {
            let message = format!("This must be a list of sections: [[{key}]].");
            ConfigProblem {
                at: self.source.location(value.span().start),
                key_path: place.to_owned(),
                message,
            }
        };
        let DeValue::Array(items) = found.get_ref() else {
            problems.push(refuse(found, &place));
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let (place, at) = (format!("{place}[{index}]"), self.source.location(item.span().start));
            let DeValue::Table(table) = item.get_ref() else {
                problems.push(refuse(item, &place));
                continue;
            };
            sections.push(Section::of_file(place, at, table, self.source));
        }
        sections
    }

    /// Returns the tables of a table inside this one, by their names: `[key.NAME]`.
    pub(super) fn named_sections(
        &mut self,
        key: &'static str,
        problems: &mut Vec<ConfigProblem>,
    ) -> Vec<(String, Section<'a>)> {
        let outer = self.section(key, problems);
        let mut sections = Vec::new();
        for (name, value) in outer.table.into_iter().flatten() {
            let (name, key_path) = (name.get_ref().to_string(), outer.key_path_of(name.get_ref()));
            let at = self.source.location(value.span().start);
            let DeValue::Table(table) = value.get_ref() else {
                let message = format!("This must be a section: [{key_path}].");
                problems.push(ConfigProblem { at, key_path, message });
                continue;
            };
            sections.push((name, Section::of_file(key_path, at, table, self.source)));
        }
        sections
    }

    /// A table that has neither defaults nor variables.
    fn of_file(key_path: String, at: SourceLocation, table: &'a DeTable<'a>, source: SourceText<'a>) -> Self {
        Self { key_path, at, table: Some(table), source, defaults: None, env: None, asked: Vec::new() }
    }

    /// Reports every key that was never looked up.
    pub(super) fn finish(self, problems: &mut Vec<ConfigProblem>) {
        for (key, _) in self.table.into_iter().flatten() {
            let name = key.get_ref().as_ref();
            if self.asked.contains(&name) {
                continue;
            }
            let message = if SECRET.contains(&name) {
                "Secrets are not allowed in the file. Put it into an environment variable and name that variable in a key that ends in _env.".to_owned()
            } else {
                let mut known = self.asked.clone();
                known.sort_unstable();
                format!("There is no such key; known keys: {}.", known.join(", "))
            };
            let at = self.source.location(key.span().start);
            problems.push(ConfigProblem { at, key_path: self.key_path_of(name), message });
        }
    }
}
