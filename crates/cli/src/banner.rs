//! The banner of a server that has started: lines for people, or, with a JSON log, one line of
//! JSON. It is printed whatever the level of the log is.

use serde_json::{Map, Value, json};
use tidegate_store::{Clock, WallClock};

use crate::args::LogFormat;
use crate::output::Output;

/// What a server that has started tells.
pub(crate) struct Banner {
    /// What it is and where.
    heading: String,
    /// The rest, by name. A name may occur several times.
    facts: Vec<(&'static str, String)>,
}

impl Banner {
    pub(crate) const fn new(heading: String) -> Self {
        Self { heading, facts: Vec::new() }
    }

    /// Adds a fact.
    pub(crate) fn add(&mut self, name: &'static str, fact: impl Into<String>) {
        self.facts.push((name, fact.into()));
    }

    pub(crate) fn print(&self, format: LogFormat, output: &Output) {
        match format {
            LogFormat::Text => {
                output.print_status(&self.heading);
                for (name, fact) in &self.facts {
                    output.print_status(&format!("  {name:<10} {fact}"));
                }
            }
            LogFormat::Json => output.print_status(&self.json().to_string()),
        }
    }

    fn json(&self) -> Value {
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), json!(WallClock.now().to_string()));
        line.insert("level".to_owned(), json!("INFO"));
        line.insert("message".to_owned(), json!(self.heading));
        for (name, _) in &self.facts {
            let same = self.facts.iter().filter(|(other, _)| other == name);
            let facts: Vec<&str> = same.map(|(_, fact)| fact.as_str()).collect();
            line.insert((*name).to_owned(), json!(facts.join("; ")));
        }
        Value::Object(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_a_json_log_the_banner_is_one_line_of_json() {
        let mut banner = Banner::new("tidegate serves http://127.0.0.1:7400".to_owned());
        banner.add("store", "memory:");
        banner.add("upstream", "a");
        banner.add("upstream", "b");
        let line = banner.json();
        assert_eq!(
            ["level", "message", "store", "upstream"].map(|name| line[name].as_str().unwrap()),
            ["INFO", "tidegate serves http://127.0.0.1:7400", "memory:", "a; b"]
        );
        assert!(line["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
        assert!(!line.to_string().contains('\n'));
    }
}
