//! A provider by configuration alone: the tables of `adapter = "generic"`, which say how its API is
//! called and read.

use tidegate_images::generic::{
    AuthConfig, CancelConfig, FieldConfig, PollConfig, StateConfig, SubmitConfig, WebhookVerification,
};
use tidegate_images::{GenericConfig, ThrottleScope};

use super::super::problem::ConfigProblem;
use super::super::section::Section;

/// The keys that only this adapter has; all but the last two are tables.
pub(super) const KEYS: [&str; 8] =
    ["auth", "submit", "poll", "cancel", "fields", "states", "webhook", "throttle_scope"];

const WEBHOOKS: [(&str, WebhookVerification); 2] =
    [("token", WebhookVerification::Token), ("standard", WebhookVerification::Standard)];
const SCOPES: [(&str, ThrottleScope); 2] = [("key", ThrottleScope::Key), ("account", ThrottleScope::Account)];

/// Reads the tables, and checks that they can work together.
pub(super) fn read(
    name: &str,
    base_url: Option<String>,
    section: &mut Section<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<GenericConfig> {
    let auth = read_auth(section, problems);
    let submit = read_submit(section, problems);
    let poll = read_path("poll", section, problems).map(|path| PollConfig { path });
    let cancel = section.has("cancel").then(|| read_cancel(section, problems));
    let fields = read_fields(section, problems);
    let states = read_states(section, problems);
    let webhook = section.word("webhook", &WEBHOOKS, problems).unwrap_or_default();
    let throttle_scope = section.word("throttle_scope", &SCOPES, problems).unwrap_or(ThrottleScope::Key);
    let config = GenericConfig {
        name: name.to_owned(),
        base_url: base_url?,
        auth,
        submit: submit?,
        poll: poll?,
        cancel: match cancel {
            Some(cancel) => Some(cancel?),
            None => None,
        },
        fields: fields?,
        states: states?,
        webhook,
        throttle_scope,
        max_concurrent: None,
        rpm: None,
    };
    let wrong = config.problems();
    for error in &wrong {
        let (table, key) = error.field.split_once('.').unwrap_or((error.field, ""));
        let message = format!("{}: {}.", error.field, error.problem);
        let problem = match KEYS.iter().find(|known| **known == table) {
            Some(table) => section.section(table, problems).problem_at(key, message),
            None => section.problem_at(table, message),
        };
        problems.push(problem);
    }
    wrong.is_empty().then_some(config)
}

/// Reads a required text of a table.
fn required(table: &mut Section<'_>, key: &'static str, problems: &mut Vec<ConfigProblem>) -> Option<String> {
    check_present(table, key, problems);
    table.text(key, problems).map(|found| found.value)
}

/// Reads a required list of a table.
fn required_words(
    table: &mut Section<'_>,
    key: &'static str,
    problems: &mut Vec<ConfigProblem>,
) -> Option<Vec<String>> {
    check_present(table, key, problems);
    table.texts(key, problems).map(|found| found.value)
}

fn check_present(table: &Section<'_>, key: &str, problems: &mut Vec<ConfigProblem>) {
    if !table.has(key) {
        problems.push(table.problem(format!("The key {key} is missing.")));
    }
}

fn optional(table: &mut Section<'_>, key: &'static str, problems: &mut Vec<ConfigProblem>) -> Option<String> {
    table.text(key, problems).map(|found| found.value)
}

fn words(table: &mut Section<'_>, key: &'static str, problems: &mut Vec<ConfigProblem>) -> Vec<String> {
    table.texts(key, problems).map(|found| found.value).unwrap_or_default()
}

fn read_auth(section: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> AuthConfig {
    let mut table = section.section("auth", problems);
    let usual = AuthConfig::default();
    let header = optional(&mut table, "header", problems);
    let prefix = optional(&mut table, "prefix", problems);
    table.finish(problems);
    match header {
        Some(header) => AuthConfig { header, prefix: prefix.unwrap_or_default() },
        None => AuthConfig { prefix: prefix.unwrap_or(usual.prefix), ..usual },
    }
}

fn read_submit(section: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> Option<SubmitConfig> {
    let mut table = section.section("submit", problems);
    let path = required(&mut table, "path", problems);
    let [input_field, model_field, webhook_field, webhook_query, attempt_header] =
        ["input_field", "model_field", "webhook_field", "webhook_query", "attempt_header"]
            .map(|key| optional(&mut table, key, problems));
    table.finish(problems);
    Some(SubmitConfig { path: path?, input_field, model_field, webhook_field, webhook_query, attempt_header })
}

fn read_path(
    name: &'static str,
    section: &mut Section<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<String> {
    let mut table = section.section(name, problems);
    let path = required(&mut table, "path", problems);
    table.finish(problems);
    path
}

fn read_cancel(section: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> Option<CancelConfig> {
    let mut table = section.section("cancel", problems);
    let (method, path) = (required(&mut table, "method", problems), required(&mut table, "path", problems));
    table.finish(problems);
    Some(CancelConfig { method: method?, path: path? })
}

fn read_fields(section: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> Option<FieldConfig> {
    let mut table = section.section("fields", problems);
    let (id, status) = (required(&mut table, "id", problems), required(&mut table, "status", problems));
    let files = required_words(&mut table, "files", problems);
    let [error, queue_position, percent, retry_after] =
        ["error", "queue_position", "percent", "retry_after"].map(|key| optional(&mut table, key, problems));
    table.finish(problems);
    Some(FieldConfig { id: id?, status: status?, files: files?, error, queue_position, percent, retry_after })
}

fn read_states(section: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> Option<StateConfig> {
    let mut table = section.section("states", problems);
    let succeeded = required_words(&mut table, "succeeded", problems);
    let [queued, running, failed, input, content, canceled] =
        ["queued", "running", "failed", "input", "content", "canceled"]
            .map(|key| words(&mut table, key, problems));
    table.finish(problems);
    Some(StateConfig { queued, running, succeeded: succeeded?, failed, input, content, canceled })
}
