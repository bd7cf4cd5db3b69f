//! What failed lately: by where it failed, a group or all generations, and there by cause. Each
//! source has a card, and each of its causes a button that runs again what failed for it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};
use serde_json::Value;
use tidegate_core::{FaultClass, Time};
use tidegate_dispatch::KIND as GENERATION;
use tidegate_store::SharedState;

use crate::dismissals::{self, Dismissal, FailureSource};
use crate::page::action::Action;
use crate::page::failure_actions;
use crate::page::operation::call_line;
use crate::page::parts::{count, group as group_link, operation_link};
use crate::page::view::{View, escape, text, time_in};
use crate::wire::time::Timestamp;

/// The causes that a card shows, and the further ones that unfold.
const CAUSES_SHOWN: usize = 3;
const CAUSES_UNFOLDED: usize = 20;

/// Where an operation failed.
pub(super) fn source_of(operation: &Value) -> FailureSource<'_> {
    // Each generation has a group of its own.
    if is_generation(operation) {
        FailureSource::Generations
    } else {
        FailureSource::Group(text(operation, "group"))
    }
}

fn card_id(source: FailureSource<'_>) -> String {
    match source {
        FailureSource::Generations => "need-failed-generations".to_owned(),
        FailureSource::Group(group) => format!("need-failed-{group}"),
    }
}

/// What failed in the same way.
pub(super) struct FailureCause<'a> {
    class: Option<FaultClass>,
    message: &'a str,
    count: u64,
    /// When the first of them ended.
    since: Option<Time>,
    /// The one that ended last.
    last: &'a Value,
}

/// The recent failures of one source.
pub(super) struct Failures<'a> {
    pub count: u64,
    /// The one that ended last. A failure may be that of a re-run, long after it was accepted.
    pub last: &'a Value,
    /// Whether there may be more of them than were read.
    pub is_cut: bool,
    /// When the first of them ended.
    since: Option<Time>,
    /// The most frequent ones, and then the others; each part in the order in which they first
    /// came, so that a button keeps its place while failures are counted.
    causes: Vec<FailureCause<'a>>,
}

impl<'a> Failures<'a> {
    fn new(first: &'a Value) -> Self {
        Self {
            count: 0,
            last: first,
            is_cut: false,
            since: time_in(first, "finished_at"),
            causes: Vec::new(),
        }
    }

    fn add(&mut self, one: &'a Value) {
        let (fault, ended_at) = (&one["fault"], time_in(one, "finished_at"));
        let (class, message) = (FaultClass::parse(text(fault, "class")), text(fault, "message"));
        self.count += 1;
        self.since = self.since.min(ended_at);
        self.last = later(self.last, one);
        match self.causes.iter_mut().find(|cause| (cause.class, cause.message) == (class, message)) {
            Some(cause) => {
                cause.count += 1;
                cause.since = cause.since.min(ended_at);
                cause.last = later(cause.last, one);
            }
            None => self.causes.push(FailureCause { class, message, count: 1, since: ended_at, last: one }),
        }
    }

    fn sort_causes(&mut self) {
        self.causes.sort_by_key(|cause| (Reverse(cause.count), cause.since, cause.message));
        let shown = self.causes.len().min(CAUSES_SHOWN);
        let (shown, others) = self.causes.split_at_mut(shown);
        for part in [shown, others] {
            part.sort_by_key(|cause| (cause.since, cause.message));
        }
    }

    /// A number of them, as far as they were read.
    fn number(&self, number: u64) -> String {
        format!("{}{}", count(number), if self.is_cut { "+" } else { "" })
    }

    /// The filter for what failed in this source since the first of them, of one cause or of all.
    fn filter(&self, source: FailureSource<'_>, cause: Option<&FailureCause<'_>>) -> String {
        let since = self.since.map(|since| escape(&Timestamp(since).to_string()));
        let since = since.map_or_else(String::new, |since| format!("&finished_after={since}"));
        let class = cause.and_then(|cause| cause.class);
        let class = class.map_or_else(String::new, |class| format!("&fault_class={class}"));
        let message = cause.map(|cause| cause.message).filter(|message| !message.is_empty());
        let message = message.map_or_else(String::new, |text| format!("&fault_message={}", escape(text)));
        format!("state=failed&{}{since}{class}{message}", failure_actions::filter(source))
    }
}

