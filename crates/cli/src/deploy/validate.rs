//! `deploy validate`: reads and checks templates, without a token, a guild or a store.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_discord::template::{Template, TemplateProblem, TemplateProblems};
use tidegate_server::ErrorCode;

use super::template_file::{TemplateText, read_templates};
use crate::error::CliError;
use crate::output::{Output, pluralize};

/// Checks a template, or every template of a folder, and reports all problems of all of them.
pub(super) async fn run(place: &Path, output: &Output) -> Result<(), CliError> {
    let texts = read_templates(place).await?;
    let read: Vec<_> =
        texts.iter().map(|TemplateText { file, text }| (file, Template::read(file, text))).collect();
    let wrong: Vec<&TemplateProblems> = read.iter().filter_map(|(_, read)| read.as_ref().err()).collect();
    let valid = read.iter().filter_map(|(file, read)| Some((file.as_str(), read.as_ref().ok()?)));
    if output.json && wrong.is_empty() {
        let templates: Vec<_> = valid.map(|(file, template)| template_json(file, template)).collect();
        output.print_json(&json!({ "templates": templates }));
    } else if !output.json {
        valid.for_each(|(file, template)| output.print_data(&format!("{file}: valid: {}", counts(template))));
    }
    if wrong.is_empty() { Ok(()) } else { Err(template_errors(place, &wrong, output)) }
}

fn counts(template: &Template) -> String {
    let counts = [
        pluralize(template.roles.len(), "role", "roles"),
        pluralize(template.categories.len(), "category", "categories"),
        pluralize(template.channels.len(), "channel", "channels"),
        pluralize(template.messages.len(), "message", "messages"),
    ];
    counts.join(", ")
}

fn template_json(file: &str, template: &Template) -> Value {
    json!({
        "file": file, "roles": template.roles.len(), "categories": template.categories.len(),
        "channels": template.channels.len(), "messages": template.messages.len(),
    })
}

/// Prints the problems line by line, and returns the error with all of them for scripts.
fn template_errors(place: &Path, wrong: &[&TemplateProblems], output: &Output) -> CliError {
    wrong.iter().for_each(|problems| output.print_remark(&problems.to_string()));
    let list: Vec<Value> = wrong.iter().flat_map(|problems| problems_json(problems)).collect();
    let problems = pluralize(list.len(), "problem", "problems");
    let files = match wrong.len() {
        1 => wrong[0].file.clone(),
        files => format!("{files} templates of {}", place.display()),
    };
    CliError::new(format!("{problems} in {files}."))
        .code(ErrorCode::BadTemplate.to_string())
        .detail(json!({ "problems": list }))
}

fn problems_json(problems: &TemplateProblems) -> impl Iterator<Item = Value> {
    let one = move |problem: &TemplateProblem| {
        json!({
            "file": problems.file, "line": problem.at.line, "column": problem.at.column,
            "path": problem.path.to_string(), "message": problem.message,
        })
    };
    problems.list.iter().map(one)
}
