//! The words of the pages for operators, in English and Russian. What the engine says about an
//! operation, ids, names and texts of upstreams stay as they are.

mod english;
mod russian;

use super::action::{ACTION_COUNT, Action, FIGURES};
use super::words::Language;

/// The words of one action: what its button says, what its confirm step asks about `{}`, and what
/// it does. An action about all operations of a filter has a question of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActionWords {
    pub label: &'static str,
    pub question: &'static str,
    pub effect: &'static str,
}

/// Every word, so that a language that lacks one does not compile.
#[derive(Debug)]
pub(crate) struct OperatorWords {
    pub overview: &'static str,
    pub operations: &'static str,
    pub operation: &'static str,
    pub groups: &'static str,
    pub group: &'static str,
    pub limits: &'static str,
    pub limit: &'static str,
    pub audit: &'static str,
    pub search: &'static str,
    pub find: &'static str,
    pub counts: &'static str,
    pub counts_now: &'static str,
    pub counts_in_total: &'static str,
    pub counts_in_total_about: &'static str,
    pub needs_you: &'static str,
    pub nothing_needed: &'static str,
    /// In the place of a card that is gone, while the page is open.
    pub nothing_to_decide: &'static str,
    /// The same while some decisions have no card.
    pub no_longer_shown: &'static str,
    pub no_provider_for: &'static str,
    pub provider_fails: &'static str,
    pub tried_again_in: &'static str,
    pub tried_again_now: &'static str,
    /// Before since when a provider, or a limit, is closed after errors.
    pub failing: &'static str,
    pub generations_waiting: &'static str,
    /// In a row of the overview whose group has nothing left to do.
    pub queue_is_empty: &'static str,
    pub not_known_now: &'static str,
    pub last_hour: &'static str,
    pub most: &'static str,
    pub as_table: &'static str,
    pub limits_nearest: &'static str,
    pub change_limits: &'static str,
    pub groups_by_harm: &'static str,
    /// The line for what came up while the page was open; `{}` is how many.
    pub newcomers: &'static str,
    pub last_operations: &'static str,
    pub search_operations: &'static str,
    pub workers: &'static str,
    pub no_work: &'static str,
    pub executed_by: &'static str,
    pub for_a_worker: &'static str,
    pub awaiting: &'static str,
    pub last_asked: &'static str,
    pub remote_workers: &'static str,
    pub this_server: &'static str,
    pub never_asked: &'static str,
    pub no_worker_asks: &'static str,
    pub nodes: &'static str,
    pub node: &'static str,
    pub this_node: &'static str,
    pub address: &'static str,
    pub partitions: &'static str,
    pub state_label: &'static str,
    pub any: &'static str,
    pub filter: &'static str,
    pub show_all: &'static str,
    pub show: &'static str,
    pub more_than_at_once: &'static str,
    pub older: &'static str,
    pub next: &'static str,
    pub error_text: &'static str,
    /// The labels of filters that links have.
    pub linked_filters: [&'static str; 6],
    pub older_than: &'static str,
    pub nothing_matches: &'static str,
    /// After a search for the text of an error, which is what everything else is searched for as.
    pub search_by_field: &'static str,
    /// After an action about all that matched.
    pub nothing_left: &'static str,
    pub nothing_matches_yet: &'static str,
    pub no_operations: &'static str,
    pub no_groups: &'static str,
    pub no_groups_in_state: &'static str,
    pub no_groups_named: &'static str,
    pub names_begin_with: &'static str,
    pub names_contain: &'static str,
    pub no_such_group: &'static str,
    pub key_is_gone: &'static str,
    pub idle_group: &'static str,
    /// A template: a limit, and its figures.
    pub limit_is_now: &'static str,
    pub no_limits: &'static str,
    pub no_commands: &'static str,
    pub audit_about: &'static str,
    pub decided: &'static str,
    /// Before what an operator decided.
    pub decided_as: &'static str,
    /// Before who decided.
    pub decided_by: &'static str,
    pub no_answer_came: &'static str,
    pub none_came: &'static str,
    pub request: &'static str,
    pub request_id: &'static str,
    pub upstream: &'static str,
    pub kind: &'static str,
    pub key: &'static str,
    pub job: &'static str,
    pub deployment: &'static str,
    pub result: &'static str,
    pub behind: &'static str,
    pub attempt: &'static str,
    pub attempts: &'static str,
    pub attempts_shown: &'static str,
    pub begun: &'static str,
    pub waited: &'static str,
    pub took: &'static str,
    pub cost: &'static str,
    pub age: &'static str,
    pub accepted: &'static str,
    pub ended: &'static str,
    /// Before the time that something has lasted.
    pub lasting: &'static str,
    pub ago: &'static str,
    pub within: &'static str,
    /// Before an expected time until something.
    pub in_about: &'static str,
    /// Before the least time until something.
    pub at_earliest_in: &'static str,
    pub now: &'static str,
    pub total: &'static str,
    pub of: &'static str,
    /// A template: how much is left of how much.
    pub left_of: &'static str,
    pub last_fault: &'static str,
    pub may_have_happened: &'static str,
    pub failed_lately: &'static str,
    /// Before how long ago the first and the last of several were.
    pub the_first: &'static str,
    pub the_last: &'static str,
    pub would_fail_again: &'static str,
    pub dismissed_lately: &'static str,
    pub other_causes: &'static str,
    pub failed_found: &'static str,
    /// Before the time of the last failure that is dismissed.
    pub failed_by: &'static str,
    pub dismissed_by: &'static str,
    pub depth: &'static str,
    pub why: &'static str,
    pub drains: &'static str,
    pub paused_by: &'static str,
    pub head_of_queue: &'static str,
    pub left: &'static str,
    pub least_left: &'static str,
    pub refill: &'static str,
    pub waiting: &'static str,
    pub in_flight: &'static str,
    pub source: &'static str,
    pub opens: &'static str,
    pub full_again: &'static str,
    pub open: &'static str,
    pub closed: &'static str,
    /// A limit that was closed after errors, and whose next call decides whether it opens.
    pub half_open: &'static str,
    pub throttled_lately: &'static str,
    pub changed_by_operator: &'static str,
    pub journey: &'static str,
    pub not_recorded: &'static str,
    pub not_recorded_about: &'static str,
    /// Before what is waited for.
    pub waits_for: &'static str,
    pub may_happen_twice: &'static str,
    pub paid_again: &'static str,
    pub not_sent: &'static str,
    pub not_sent_about: &'static str,
    pub millisecond: &'static str,
    pub bytes: &'static str,
    pub beginning_of: &'static str,
    pub body_not_shown: &'static str,
    pub as_json: &'static str,
    pub on_command_line: &'static str,
    pub decide: &'static str,
    pub actions: &'static str,
    pub reason: &'static str,
    pub optional: &'static str,
    pub recorded_as: &'static str,
    /// The link of a confirm step that does nothing, and shows the subject.
    pub leave_it: &'static str,
    pub confirm_again: &'static str,
    pub not_possible: &'static str,
    /// The same about an operation or a group, with its state.
    pub not_possible_as: &'static str,
    /// Before a group is resumed whose first operation has an unknown outcome.
    pub still_undecided: &'static str,
    pub response_status: &'static str,
    pub response_body: &'static str,
    pub done: &'static str,
    pub nothing_changed: &'static str,
    /// The outcome of a command that changed nothing.
    pub changed_nothing: &'static str,
    pub last_command: &'static str,
    pub provider_has_more: &'static str,
    /// `{}` is how many of those that would run again.
    pub of_which_fail_again: &'static str,
    pub refused: &'static str,
    pub when: &'static str,
    pub who: &'static str,
    pub command: &'static str,
    pub subject: &'static str,
    pub outcome: &'static str,
    /// The steps of a way, in the order of `Step`.
    pub steps: [&'static str; 6],
    pub charts: [&'static str; 4],
    pub filters: [&'static str; 4],
    /// What the figures of a limit count.
    figures: [&'static str; FIGURES.len()],
    action_words: [ActionWords; ACTION_COUNT],
    states: [(&'static str, &'static str); 20],
    sources: [(&'static str, &'static str); 3],
    /// What an operation waits for.
    waits: [(&'static str, &'static str); 9],
}

impl Language {
    pub(crate) const fn operator_words(self) -> &'static OperatorWords {
        match self {
            Self::English => &english::WORDS,
            Self::Russian => &russian::WORDS,
        }
    }
}

impl OperatorWords {
    pub(super) const fn action(&self, action: Action) -> ActionWords {
        self.action_words[action as usize]
    }

    /// What a figure of a limit counts.
    pub(super) fn figure_about(&self, name: &str) -> &'static str {
        let place = FIGURES.iter().position(|(known, _)| *known == name);
        place.map_or("", |place| self.figures[place])
    }

    /// The word for a state, as the API names it.
    pub(super) fn state<'a>(&self, word: &'a str) -> &'a str {
        look_up(&self.states, word)
    }

    /// The word for what an operation waits for, as the API names it.
    pub(super) fn wait<'a>(&self, word: &'a str) -> &'a str {
        look_up(&self.waits, word)
    }

    /// The word for where the figures of a limit come from.
    pub(super) fn source_of<'a>(&self, word: &'a str) -> &'a str {
        look_up(&self.sources, word)
    }
}

fn look_up<'a>(table: &[(&str, &'static str)], word: &'a str) -> &'a str {
    table.iter().find(|(known, _)| *known == word).map_or(word, |(_, shown)| *shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_in_the_language_and_unknown_ones_stay() {
        assert_eq!(Language::English.operator_words().state("failed"), "failed");
        assert_eq!(Language::Russian.operator_words().state("failed"), "ошибка");
        assert_eq!(Language::Russian.operator_words().state("<new>"), "<new>");
    }

    #[test]
    fn the_words_of_an_action_are_its_own() {
        let words = Language::English.operator_words();
        assert_eq!(words.action(Action::Pause).label, "Pause");
        assert_eq!(words.action(Action::SendAgain).label, "Send again");
        assert_eq!(words.action(Action::CompleteKey).label, "Record response");
    }

    /// OPS-23: a decision has the same words on its button and in the question of its confirm step.
    #[test]
    fn ops_23_a_decision_is_asked_for_in_its_own_words() {
        for language in [Language::English, Language::Russian] {
            for action in [Action::Happened, Action::DidNotHappen] {
                let ActionWords { label, question, .. } = language.operator_words().action(action);
                assert_eq!(question, format!("{label}: {{}}?"));
            }
        }
    }
}