/// The one of two operations that ended later.
fn later<'a>(one: &'a Value, other: &'a Value) -> &'a Value {
    let ended_at = |one: &Value| time_in(one, "finished_at");
    if ended_at(other) > ended_at(one) { other } else { one }
}

/// Recent failures of a source that an operator dismissed.
pub(in crate::page) struct DismissedFailures {
    /// The group; `None` for generations.
    group: Option<String>,
    count: u64,
    dismissal: Dismissal,
}

/// Takes the failures that an operator dismissed out of a list.
pub(super) async fn take_dismissed(
    store: &dyn SharedState,
    failed: &mut Vec<Value>,
) -> Vec<DismissedFailures> {
    let sources: Vec<_> = by_source(&*failed).into_iter().map(|(source, _)| source).collect();
    let found = dismissals::read(store, &sources).await;
    let group_of = |source: FailureSource<'_>| match source {
        FailureSource::Generations => None,
        FailureSource::Group(group) => Some(group.to_owned()),
    };
    let found = sources.iter().zip(found).filter_map(|(source, dismissal)| {
        Some(DismissedFailures { group: group_of(*source), count: 0, dismissal: dismissal? })
    });
    let mut all: Vec<DismissedFailures> = found.collect();
    failed.retain(|one| {
        let group = group_of(source_of(one));
        let Some(dismissed) = all.iter_mut().find(|known| known.group == group) else { return true };
        let is_covered = time_in(one, "finished_at").is_some_and(|at| dismissed.dismissal.covers(at));
        dismissed.count += u64::from(is_covered);
        !is_covered
    });
    all
}

/// Failures by source; the source with the most of them first.
pub(super) fn by_source<'a>(
    failed: impl IntoIterator<Item = &'a Value>,
) -> Vec<(FailureSource<'a>, Failures<'a>)> {
    let mut sources: BTreeMap<FailureSource<'_>, Failures<'_>> = BTreeMap::new();
    for one in failed {
        sources.entry(source_of(one)).or_insert_with(|| Failures::new(one)).add(one);
    }
    let mut sources: Vec<_> = sources.into_iter().collect();
    for (_, failures) in &mut sources {
        failures.sort_causes();
    }
    sources.sort_by_key(|(_, failures)| Reverse(failures.count));
    sources
}

pub(super) fn is_generation(operation: &Value) -> bool {
    operation["kind"] == GENERATION
}

pub(super) fn failure_card(view: &View, source: FailureSource<'_>, failures: &Failures<'_>) -> Markup {
    let words = view.words;
    let (shown, others) = failures.causes.split_at(failures.causes.len().min(CAUSES_SHOWN));
    html! {
        li id=(card_id(source)) {
            p.why {
                (view.state("failed")) " " (source_link(view, source)) " · "
                (words.failed_lately) ": " b { (failures.number(failures.count)) }
            }
            @for cause in shown { (cause_row(view, source, failures, cause)) }
            @if !others.is_empty() {
                details id={ (card_id(source)) "-causes" } {
                    summary { (words.other_causes) ": " (count(others.len() as u64)) }
                    @for cause in others.iter().take(CAUSES_UNFOLDED) { (cause_row(view, source, failures, cause)) }
                }
            }
            p.buttons { (buttons(view, source, failures)) }
        }
    }
}

