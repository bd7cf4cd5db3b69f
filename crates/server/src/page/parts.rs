//! The small parts of every page: states as glyph, word and colour; times; bars of what is left.

use std::time::Duration;

use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tidegate_core::fact::LimitShape;
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;
use tidegate_core::{OperationId, Time};

use super::words::Words;
use crate::wire::response::TokenAmount;
use crate::wire::time::Timestamp;

/// A state, never shown by colour alone.
pub(super) fn state(word: &str) -> Markup {
    let glyph = match word {
        "running" => "▶",
        "succeeded" | "done" | "applied" => "✓",
        "failed" => "✕",
        "unknown" | "held" => "?",
        "paused" => "‖",
        "canceled" => "⊘",
        "queued" | "planned" => "·",
        _ => "◔",
    };
    html! { span class={ "state " (word) } { span aria-hidden="true" { (glyph) } " " (word) } }
}

/// An operation's id with a link to its page; the end of an id says more than its beginning.
pub(super) fn operation(id: OperationId) -> Markup {
    let text = id.to_string();
    let short = text.get(text.len().saturating_sub(8)..).unwrap_or(&text);
    html! { a.id href={ "/operations/" (text) } title=(text) { "op_…" (short) } }
}

/// A group's name with a link to its page.
pub(super) fn group(name: &str) -> Markup {
    html! { a.group href={ "/groups/" (utf8_percent_encode(name, NON_ALPHANUMERIC)) } { (name) } }
}

/// How long ago, with the time itself as a tooltip.
pub(super) fn ago(at: Time, now: Time) -> Markup {
    html! { time datetime=(Timestamp(at)) title=(Timestamp(at)) { (span(now.since(at))) } }
}

/// The time until then, with the time itself as a tooltip.
pub(super) fn within(at: Time, now: Time) -> Markup {
    html! { time datetime=(Timestamp(at)) title=(Timestamp(at)) { "in " (span(at.since(now))) } }
}

/// How long ago, in a language, with the time itself as a tooltip.
pub(super) fn time_ago(at: Time, now: Time, words: &Words) -> Markup {
    html! { time datetime=(Timestamp(at)) title=(Timestamp(at)) { (words.span(now.since(at))) " " (words.ago) } }
}

/// The time until then, in a language, with the time itself as a tooltip.
pub(super) fn time_until(at: Time, now: Time, words: &Words) -> Markup {
    html! { time datetime=(Timestamp(at)) title=(Timestamp(at)) { (words.within) " " (words.span(at.since(now))) } }
}

/// Formats a duration in one or two units.
pub(super) fn span(duration: Duration) -> String {
    span_in(duration, ["s", "min", "h", "d"])
}

/// The same with these names of second, minute, hour and day.
pub(super) fn span_in(duration: Duration, [second, minute, hour, day]: [&str; 4]) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds} {second}"),
        60..3_600 => format!("{} {minute}", seconds / 60),
        3_600..86_400 => format!("{} {hour} {:02} {minute}", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} {day} {} {hour}", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// Formats a count with a thousands separator.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What is left of a limit, as a bar and in words. A low level is normal and never red.
pub(super) fn remaining_bar(limit: &LimitView) -> Markup {
    const WIDTH: u64 = 120;
    let most = match limit.shape {
        LimitShape::Drip { capacity, .. } => capacity,
        LimitShape::Window { limit, .. } => limit,
        LimitShape::Cap { at_once } => u64::from(at_once).saturating_mul(MICRO),
        LimitShape::Gate | LimitShape::Breaker { .. } => {
            return html! { span.quiet { @if limit.frozen_until.is_some() { "closed" } @else { "open" } } };
        }
    };
    let level = match limit.shape {
        LimitShape::Cap { .. } => limit.level.saturating_mul(MICRO),
        _ => limit.level,
    };
    let share = u128::from(level.min(most)) * u128::from(WIDTH) / u128::from(most.max(1));
    let words = format!("{} of {} left", TokenAmount(level / MICRO * MICRO), TokenAmount(most));
    let class = if share * 5 <= u128::from(WIDTH) { "bar low" } else { "bar" };
    html! {
        svg class=(class) width=(WIDTH) height="8" viewBox={ "0 0 " (WIDTH) " 8" } role="img" aria-label=(words) {
            rect.track width=(WIDTH) height="8" rx="2" {}
            rect.fill width=(share) height="8" rx="2" {}
        }
        " " span.words { (words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_spans_read_well() {
        assert_eq!(
            [count(0), count(999), count(1_000), count(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(span(Duration::from_secs(7_445)), "2 h 04 min");
        assert_eq!(span(Duration::from_secs(90_061)), "1 d 1 h");
        let (now, then) = (Time::from_millis(1_000), Time::from_millis(4_000));
        let until = time_until(then, now, super::super::words::Language::English.words()).into_string();
        assert!(until.contains(">in 3 s<"), "{until}");
    }

    #[test]
    fn what_others_wrote_is_escaped() {
        let name = "<script>alert(1)</script>\"'&";
        let html = group(name).into_string();
        assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"), "{html}");
        assert!(html.contains("%3Cscript%3E"), "{html}");
    }
}
