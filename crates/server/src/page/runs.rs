//! The runs of an operation: it begins another one each time that it is re-run, and counts its
//! attempts anew.

use serde_json::Value;
use tidegate_core::Time;

use super::action::Action;
use super::audit::{action_of, is_done};
use super::parts::filled;
use super::view::{items, number, text, time_in};
use super::words::Words;

/// What is known of one attempt.
#[derive(Clone, Copy, Debug)]
struct AttemptMark {
    /// Its number in its run.
    number: u64,
    /// When it began, or else ended.
    at: Option<Time>,
    /// Whether its run may have ended with it: then one with the same number is of another run. A
    /// throttled attempt passes its number on.
    may_be_last: bool,
}

/// The runs of an operation, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Runs {
    /// The run of each attempt; the first is 1.
    pub of_attempts: Vec<u64>,
    /// The last one.
    pub last: u64,
}

impl Runs {
    /// The runs of these attempts, in order, with the times of the re-runs between them.
    fn new(attempts: impl IntoIterator<Item = AttemptMark>, reruns: &[Time]) -> Self {
        let mut runs = Self { of_attempts: Vec::new(), last: 1 };
        let mut before: Option<AttemptMark> = None;
        for attempt in attempts {
            let starts_anew = before.is_some_and(|before| {
                attempt.number < before.number || (attempt.number == before.number && before.may_be_last)
            });
            let earlier = reruns.iter().filter(|rerun| attempt.at.is_some_and(|at| at > **rerun)).count();
            runs.last = (runs.last + u64::from(starts_anew)).max(earlier as u64 + 1);
            runs.of_attempts.push(runs.last);
            before = Some(attempt);
        }
        runs.last = runs.last.max(reruns.len() as u64 + 1);
        runs
    }

    /// The runs of an operation; `commands` is a page of those about it.
    pub(super) fn of(operation: &Value, commands: Option<&Value>) -> Self {
        let marks = items(operation, "attempts").iter().map(|attempt| AttemptMark {
            number: number(attempt, "attempt"),
            at: ["granted_at", "accepted_at", "ended_at"].iter().find_map(|name| time_in(attempt, name)),
            may_be_last: matches!(text(attempt, "state"), "failed" | "canceled" | "unknown"),
        });
        // Of more commands than a page has, it is not known how many were re-runs.
        let commands = commands.filter(|page| page["next_cursor"].is_null());
        let commands = commands.map_or(&[][..], |page| items(page, "entries"));
        let reruns: Vec<Time> = commands.iter().filter(is_rerun).filter_map(|it| time_in(it, "at")).collect();
        Self::new(marks, &reruns)
    }
}

fn is_rerun(entry: &&Value) -> bool {
    let action = action_of(entry);
    is_done(entry) && matches!(action, Some(Action::Rerun | Action::RerunFailed | Action::RerunAll))
}

/// The number of an attempt, with its run if that is not the only one.
pub(super) fn attempt_number(words: &Words, run: u64, last: u64, attempt: u64) -> String {
    if last > 1 {
        filled(words.run_and_attempt, [&run.to_string(), &attempt.to_string()])
    } else {
        attempt.to_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn runs(attempts: &[(u64, u64, bool)], reruns: &[u64]) -> (Vec<u64>, u64) {
        let marks = attempts.iter().map(|&(number, at, may_be_last)| AttemptMark {
            number,
            at: Some(Time::from_millis(at)),
            may_be_last,
        });
        let reruns: Vec<Time> = reruns.iter().map(|at| Time::from_millis(*at)).collect();
        let Runs { of_attempts, last } = Runs::new(marks, &reruns);
        (of_attempts, last)
    }

    /// OPS-23: attempts that are counted anew are of another run.
    #[test]
    fn ops_23_a_rerun_begins_another_run() {
        let (done, goes_on) = (true, false);
        assert_eq!(runs(&[], &[]), (vec![], 1));
        assert_eq!(runs(&[(1, 10, goes_on), (2, 20, done)], &[]), (vec![1, 1], 1));
        assert_eq!(runs(&[(1, 10, done), (1, 30, done)], &[]), (vec![1, 2], 2), "without the audit log");
        assert_eq!(runs(&[(1, 10, goes_on), (1, 12, done)], &[]), (vec![1, 1], 1), "it was throttled");
        assert_eq!(runs(&[(2, 10, goes_on), (1, 30, done)], &[20]), (vec![1, 2], 2));
        assert_eq!(runs(&[(1, 10, done), (2, 50, done)], &[20, 40]), (vec![1, 3], 3), "one left no attempt");
        assert_eq!(runs(&[(1, 10, done)], &[20]), (vec![1], 2), "it has not begun an attempt");
    }

    #[test]
    fn only_commands_that_were_carried_out_begin_a_run() {
        let entry = |action: &str, status: u64| json!({ "kind": "operations", "action": action, "status": status, "at": "1970-01-01T00:00:07Z" });
        let page = json!({ "entries": [entry("rerun", 200), entry("rerun", 409), entry("cancel", 200)] });
        let operation =
            json!({ "attempts": [{ "attempt": 1, "state": "failed", "ended_at": "1970-01-01T00:00:01Z" }] });
        assert_eq!(Runs::of(&operation, Some(&page)), Runs { of_attempts: vec![1], last: 2 });
        assert_eq!(Runs::of(&operation, None).last, 1);
    }
}
