//! The last hour as small charts: SVG that is drawn here, each with its numbers in words for those
//! who do not see it.

use maud::{Markup, html};
use serde_json::Value;

use super::parts::{count, span_in};
use super::view::{View, items, number, text};
use std::time::Duration;

const WIDTH: usize = 240;
const HEIGHT: usize = 44;
/// The minutes of a chart.
const MINUTES: usize = 60;
/// The width of a minute.
const STEP: usize = WIDTH / MINUTES;

/// A series: its field, its colour, and whether its figures are added up or seconds.
struct Series {
    field: &'static str,
    class: &'static str,
    is_age: bool,
}

const SERIES: [Series; 4] = [
    Series { field: "succeeded", class: "succeeded", is_age: false },
    Series { field: "failed", class: "failed", is_age: false },
    Series { field: "throttled", class: "low", is_age: false },
    Series { field: "oldest_s", class: "waiting", is_age: true },
];

/// The strip of charts.
pub(super) fn strip(view: &View, summary: &Value) -> Markup {
    let minutes = items(summary, "minutes");
    html! {
        h2 { (view.words.last_hour) }
        ul.charts {
            @for (series, label) in SERIES.iter().zip(view.words.charts) { li { (chart(view, series, label, minutes)) } }
        }
        details {
            summary { (view.words.as_table) }
            (table(view, minutes))
        }
    }
}

fn chart(view: &View, series: &Series, label: &str, minutes: &[Value]) -> Markup {
    let values: Vec<u64> = minutes.iter().map(|minute| number(minute, series.field)).collect();
    let most = values.iter().copied().max().unwrap_or_default();
    let shown = |value: u64| match series.is_age {
        true => span_in(Duration::from_secs(value), view.language.words().units),
        false => count(value),
    };
    let figure = if series.is_age { values.last().copied().unwrap_or_default() } else { values.iter().sum() };
    let description = format!("{label}: {}; {} {}", shown(figure), view.words.most, shown(most));
    html! {
        p { b { (shown(figure)) } " " (label) }
        svg class={ "chart " (series.class) } viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img" aria-label=(description) {
            title { (description) }
            line x1="0" x2=(WIDTH) y1=(HEIGHT) y2=(HEIGHT) {}
            @for (x, height) in bars(&values, most) {
                rect x=(x) y=(HEIGHT - height) width=(STEP - 1) height=(height) {}
            }
        }
    }
}

/// The place and the height of each bar; the last minute is at the right.
fn bars(values: &[u64], most: u64) -> Vec<(usize, usize)> {
    let recent = &values[values.len().saturating_sub(MINUTES)..];
    let first = MINUTES - recent.len();
    let height = |value: u64| {
        let height = u128::from(value) * HEIGHT as u128 / u128::from(most.max(1));
        // What happened once is seen.
        usize::try_from(height).unwrap_or(HEIGHT).max(usize::from(value > 0) * 2)
    };
    let bars = recent.iter().enumerate().map(|(place, value)| ((first + place) * STEP, height(*value)));
    bars.filter(|(_, height)| *height > 0).collect()
}

fn table(view: &View, minutes: &[Value]) -> Markup {
    html! {
        table {
            thead { tr { th.c-name scope="col" { (view.words.when) } @for label in view.words.charts { th.number scope="col" { (label) } } } }
            tbody {
                @for minute in minutes.iter().rev().take(MINUTES) {
                    tr {
                        th scope="row" { (text(minute, "at")) }
                        @for series in &SERIES { td.number { (count(number(minute, series.field))) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_end_at_the_right_and_show_what_happened_once() {
        assert_eq!(bars(&[], 0), []);
        assert_eq!(bars(&[0, 1, 1_000], 1_000), [((MINUTES - 2) * STEP, 2), ((MINUTES - 1) * STEP, HEIGHT)]);
        let many: Vec<u64> = (1..=200).collect();
        let drawn = bars(&many, 200);
        assert_eq!(
            (drawn.len(), drawn[0].0, drawn[MINUTES - 1]),
            (MINUTES, 0, ((MINUTES - 1) * STEP, HEIGHT))
        );
        assert_eq!(bars(&[u64::MAX], u64::MAX), [((MINUTES - 1) * STEP, HEIGHT)]);
    }
}
