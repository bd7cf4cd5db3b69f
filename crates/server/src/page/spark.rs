//! The last hour of a limit as a small chart next to its level: the least that was left in each
//! minute, with a mark where a throttled call closed it. In words for those who do not see it.

use std::fmt::Write;

use maud::{Markup, html};
use serde_json::Value;

use super::view::{View, items};

/// The minutes of a chart, and the width of one.
const MINUTES: usize = 60;
const STEP: usize = 2;
const HEIGHT: u64 = 16;
/// The height of a mark.
const MARK: u64 = 5;

/// The chart of an hour, as the API has it; nothing without one.
pub(super) fn of_limit(view: &View, hour: &Value) -> Markup {
    let (left, closed) = (items(hour, "left_percent"), items(hour, "closed"));
    let label = describe(view, left, closed);
    let width = MINUTES * STEP;
    html! {
        @if !closed.is_empty() {
            svg.spark width=(width) height=(HEIGHT) viewBox={ "0 0 " (width) " " (HEIGHT) } role="img" aria-label=(label) {
                title { (label) }
                path d=(bars(left, |percent| Some(percent.as_u64()?.min(100) * HEIGHT / 100), HEIGHT)) {}
                path.closed d=(bars(closed, |times| (times.as_u64()? > 0).then_some(MARK), MARK)) {}
            }
        }
    }
}

/// One bar for each minute that has a height, standing on `ground`; the last is at the right.
fn bars(minutes: &[Value], height: impl Fn(&Value) -> Option<u64>, ground: u64) -> String {
    let minutes = &minutes[minutes.len().saturating_sub(MINUTES)..];
    let first = MINUTES - minutes.len();
    let mut path = String::new();
    for (place, minute) in minutes.iter().enumerate() {
        if let Some(height) = height(minute) {
            let (x, top) = ((first + place) * STEP, ground.saturating_sub(height.max(1)));
            // Writing to a text does not fail.
            let _ = write!(path, "M{x} {ground}V{top}h{STEP}V{ground}z");
        }
    }
    path
}

/// Such as "Last 60 minutes: least left 12 %, throttled (429): 3".
fn describe(view: &View, left: &[Value], closed: &[Value]) -> String {
    let words = view.words;
    let least = left.iter().filter_map(Value::as_u64).min();
    let least = least.map_or_else(String::new, |least| format!("{} {least} %, ", words.least_left));
    let closed: u64 = closed.iter().filter_map(Value::as_u64).sum();
    format!("{}: {least}{}: {closed}", words.last_hour, words.charts[2])
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::Time;

    use super::*;
    use crate::page::words::Language;

    #[test]
    fn a_chart_has_a_bar_for_each_minute_and_a_mark_for_each_closing() {
        let view = View::at(Language::English, Time::ZERO);
        let hour = json!({ "left_percent": [100, 12, null], "closed": [0, 3, 1] });
        let html = of_limit(&view, &hour).into_string();
        let (bars, marks) = ("M114 16V0h2V16zM116 16V15h2V16z", "M116 5V0h2V5zM118 5V0h2V5z");
        assert!(html.contains(&format!("\"{bars}\"")) && html.contains(&format!("\"{marks}\"")), "{html}");
        assert!(html.contains("Last 60 minutes: least left 12 %, throttled (429): 4"), "{html}");
        assert_eq!(of_limit(&view, &Value::Null).into_string(), "");
    }
}
