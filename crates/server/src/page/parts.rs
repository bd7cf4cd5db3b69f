//! The small parts of every page: states as glyph, word and colour; times; bars of what is left.

use std::time::Duration;

use maud::{Markup, html};
use tidegate_core::Time;

use super::view::escape;
use super::words::Words;
use crate::wire::time::Timestamp;

/// A state, shown with a word of the reader's language, and never by colour alone.
pub(super) fn state_in(word: &str, shown: &str) -> Markup {
    let glyph = match word {
        "running" | "processing" => "▶",
        "succeeded" | "completed" | "done" | "applied" => "✓",
        "failed" => "✕",
        "unknown" | "held" => "?",
        "paused" => "‖",
        "canceled" => "⊘",
        "queued" | "planned" | "idle" => "·",
        _ => "◔",
    };
    html! { span class={ "state " (word) } { span aria-hidden="true" { (glyph) } " " (shown) } }
}

/// How much of an id is shown; the search finds it.
pub(super) const SHOWN_ID_LEN: usize = 8;

/// An operation's id with a link to its page.
pub(super) fn operation_link(id: &str) -> Markup {
    id_link("/operations/", id)
}

/// An id with a link to its page below a path; the end of an id says more than its beginning.
pub(super) fn id_link(path: &str, id: &str) -> Markup {
    let short = id.get(id.len().saturating_sub(SHOWN_ID_LEN)..).unwrap_or(id);
    html! { a.id href={ (path) (id) } title=(id) { "op_…" (short) } }
}

/// A group's name with a link to its page.
pub(super) fn group(name: &str) -> Markup {
    html! { a.group href={ "/groups/" (escape(name)) } { (name) } }
}

/// The cell of a sentence in a row of fixed height, with all of it as a tooltip.
pub(super) fn why_cell(text: &str) -> Markup {
    html! { td.why title=[(!text.is_empty()).then_some(text)] { @if !text.is_empty() { span { (text) } } } }
}

/// How long ago, in a language, with the time itself as a tooltip.
pub(super) fn time_ago(at: Time, now: Time, words: &Words) -> Markup {
    html! { time datetime=(Timestamp(at)) title=(Timestamp(at)) { (words.span(now.since(at))) " " (words.ago) } }
}

/// Formats a duration in one or two units, with these names of second, minute, hour and day.
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

/// A sentence of a template, with the two texts that it has places for.
pub(super) fn filled(template: &str, texts: [&str; 2]) -> String {
    let mut parts = template.split("{}");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.zip(texts).fold(first, |sentence, (part, text)| sentence + text + part)
}

/// What is left of a limit, as a bar and in words. A low level is normal and never red.
pub(super) fn level_bar(share: f64, label: &str) -> Markup {
    const WIDTH: f64 = 88.0;
    let width = (share.clamp(0.0, 1.0) * WIDTH).round();
    let class = if share <= LOW { "bar low" } else { "bar" };
    html! {
        svg class=(class) width=(WIDTH) height="8" viewBox={ "0 0 " (WIDTH) " 8" } role="img" aria-label=(label) {
            rect.track width=(WIDTH) height="8" rx="2" {}
            rect.fill width=(width) height="8" rx="2" {}
        }
        " " span.words { (label) }
    }
}

/// How far something is, as a bar and in words: what is done, what failed, and the rest.
pub(super) fn progress_bar(parts: [usize; 3], label: &str) -> Markup {
    const WIDTH: usize = 200;
    let all = parts.iter().sum::<usize>().max(1);
    let [done, failed, _] = parts.map(|part| part * WIDTH / all);
    html! {
        svg.bar width=(WIDTH) height="8" viewBox={ "0 0 " (WIDTH) " 8" } role="img" aria-label=(label) {
            rect.track width=(WIDTH) height="8" rx="2" {}
            rect.done width=(done) height="8" rx="2" {}
            rect.failed x=(done) width=(failed) height="8" rx="2" {}
        }
        " " span.words { (label) }
    }
}

/// The share of a limit that is little.
pub(super) const LOW: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_spans_read_well() {
        assert_eq!(
            [count(0), count(999), count(1_000), count(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
        let span = |seconds| span_in(Duration::from_secs(seconds), ["s", "min", "h", "d"]);
        assert_eq!([span(7_445), span(90_061)], ["2 h 04 min", "1 d 1 h"]);
    }

    #[test]
    fn progress_has_a_part_for_each_end() {
        let html = progress_bar([6, 1, 1], "6 of 8").into_string();
        assert!(
            html.contains("<rect class=\"done\" width=\"150\"") && html.contains("6 of 8</span>"),
            "{html}"
        );
        assert!(html.contains("<rect class=\"failed\" x=\"150\" width=\"25\""), "{html}");
        assert!(progress_bar([0, 0, 0], "").into_string().contains("class=\"done\" width=\"0\""));
    }

    #[test]
    fn what_others_wrote_is_escaped() {
        let name = "<script>alert(1)</script>\"'&";
        let html = group(name).into_string();
        assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"), "{html}");
        assert!(html.contains("%3Cscript%3E"), "{html}");
    }
}
