//! The progress of a deployment: a progress bar on a terminal, a line now and then elsewhere,
//! nothing with `--json`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidegate_discord::deploy::{ProgressEvent, ProgressListener};
use tokio::time::Instant;

use crate::output::Output;

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
    said: Option<Instant>,
    done: usize,
    of: usize,
}

impl<'a> Progress<'a> {
    pub(super) fn new(output: &'a Output) -> Self {
        let target = if output.json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        let state = State { begun: Instant::now(), said: None, done: 0, of: 0 };
        Self { output, bar, state: Mutex::new(state) }
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
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
        let left = estimate_left(state)
            .map_or_else(String::new, |left| format!("about {} left  ", format_span(left)));
        self.bar.set_length(state.of as u64);
        self.bar.set_position(state.done as u64);
        self.bar.set_message(format!("{left}{what}"));
        if self.bar.is_hidden() && state.said.is_none_or(|said| said.elapsed() >= LINE_INTERVAL) {
            state.said = Some(Instant::now());
            let so_far = match state.of {
                0 => String::new(),
                of => format!("{} of {of} calls  ", state.done),
            };
            self.line(format!("{so_far}{left}{what}").trim_end());
        }
    }
}

/// Estimates the remaining time from the time taken so far.
fn estimate_left(state: &State) -> Option<Duration> {
    let done = u32::try_from(state.done).ok().filter(|done| *done > 2)?;
    let rest = u32::try_from(state.of.saturating_sub(state.done)).ok()?;
    Some(state.begun.elapsed() / done * rest)
}

fn format_span(time: Duration) -> String {
    match time.as_secs() {
        0..=99 => format!("{} s", time.as_secs().max(1)),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

impl ProgressListener for Progress<'_> {
    fn on_event(&self, told: &ProgressEvent<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *state;
        match told {
            ProgressEvent::Begun { deployment, resumed: true } => {
                self.line(&format!("resuming deployment {deployment}, which was interrupted"));
            }
            ProgressEvent::Planned { calls, .. } => {
                state.of = state.done + calls;
                if *calls > 0 {
                    self.show(state, "");
                }
            }
            ProgressEvent::Waiting { because } => {
                self.show(state, because);
            }
            ProgressEvent::Applied { step, .. } => {
                state.done += 1;
                self.show(state, &format!("{} {}", step.action.as_str(), step.target));
            }
            ProgressEvent::Replanning { because } => self.line(&format!("planning again: {because}")),
            _ => {}
        }
    }
}
