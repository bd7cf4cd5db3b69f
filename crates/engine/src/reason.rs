//! Explains why an operation waits, in one sentence: for what, who or what holds it, and until
//! when. It names one cause, never "A or B".

use tidegate_core::fact::{GroupHold, LimitShape, LimitSource};
use tidegate_core::model::{AlternativeState, AlternativeStatus, Cause, OverdueEffect, WaitStatus};
use tidegate_core::operation::MICRO;
use tidegate_core::{Fault, OperationId, Time};

use crate::owner::format_tokens;
use crate::view::Reason;

/// When a remote worker last asked for the kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerDemand {
    /// Then.
    Last(Time),
    /// Not since this owner began, which was then.
    NeverSince(Time),
    /// No one can: the kind is not configured.
    Missing,
}

/// What continues a group that is paused while the outcome of its first operation is unknown.
const UNDECIDED: &str =
    "and the outcome of its first operation is unknown: decide about that, and resume the group";

/// Builds the reason for `why`; `behind` is the id of the operation ahead of it, and `missing` the
/// upstream that is waited for because it is not configured.
pub(crate) fn wait_reason(
    mut why: WaitStatus,
    behind: Option<OperationId>,
    missing: Option<&str>,
    demand: WorkerDemand,
    now: Time,
) -> Reason {
    let (waiting_for, name, sentence) = match missing {
        Some(upstream) => {
            // It is tried again now and then, and nothing comes of that until someone acts.
            (why.until, why.starts_at) = (None, None);
            ("person", Some(upstream.into()), missing_sentence("upstream", upstream))
        }
        None => describe(&why, demand, now),
    };
    let (waiting_for, until, because) = match (&why.behind, behind) {
        (Some((_, before)), Some(id)) => {
            let starts = why.starts_at.map_or_else(String::new, |at| {
                let wait = format_span(at.since(now).as_millis());
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

fn describe(
    why: &WaitStatus,
    demand: WorkerDemand,
    now: Time,
) -> (&'static str, Option<std::sync::Arc<str>>, String) {
    let until = describe_until(why.until, now);
    match &why.cause {
        Cause::Running { .. } => ("running", None, "It is running.".into()),
        Cause::Awaiting { since, poll_at, then, .. } => {
            ("completion", None, awaiting_sentence((*since, *poll_at, *then), why, now))
        }
        Cause::Worker => ("worker", None, "Waiting for a free worker.".into()),
        Cause::RemoteWorker { kind } => {
            let span = |since: Time| format_span(now.since(since).as_millis());
            let when = match demand {
                WorkerDemand::Missing => {
                    return ("person", Some(kind.clone()), missing_sentence("kind", kind));
                }
                WorkerDemand::Last(last) => format!("for {}", span(last)),
                WorkerDemand::NeverSince(began) => format!("since this node took over {} ago", span(began)),
            };
            let sentence = format!("Waiting for a worker: none has asked for kind {kind} {when}.");
            ("worker", Some(kind.clone()), sentence)
        }
        Cause::Time => {
            let sentence = match &why.fault {
                Some(fault) => {
                    format!("Waiting for its next attempt after {} — {until}.", short_message(fault))
                }
                None => format!("Waiting for the time it was delayed to — {until}."),
            };
            ("time", None, sentence)
        }
        Cause::Bucket { name, frozen: true, .. } => {
            let what =
                why.fault.as_ref().map_or_else(String::new, |fault| format!(" ({})", short_message(fault)));
            ("bucket", Some(name.clone()), format!("Waiting because {name} is closed{what} — {until}."))
        }
        Cause::Bucket { name, shape, source, level, cost, ahead, .. } => {
            let left = describe_level(*shape, *level, *cost);
            let before = describe_ahead(*ahead);
            let from = source_word(*source);
            (
                "bucket",
                Some(name.clone()),
                format!("Waiting for limit {name} — {left}{before}; {from} — {until}."),
            )
        }
        Cause::Cap { name, at_once, held, ahead } => {
            let before = describe_ahead(*ahead);
            let sentence = format!(
                "Waiting for a slot of {name} — {held} of {at_once} are taken{before} — until one is released."
            );
            ("lease", Some(name.clone()), sentence)
        }
        Cause::Breaker { name, failures, cooling, ahead } => {
            let cooling = cooling.then_some(&*until);
            ("breaker", Some(name.clone()), breaker_sentence(name, *failures, cooling, *ahead))
        }
        Cause::Paused { by, since, reason, is_undecided } => {
            let why = if reason.is_empty() { String::new() } else { format!(": \"{reason}\"") };
            let ago = describe_ago(*since, now);
            let next = if *is_undecided { UNDECIDED } else { "resume the group to continue" };
            ("person", Some(by.clone()), format!("Paused by {by} {ago}{why} — {next}."))
        }
        Cause::Alternatives(each) => ("alternatives", None, alternatives_sentence(each, now)),
        Cause::Held(held) => ("person", None, held_sentence(held, now)),
    }
}

fn awaiting_sentence(
    (since, poll_at, then): (Time, Option<Time>, OverdueEffect),
    why: &WaitStatus,
    now: Time,
) -> String {
    let (ago, until) = (describe_ago(since, now), describe_until(why.until, now));
    let poll =
        poll_at.map_or_else(String::new, |at| format!(", polled next {}", describe_until(Some(at), now)));
    let so_far =
        why.fault.as_ref().map_or_else(String::new, |fault| format!(" So far: {}.", short_message(fault)));
    let then = match then {
        OverdueEffect::Unknown => "its outcome is unknown",
        OverdueEffect::Repeat => "it runs again",
        OverdueEffect::Fail => "it fails",
        OverdueEffect::Cancel => "it is canceled",
    };
    format!("Awaiting its completion, sent {ago}{poll}; if none comes, {then} {until}.{so_far}")
}

fn alternatives_sentence(alternatives: &[AlternativeStatus], now: Time) -> String {
    let each: Vec<String> =
        alternatives.iter().map(|alternative| describe_alternative(alternative, now)).collect();
    format!("Waiting for one of its alternatives — {}.", each.join("; "))
}

/// Describes what keeps an alternative from being used.
fn describe_alternative(alternative: &AlternativeStatus, now: Time) -> String {
    let AlternativeStatus { name, state, until } = alternative;
    let until = describe_until(*until, now);
    match state {
        AlternativeState::Free => format!("{name}: free"),
        AlternativeState::Failed(fault) => format!("{name}: failed ({})", short_message(fault)),
        AlternativeState::Waits(cause) => match &**cause {
            Cause::Bucket { name: limit, frozen: true, .. } => format!("{name}: {limit} is closed, {until}"),
            Cause::Bucket { name: limit, shape, level, cost, .. } => {
                format!("{name}: {limit} has {}, {until}", describe_level(*shape, *level, *cost))
            }
            Cause::Cap { name: limit, at_once, held, .. } => {
                format!("{name}: {held} of {at_once} slots of {limit} are taken")
            }
            Cause::Breaker { name: limit, failures, cooling: true, .. } => {
                format!("{name}: {limit} is cooling {}, {until}", cooling_cause(*failures))
            }
            _ => format!("{name}: calls in flight go first"),
        },
    }
}

fn missing_sentence(what: &str, name: &str) -> String {
    format!(
        "Waiting because the {what} {name} is not configured — put it back into the configuration and start again, or cancel the operation."
    )
}

fn breaker_sentence(name: &str, failures: u32, cooling: Option<&str>, ahead: usize) -> String {
    let before = describe_ahead(ahead);
    match cooling {
        Some(until) => {
            let cause = cooling_cause(failures);
            format!("Waiting because {name} is cooling {cause}{before} — {until}.")
        }
        None => format!("Waiting because {name} has just recovered: the calls in flight go first{before}."),
    }
}

/// What a breaker cools after. Without a failure it cools because its upstream asked for that.
fn cooling_cause(failures: u32) -> String {
    match failures {
        0 => "because it was asked to".into(),
        1 => "after a failure".into(),
        more => format!("after {more} failures in a row"),
    }
}

fn held_sentence(held: &GroupHold, now: Time) -> String {
    let ago = describe_ago(held.since, now);
    let what = held.fault.as_ref().map_or_else(String::new, |fault| format!(" ({})", short_message(fault)));
    if held.unknown {
        format!(
            "Held {ago}: the outcome is unknown{what} — say that it happened (succeeded) or did not happen (failed), or send it again (repeat)."
        )
    } else {
        format!("Held {ago} because an operation of the group failed{what} — resume the group to continue.")
    }
}

fn describe_level(shape: LimitShape, level: u64, cost: u64) -> String {
    match shape {
        LimitShape::Drip { capacity, refill_per_s, margin } => {
            let kept = if margin > 0 {
                format!(", {} are held in reserve", format_tokens(margin))
            } else {
                String::new()
            };
            let [capacity, cost, refill] = [capacity, cost, refill_per_s].map(format_tokens);
            let level = format_tokens(level - level % (MICRO / 10));
            format!("{level} of {capacity} left{kept}, {cost} needed, {refill} refilled per second")
        }
        LimitShape::Window { limit, .. } => {
            format!(
                "{} of {} left, {} needed",
                format_tokens(level),
                format_tokens(limit),
                format_tokens(cost)
            )
        }
        LimitShape::Gate | LimitShape::Cap { .. } | LimitShape::Breaker { .. } => {
            "a call in flight must complete first".into()
        }
    }
}

fn describe_ahead(ahead: usize) -> String {
    match ahead {
        0 => String::new(),
        1 => ", one group goes first".into(),
        more => format!(", {more} groups go first"),
    }
}

const fn source_word(source: LimitSource) -> &'static str {
    match source {
        LimitSource::Config => "the figure is from the configuration",
        LimitSource::Operator => "the figure was set by an operator",
        LimitSource::Learned => "the figure was learned from responses",
    }
}

fn short_message(fault: &Fault) -> &str {
    // The message is embedded in our own sentence.
    fault.message.trim_end_matches('.')
}

fn describe_until(at: Option<Time>, now: Time) -> String {
    match at {
        Some(at) if at <= now => "any moment".into(),
        Some(at) => format!("in {}", format_span(at.since(now).as_millis())),
        None => "until it completes".into(),
    }
}

fn describe_ago(since: Time, now: Time) -> String {
    format!("{} ago", format_span(now.since(since).as_millis()))
}

/// Formats a span of time in its two largest units.
fn format_span(millis: u128) -> String {
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
    use tidegate_core::Seq;

    use super::*;

    #[test]
    fn spans_read_well() {
        for (millis, text) in
            [(0, "0 ms"), (999, "999 ms"), (8_240, "8.2 s"), (61_000, "1 min 1 s"), (7_500_000, "2 h 5 min")]
        {
            assert_eq!(format_span(millis), text);
        }
    }

    /// OPS-23: what an operator can say has the words of the page's buttons, and those of the API.
    #[test]
    fn ops_23_a_decision_is_named_as_on_the_page_and_in_the_api() {
        let held = GroupHold { seq: Seq(1), since: Time::ZERO, unknown: true, fault: None };
        let said = held_sentence(&held, Time::ZERO);
        for words in ["it happened (succeeded)", "did not happen (failed)", "send it again (repeat)"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }

    /// DSP-24: what a breaker cools after reads well for any number of failures.
    #[test]
    fn dsp_24_what_a_breaker_cools_after_reads_well() {
        let said = |failures| breaker_sentence("acme", failures, Some("in 9.0 s"), 0);
        for (failures, cause) in
            [(0, "because it was asked to"), (1, "after a failure"), (2, "after 2 failures in a row")]
        {
            let sentence = format!("Waiting because acme is cooling {cause} — in 9.0 s.");
            assert_eq!(said(failures), sentence);
        }
    }
}
