//! Values with a unit: times such as 90s or 1h, sizes such as 8MiB, and switches that are true or
//! false.

use std::time::Duration;

use toml::de::DeValue;

use super::problem::ConfigProblem;
use super::section::Section;
use super::value::{RawConfigValue, type_mismatch, value_or_problem};

const TIMES: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
const SIZES: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// Parses a time with its unit: `500ms`, `90s`, `10m`, `1h`, `7d`.
///
/// # Errors
/// A message that describes the syntax.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("It must be a time such as 500ms, 90s, 10m, 1h or 7d, not {:?}.", truncate(text));
    parse_measure(text, &TIMES).map(Duration::from_millis).ok_or_else(wrong)
}

/// Formats a time in the largest unit that leaves no remainder.
#[must_use]
pub fn format_duration(time: Duration) -> String {
    let ms = time.as_millis();
    let fits = |(_, worth): &&(&str, u64)| ms > 0 && ms.is_multiple_of(u128::from(*worth));
    match TIMES.iter().rev().find(fits) {
        Some((unit, worth)) => format!("{}{unit}", ms / u128::from(*worth)),
        None => format!("{}s", ms / 1_000),
    }
}

fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || format!("It must be a size such as 512B, 64KiB or 8MiB, not {:?}.", truncate(text));
    parse_measure(text, &SIZES).and_then(|size| usize::try_from(size).ok()).ok_or_else(wrong)
}

fn truncate(text: &str) -> String {
    text.chars().take(40).collect()
}

fn parse_measure(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, worth) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*worth)
}

impl Section<'_> {
    /// Reads a time with its unit.
    pub(super) fn duration(
        &mut self,
        key: &'static str,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<Duration> {
        self.parse_text(key, parse_duration, problems)
    }

    /// Reads a size with its unit.
    pub(super) fn size(&mut self, key: &'static str, problems: &mut Vec<ConfigProblem>) -> Option<usize> {
        self.parse_text(key, parse_size, problems)
    }

    /// Reads one of some words, and returns its meaning.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<T> {
        let read = |text: &str| {
            let words: Vec<_> = choices.iter().map(|(word, _)| format!("{word:?}")).collect();
            let found = choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
            found.ok_or_else(|| format!("It must be {}, not {:?}.", words.join(" or "), truncate(text)))
        };
        self.parse_text(key, read, problems)
    }

    fn parse_text<T>(
        &mut self,
        key: &'static str,
        make: impl Fn(&str) -> Result<T, String>,
        problems: &mut Vec<ConfigProblem>,
    ) -> Option<T> {
        let found = self.text(key, problems)?;
        make(&found.value).map_err(|message| problems.push(found.problem(message))).ok()
    }

    /// Reads true or false.
    pub(super) fn switch(&mut self, key: &'static str, problems: &mut Vec<ConfigProblem>) -> Option<bool> {
        let found = self.find(key)?;
        let value = match &found.value {
            RawConfigValue::Value(DeValue::Boolean(value)) => Ok(*value),
            RawConfigValue::Text(text) => {
                text.parse().map_err(|_| format!("It must be true or false, not {:?}.", truncate(text)))
            }
            RawConfigValue::Value(other) => Err(type_mismatch("true or false", other)),
        };
        value_or_problem(found, value, problems).map(|found| found.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_need_their_unit() {
        for (text, ms) in
            [("500ms", 500), ("90s", 90_000), ("10m", 600_000), ("1h", 3_600_000), ("7d", 604_800_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)));
            assert_eq!(format_duration(Duration::from_millis(ms)), text);
        }
        assert_eq!(
            (format_duration(Duration::ZERO), format_duration(Duration::from_secs(86_400))),
            ("0s".into(), "1d".into())
        );
        for wrong in
            ["", "1", "s", "-1s", "1.5h", "1 h", "1H", "99999999999999999999s", "18446744073709551615d"]
        {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert_eq!((parse_size("8MiB"), parse_size("1B")), (Ok(8 << 20), Ok(1)));
        assert!(["", "8", "8MB", "8 MiB"].iter().all(|wrong| parse_size(wrong).is_err()));
    }
}
