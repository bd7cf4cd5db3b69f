//! What failed lately: by where it failed, a group or all generations, and there by cause. Each
//! source has a card, and each of its causes a button that runs again what failed for it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::{FaultClass, Time};
use tidegate_dispatch::KIND as GENERATION;

use crate::page::action::Action;
use crate::page::operation::call_line;
use crate::page::parts::{count, group as group_link, operation_link};
use crate::page::view::{View, escape, text, time_in};
use crate::wire::time::Timestamp;

/// The causes that a card names.
const CAUSES_SHOWN: usize = 3;

/// Where something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FailureSource<'a> {
    Generations,
    Group(&'a str),
}

impl<'a> FailureSource<'a> {
    fn of(operation: &'a Value) -> Self {
        // Each generation has a group of its own.
        if is_generation(operation) { Self::Generations } else { Self::Group(text(operation, "group")) }
    }

    /// The id of its card.
    fn card_id(self) -> String {
        match self {
            Self::Generations => "need-failed-generations".to_owned(),
            Self::Group(group) => format!("need-failed-{group}"),
        }
    }

    /// The part of a filter that finds its operations.
    fn filter(self) -> String {
        match self {
            Self::Generations => format!("kind={GENERATION}"),
            Self::Group(group) => format!("group={}", escape(group)),
        }
    }
}

/// What failed in the same way.
pub(super) struct FailureCause<'a> {
    class: Option<FaultClass>,
    message: &'a str,
    count: u64,
}

/// The recent failures of one source.
pub(super) struct Failures<'a> {
    pub count: u64,
    /// The one that ended last. A failure may be that of a re-run, long after it was accepted.
    pub last: &'a Value,
    /// When the first of them ended.
    since: Option<Time>,
    /// The most frequent one first.
    causes: Vec<FailureCause<'a>>,
}

impl<'a> Failures<'a> {
    fn new(first: &'a Value) -> Self {
        Self { count: 0, last: first, since: time_in(first, "finished_at"), causes: Vec::new() }
    }

    fn add(&mut self, one: &'a Value) {
        let (fault, ended_at) = (&one["fault"], time_in(one, "finished_at"));
        let (class, message) = (FaultClass::parse(text(fault, "class")), text(fault, "message"));
        self.count += 1;
        self.since = self.since.min(ended_at);
        if ended_at > time_in(self.last, "finished_at") {
            self.last = one;
        }
        match self.causes.iter_mut().find(|cause| (cause.class, cause.message) == (class, message)) {
            Some(cause) => cause.count += 1,
            None => self.causes.push(FailureCause { class, message, count: 1 }),
        }
    }

    /// The filter for what failed in this source since the first of them, of one cause or of all.
    fn filter(&self, source: FailureSource<'_>, cause: Option<&FailureCause<'_>>) -> String {
        let since = self.since.map(|since| escape(&Timestamp(since).to_string()));
        let since = since.map_or_else(String::new, |since| format!("&finished_after={since}"));
        let class = cause.and_then(|cause| cause.class);
        let class = class.map_or_else(String::new, |class| format!("&fault_class={class}"));
        let message = cause.map(|cause| cause.message).filter(|message| !message.is_empty());
        let message = message.map_or_else(String::new, |text| format!("&fault_message={}", escape(text)));
        format!("state=failed&{}{since}{class}{message}", source.filter())
    }
}

/// Failures by source; the source with the most of them first.
pub(super) fn by_source<'a>(
    failed: impl IntoIterator<Item = &'a Value>,
) -> Vec<(FailureSource<'a>, Failures<'a>)> {
    let mut sources: BTreeMap<FailureSource<'_>, Failures<'_>> = BTreeMap::new();
    for one in failed {
        sources.entry(FailureSource::of(one)).or_insert_with(|| Failures::new(one)).add(one);
    }
    let mut sources: Vec<_> = sources.into_iter().collect();
    for (_, failures) in &mut sources {
        failures.causes.sort_by_key(|cause| Reverse(cause.count));
    }
    sources.sort_by_key(|(_, failures)| Reverse(failures.count));
    sources
}

pub(super) fn is_generation(operation: &Value) -> bool {
    operation["kind"] == GENERATION
}

pub(super) fn failure_card(view: &View, source: FailureSource<'_>, failures: &Failures<'_>) -> Markup {
    let (words, causes) = (view.words, &failures.causes);
    html! {
        li id=(source.card_id()) {
            p.why {
                (view.state("failed")) " "
                @if failures.count > 1 { (words.last_fault) ": " }
                (text(&failures.last["fault"], "message"))
            }
            p {
                @match source {
                    FailureSource::Generations => a href="/generations?status=failed" { (view.language.words().generations) },
                    FailureSource::Group(group) => (group_link(group)),
                }
                " · " (words.failed_lately) ": " b { (count(failures.count)) }
                @if let Some(at) = failures.since.filter(|_| failures.count > 1) { ", " (words.the_first) " " (view.ago(at)) " " (words.ago) }
            }
            @if causes.len() > 1 { (list(view, causes)) }
            @else if causes.iter().any(is_lasting) { p { (words.would_fail_again) } }
            p { (operation_link(text(failures.last, "id"))) " " (call_line(failures.last)) @if let Some(at) = time_in(failures.last, "finished_at") { " · " (view.ago(at)) " " (words.ago) } }
            p.buttons { (buttons(view, source, failures)) }
        }
    }
}

/// Each cause with its number.
fn list(view: &View, causes: &[FailureCause<'_>]) -> Markup {
    html! {
        @for cause in causes.iter().take(CAUSES_SHOWN) {
            p {
                b { (count(cause.count)) } " × " (cause.message)
                @if is_lasting(cause) { " (" (view.words.would_fail_again) ")" }
            }
        }
        @if let Some(more) = causes.len().checked_sub(CAUSES_SHOWN).filter(|more| *more > 0) {
            p { "+" (count(more as u64)) " " (view.words.other_causes) }
        }
    }
}

/// A button for each cause that is shown. All of them are run again at once only where more are not
/// shown: among them may be what an operator decided.
fn buttons(view: &View, source: FailureSource<'_>, failures: &Failures<'_>) -> Markup {
    let causes = &failures.causes;
    let filter = |cause| failures.filter(source, cause);
    html! {
        @if causes.len() > CAUSES_SHOWN { (rerun(view, &filter(None), None, failures.count)) }
        @else {
            @for cause in causes { (rerun(view, &filter(Some(cause)), Some(cause), cause.count)) }
        }
        a.button href={ "/operations?" (filter(None)) } { (view.words.show) }
    }
}

fn rerun(view: &View, filter: &str, cause: Option<&FailureCause<'_>>, number: u64) -> Markup {
    let label = format!("{} {}", view.words.action(Action::Rerun).label, count(number));
    let about = cause.map(|cause| cause.message).filter(|message| !message.is_empty());
    let about = about.map(|about| format!("{label} × {about}"));
    html! { a.button href=(Action::RerunAll.href(filter)) title=[about.as_deref()] { (label) } }
}

/// Whether the same call would most likely fail in the same way.
fn is_lasting(cause: &FailureCause<'_>) -> bool {
    cause.class.is_some_and(|class| !class.is_repeatable())
}

#[cfg(test)]
mod tests;