/// What failed for one cause: how often, since when, the last one, and the button for all of it.
fn cause_row(
    view: &View,
    source: FailureSource<'_>,
    failures: &Failures<'_>,
    cause: &FailureCause<'_>,
) -> Markup {
    let (words, last) = (view.words, cause.last);
    let ago = |at: Time| html! { (view.ago(at)) " " (words.ago) };
    html! {
        div.cause {
            div {
                p title=(cause.message) {
                    @if cause.count > 1 || failures.causes.len() > 1 { b { (failures.number(cause.count)) } " × " }
                    (cause.message)
                }
                p.quiet {
                    @if let Some(at) = cause.since.filter(|_| cause.count > 1) { (words.the_first) " " (ago(at)) ", " (words.the_last) " " }
                    @if let Some(at) = time_in(last, "finished_at") { (ago(at)) }
                }
                p.quiet {
                    (operation_link(text(last, "id")))
                    @if is_lasting(cause) { " · " b { (words.would_fail_again) } }
                    @if !is_generation(last) { " " (call_line(last)) }
                }
            }
            (rerun(view, source, failures, Some(cause)))
        }
    }
}

/// Where not all causes are shown, one button is for all of them.
fn buttons(view: &View, source: FailureSource<'_>, failures: &Failures<'_>) -> Markup {
    html! {
        @if failures.causes.len() > CAUSES_SHOWN { (rerun(view, source, failures, None)) }
        a.button href={ "/operations?" (failures.filter(source, None)) } { (view.words.show) }
        @if let Some(last) = time_in(failures.last, "finished_at") {
            (button_about(view, Action::Dismiss, source, &failure_actions::subject(source, last)))
        }
    }
}

/// Runs again what failed for one cause, or for all of them.
fn rerun(
    view: &View,
    source: FailureSource<'_>,
    failures: &Failures<'_>,
    cause: Option<&FailureCause<'_>>,
) -> Markup {
    let number = cause.map_or(failures.count, |cause| cause.count);
    let label = format!("{} {}", view.words.action(Action::Rerun).label, failures.number(number));
    let about = cause.map_or_else(|| source_name(view, source), |cause| cause.message);
    let href = Action::RerunAll.href(&failures.filter(source, cause));
    html! { a.button href=(href) aria-label={ (label) " " (about) } { (label) } }
}

/// Failures that an operator dismissed, and the button that shows them again.
pub(super) fn dismissed_list(view: &View, dismissed: &[DismissedFailures]) -> Markup {
    let words = view.words;
    html! {
        @if !dismissed.is_empty() {
            details #dismissed {
                summary { (words.dismissed_lately) " (" (count(dismissed.len() as u64)) ")" }
                ul.plain {
                    @for DismissedFailures { group, count: number, dismissal } in dismissed {
                        @let source = group.as_deref().map_or(FailureSource::Generations, FailureSource::Group);
                        li {
                            (source_link(view, source)) " · " (words.failed_lately) ": " b { (count(*number)) } " · "
                            (words.dismissed_by) " " b { (dismissal.by) } ", " (view.ago(dismissal.at)) " " (words.ago)
                            @if let Some(reason) = &dismissal.reason { ": " (reason) }
                            " " (button_about(view, Action::RestoreFailures, source, &failure_actions::filter(source)))
                        }
                    }
                }
            }
        }
    }
}

/// The button of an action about a source, which is named to those who do not see the card.
fn button_about(view: &View, action: Action, source: FailureSource<'_>, subject: &str) -> Markup {
    let label = view.words.action(action).label;
    html! { a.button href=(action.href(subject)) aria-label={ (label) " " (source_name(view, source)) } { (label) } }
}

fn source_name<'a>(view: &View, source: FailureSource<'a>) -> &'a str {
    match source {
        FailureSource::Generations => view.language.words().generations,
        FailureSource::Group(group) => group,
    }
}

fn source_link(view: &View, source: FailureSource<'_>) -> Markup {
    html! {
        @match source {
            FailureSource::Generations => a href="/generations?status=failed" { (view.language.words().generations) },
            FailureSource::Group(group) => (group_link(group)),
        }
    }
}

/// Whether the same call would most likely fail in the same way.
fn is_lasting(cause: &FailureCause<'_>) -> bool {
    cause.class.is_some_and(|class| !class.is_repeatable())
}

#[cfg(test)]
mod tests;
