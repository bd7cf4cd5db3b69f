//! The progress of a deployment: a progress bar on a terminal, a line now and then elsewhere,
//! nothing with `--json`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidegate_discord::deploy::{ProgressEvent, ProgressListener};
use tidegate_discord::plan::{LineMark, Plan};
use tokio::time::Instant;

use crate::output::{Output, pluralize};

/// How often a line is written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Shows the progress of a deployment on stderr.
pub(super) struct Progress<'a> {
    output: &'a Output,
    bar: ProgressBar,
    state: Mutex<State>,
}

struct State {
    begun: Instant,
    /// Whether to show the next plan, and whether only what it removes.
    plan: Option<PlanDetail>,
    /// Time spent waiting for limits, and when the current wait ends.
    waited: Duration,
    waits_until: Option<Instant>,
    /// When all of it is expected to be done, at the limits known so far.
    done_at: Option<Instant>,
    /// The deployment, once it has begun.
    deployment: Option<String>,
    said: Option<Instant>,
    done: usize,
    of: usize,
}

/// How much of a plan is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlanDetail {
    All,
    Removals,
}

impl<'a> Progress<'a> {
    pub(super) fn new(output: &'a Output) -> Self {
        let target = if output.json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        // There is nothing to measure yet.
        set_style(&bar, "{msg}");
        Self { output, bar, state: Mutex::new(State::new(Instant::now())) }
    }

    /// The deployment, once it has begun.
    pub(super) fn deployment(&self) -> Option<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).deployment.clone()
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Shows the next plan before it is applied; for scripts only what it removes.
    pub(super) fn show_plan(&self, prunes: bool) {
        let detail = match (self.output.json, prunes) {
            (false, _) => Some(PlanDetail::All),
            (true, true) => Some(PlanDetail::Removals),
            (true, false) => None,
        };
        self.state.lock().unwrap_or_else(PoisonError::into_inner).plan = detail;
    }

    fn print_plan(&self, plan: &Plan, detail: PlanDetail) {
        for line in plan.lines() {
            if detail == PlanDetail::All || line.mark == LineMark::Remove {
                let line = super::shown_plan::color_line(&line.to_string(), self.output);
                self.bar.suspend(|| self.output.print_status(&line));
            }
        }
    }

    /// Shows that `done` of `of` steps are done.
    pub(super) fn set_progress(&self, done: usize, of: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.done, state.of) = (done, of);
        if of > 0 {
            self.show(&mut state, "");
        }
    }

    fn line(&self, text: &str) {
        if self.output.json {
            return;
        }
        self.bar.suspend(|| self.output.print_status(text));
    }

    fn show(&self, state: &mut State, what: &str) {
        let left = estimate_left(state, Instant::now())
            .map_or_else(String::new, |left| format!("about {} left  ", format_span(left)));
        if state.of > 0 && self.bar.length().is_none() {
            set_style(&self.bar, "{bar:24} {pos}/{len}  {msg}");
        }
        self.bar.set_length(state.of as u64);
        self.bar.set_position(state.done as u64);
        self.bar.set_message(format!("{left}{what}"));
        if self.bar.is_hidden() && state.said.is_none_or(|said| said.elapsed() >= LINE_INTERVAL) {
            state.said = Some(Instant::now());
            let so_far = match state.of {
                0 => String::new(),
                of => format!("{} of {}  ", state.done, pluralize(of, "call", "calls")),
            };
            self.line(format!("{so_far}{left}{what}").trim_end());
        }
    }
}

fn set_style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

impl State {
    const fn new(begun: Instant) -> Self {
        Self {
            begun,
            plan: None,
            waited: Duration::ZERO,
            waits_until: None,
            done_at: None,
            deployment: None,
            said: None,
            done: 0,
            of: 0,
        }
    }
}

/// Estimates the remaining time: what the known limits need for all calls that are left; or the
/// current wait and the time that calls took so far without waits, if that is longer.
fn estimate_left(state: &State, now: Instant) -> Option<Duration> {
    let wait = state.waits_until.map(|until| until.saturating_duration_since(now));
    let expected = state.done_at.map(|at| at.saturating_duration_since(now)).filter(|left| !left.is_zero());
    let rest = u32::try_from(state.of.saturating_sub(state.done)).ok()?;
    let done = u32::try_from(state.done).ok().filter(|done| *done > 2);
    let spent = now.saturating_duration_since(state.begun).saturating_sub(state.waited);
    let calls = done.map(|done| spent / done * rest);
    let waiting = match (wait, calls) {
        (None, None) => None,
        (wait, calls) => Some(wait.unwrap_or_default() + calls.unwrap_or_default()),
    };
    waiting.max(expected)
}

fn format_span(time: Duration) -> String {
    match time.as_secs() {
        0..=99 => format!("{} s", time.as_secs().max(1)),
        100..=7_199 => format!("{} min", time.as_secs().div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3_600)),
    }
}

impl ProgressListener for Progress<'_> {
    fn on_event(&self, told: &ProgressEvent<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        match told {
            ProgressEvent::Begun { deployment, resumed } => {
                state.deployment = Some((*deployment).to_owned());
                if *resumed {
                    self.line(&format!("resuming deployment {deployment}, which was interrupted"));
                }
            }
            ProgressEvent::Expecting { left } => state.done_at = Some(Instant::now() + *left),
            ProgressEvent::Postponed(step) => {
                let what = step.target.with_action(step.action);
                self.line(&format!("{what} has to wait for long, so it goes last"));
            }
            ProgressEvent::Reading if state.of == 0 => self.show(state, "reading the guild"),
            ProgressEvent::Planned { plan, calls, .. } => {
                if let Some(detail) = state.plan.take() {
                    self.print_plan(plan, detail);
                }
                state.of = state.done + calls;
                if *calls > 0 {
                    self.show(state, "");
                }
            }
            ProgressEvent::Waiting { because, left } => {
                state.waits_until = left.map(|left| Instant::now() + left);
                self.show(state, because);
            }
            // The reason is in the error at the end.
            ProgressEvent::Failed { step, .. } => {
                state.of = state.of.saturating_sub(1);
                self.line(&format!("{} failed", step.target.with_action(step.action)));
            }
            ProgressEvent::Applied { step, took } => {
                state.done += 1;
                if state.waits_until.take().is_some() {
                    state.waited += *took;
                }
                self.show(state, &step.target.with_action(step.action));
            }
            ProgressEvent::Replanning { because } => self.line(&format!("planning again: {because}")),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OPS-19: the time left knows a wait as soon as it begins, and waits that are over do not
    /// count for the calls that are left.
    #[test]
    fn ops_19_the_time_left_knows_the_waits() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let mut state = State { of: 10, ..State::new(begun) };
        assert_eq!(estimate_left(&state, begun), None, "nothing is known yet");
        state.waits_until = Some(after(600));
        assert_eq!(estimate_left(&state, begun), Some(Duration::from_secs(600)));
        let mut over = State { waited: Duration::from_secs(600), waits_until: None, done: 5, ..state };
        assert_eq!(estimate_left(&over, after(605)), Some(Duration::from_secs(5)), "a second for each call");
        over.done_at = Some(after(700));
        assert_eq!(estimate_left(&over, after(605)), Some(Duration::from_secs(95)), "limits are to come");
    }
}
