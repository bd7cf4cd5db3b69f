//! Keys with several values: lists of numbers, and tables whose keys are the user's own.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

use toml::de::DeValue;

use super::problem::ConfigProblem;
use super::section::Section;
use super::value::{LocatedValue, RawConfigValue, out_of_bounds, type_mismatch, value_or_problem};

impl Section<'_> {
    /// Reads a list of whole numbers within bounds.
    pub(super) fn integers<N: TryFrom<u64> + PartialOrd + Display>(
        &mut self,
        key: &'static str,
        bounds: RangeInclusive<N>,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<LocatedValue<Vec<N>>> {
        let found = self.find(key)?;
        let number = |item: &DeValue<'_>| match item {
            DeValue::Integer(number) => {
                let parsed = u64::from_str_radix(number.as_str(), number.radix()).ok();
                let parsed = parsed.and_then(|number| N::try_from(number).ok());
                let parsed = parsed.filter(|number| bounds.contains(number));
                parsed.ok_or_else(|| out_of_bounds(&bounds, number.as_str()))
            }
            other => Err(type_mismatch("a list of whole numbers", other)),
        };
        let value = match &found.value {
            RawConfigValue::Value(DeValue::Array(items)) => {
                items.iter().map(|item| number(item.get_ref())).collect()
            }
            RawConfigValue::Value(other) => Err(type_mismatch("a list of whole numbers", other)),
            RawConfigValue::Text(_) => Err("It cannot be set from the environment.".to_owned()),
        };
        value_or_problem(found, value, problems)
    }

    /// Reads a table of texts, whatever its keys are. The example is shown when it is none.
    pub(super) fn texts_by_name(
        &mut self,
        key: &'static str,
        example: &str,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<LocatedValue<BTreeMap<String, String>>> {
        let found = self.find(key)?;
        let wrong = |got: &DeValue<'_>| type_mismatch(&format!("a table of texts, such as {example}"), got);
        let value = match &found.value {
            RawConfigValue::Value(DeValue::Table(table)) => table
                .iter()
                .map(|(name, value)| match value.get_ref() {
                    DeValue::String(text) => Ok((name.get_ref().to_string(), text.to_string())),
                    other => Err(wrong(other)),
                })
                .collect(),
            RawConfigValue::Value(other) => Err(wrong(other)),
            RawConfigValue::Text(_) => Err("It cannot be set from the environment.".to_owned()),
        };
        value_or_problem(found, value, problems)
    }
}
