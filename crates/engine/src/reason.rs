//! Why something waits, as one sentence: what for, who or what holds it, until when. One cause, never "A or B".

use tidegate_core::fact::{Held, Shape, Source};
use tidegate_core::model::{Cause, Why};
use tidegate_core::{Fault, OperationId, Time};

use crate::owner::tokens;
use crate::view::Reason;

/// The reason for `why`; `behind` is the id of the operation it is behind, `of` names the operation of a hold.
pub(crate) fn reason(why: Why, behind: Option<OperationId>, now: Time) -> Reason {
    let (waiting_for, name, sentence) = describe(&why, now);
    let (waiting_for, until, because) = match (&why.behind, behind) {
        (Some((_, before)), Some(id)) => {
            let starts = why.starts_at.map_or_else(String::new, |at| {
                let wait = span(at.since(now).as_millis());
                format!(" At the known limits it starts in about {wait}, an estimate.")
            });
            let turn = format!(
                "Waiting its turn: {before} before it in its group, the first is {id}.{starts} That one: {sentence}"
            );
            ("turn", why.starts_at, turn)
        }
        _ => (waiting_for, why.until, sentence),
    };
    let (starts_at, cause) = (why.starts_at, Some(why.cause));
    Reason { waiting_for, name, until, starts_at, behind, because, cause }
}

fn describe(why: &Why, now: Time) -> (&'static str, Option<std::sync::Arc<str>>, String) {
    let until = until(why.until, now);
    match &why.cause {
        Cause::Running { .. } => ("running", None, "It is under way.".into()),
        Cause::Worker => ("worker", None, "Waiting for a free worker.".into()),
        Cause::Time => {
            let sentence = match &why.fault {
                Some(fault) => format!("Waiting for its next attempt after {} — {until}.", short(fault)),
                None => format!("Waiting for the time it was delayed to — {until}."),
            };
            ("time", None, sentence)
        }
        Cause::Bucket { name, frozen: true, .. } => {
            let what = why.fault.as_ref().map_or_else(String::new, |fault| format!(" ({})", short(fault)));
            ("bucket", Some(name.clone()), format!("Waiting because {name} is closed{what} — {until}."))
        }
        Cause::Bucket { name, shape, source, level, cost, ahead, .. } => {
            let left = left(*shape, *level, *cost);
            let before = first(*ahead);
            let from = source_word(*source);
            (
                "bucket",
                Some(name.clone()),
                format!("Waiting for limit {name} — {left}{before}; {from} — {until}."),
            )
        }
        Cause::Cap { name, at_once, held, ahead } => {
            let before = first(*ahead);
            let sentence = format!(
                "Waiting for a place at {name} — {held} of {at_once} are taken{before} — until one is given back."
            );
            ("lease", Some(name.clone()), sentence)
        }
        Cause::Paused { by, since, reason } => {
            let why = if reason.is_empty() { String::new() } else { format!(": \"{reason}\"") };
            let ago = ago(*since, now);
            ("person", Some(by.clone()), format!("Paused by {by} {ago}{why} — resume the group to go on."))
        }
        Cause::Held(held) => ("person", None, held_sentence(held, now)),
    }
}

fn held_sentence(held: &Held, now: Time) -> String {
    let ago = ago(held.since, now);
    let what = held.fault.as_ref().map_or_else(String::new, |fault| format!(" ({})", short(fault)));
    if held.unknown {
        format!(
            "Held {ago}: the outcome is unknown{what} — say what happened with resolve: succeeded, failed or repeat."
        )
    } else {
        format!("Held {ago} because an operation of the group failed{what} — resume the group to go on.")
    }
}

fn left(shape: Shape, level: u64, cost: u64) -> String {
    match shape {
        Shape::Drip { capacity, refill_per_s, margin } => {
            let kept = if margin > 0 { format!(", {} are kept back", tokens(margin)) } else { String::new() };
            let [level, capacity, cost, refill] = [level, capacity, cost, refill_per_s].map(tokens);
            format!("{level} of {capacity} left{kept}, {cost} needed, {refill} come back each second")
        }
        Shape::Window { limit, .. } => {
            format!("{} of {} left, {} needed", tokens(level), tokens(limit), tokens(cost))
        }
        Shape::Gate | Shape::Cap { .. } => "a call that is under way must be answered first".into(),
    }
}

fn first(ahead: usize) -> String {
    match ahead {
        0 => String::new(),
        1 => ", one group goes first".into(),
        more => format!(", {more} groups go first"),
    }
}

const fn source_word(source: Source) -> &'static str {
    match source {
        Source::Config => "the figure is from the configuration",
        Source::Operator => "the figure was set by a person",
        Source::Learned => "the figure was learned from answers",
    }
}

fn short(fault: &Fault) -> &str {
    // It stands inside a sentence of ours.
    fault.message.trim_end_matches('.')
}

fn until(at: Option<Time>, now: Time) -> String {
    match at {
        Some(at) if at <= now => "any moment".into(),
        Some(at) => format!("in {}", span(at.since(now).as_millis())),
        None => "until it is answered".into(),
    }
}

fn ago(since: Time, now: Time) -> String {
    format!("{} ago", span(now.since(since).as_millis()))
}

/// A span of time in the two largest units that matter.
fn span(millis: u128) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{}.{} s", seconds, millis % 1_000 / 100),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well() {
        for (millis, text) in
            [(0, "0 ms"), (999, "999 ms"), (8_240, "8.2 s"), (61_000, "1 min 1 s"), (7_500_000, "2 h 5 min")]
        {
            assert_eq!(span(millis), text);
        }
    }
}
