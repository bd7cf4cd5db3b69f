//! The filter of a list by age: how long ago an operation was accepted at least. The API knows only
//! the time.

use std::time::Duration;

use maud::{Markup, html};
use tidegate_core::Time;

use crate::edge::query::bad_parameter;
use crate::error::Result;
use crate::page::view::View;
use crate::wire::time::Timestamp;

/// An age that can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeastAge {
    /// Its name in a URL.
    word: &'static str,
    number: u64,
    /// The place of its unit among those of a language, and its seconds.
    unit: usize,
    unit_s: u64,
}

const AGES: [LeastAge; 5] = [
    LeastAge { word: "1m", number: 1, unit: 1, unit_s: 60 },
    LeastAge { word: "10m", number: 10, unit: 1, unit_s: 60 },
    LeastAge { word: "1h", number: 1, unit: 2, unit_s: 3_600 },
    LeastAge { word: "6h", number: 6, unit: 2, unit_s: 3_600 },
    LeastAge { word: "1d", number: 1, unit: 3, unit_s: 86_400 },
];

impl LeastAge {
    pub(super) fn parse(word: &str) -> Result<Self> {
        let found = AGES.into_iter().find(|age| age.word == word);
        found.ok_or_else(|| {
            let words = AGES.map(|age| age.word).join(", ");
            bad_parameter("age", &format!("must be one of {words}"))
        })
    }

    /// Before when an operation of this age was accepted.
    pub(super) fn accepted_before(self, now: Time) -> String {
        Timestamp(now.before(Duration::from_secs(self.number * self.unit_s))).to_string()
    }
}

/// The field of the form.
pub(super) fn field(view: &View, chosen: Option<LeastAge>) -> Markup {
    let units = view.language.words().units;
    html! {
        label {
            (view.words.older_than)
            select name="age" {
                option value="" { (view.words.any) }
                @for age in AGES {
                    option value=(age.word) selected[chosen == Some(age)] { (age.number) " " (units[age.unit]) }
                }
            }
        }
    }
}
