//! Upstreams that answer for a type of entities: `[[source]]`.

use std::collections::BTreeMap;

use tidegate_core::bounds::ENTITY_FIELDS_MAX;
use tidegate_core::hydration::check_entity_type;
use tidegate_upstream::http::UpstreamConfig;
use tidegate_upstream::{HttpRequest, Method};

use super::ParseContext;
use super::problem::ConfigProblem;
use super::section::Section;
use super::value::LocatedValue;

/// Where the id of the entity goes.
pub(crate) const ID: &str = "{id}";
/// Statuses that say nothing about an entity: who asks, how often, or how slowly.
const NEVER_ABSENT: [u16; 4] = [401, 408, 425, 429];
/// How `fields` is written: a name, and where its value is.
const FIELDS_EXAMPLE: &str = r#"{ title = "/title" }"#;
const NOT_FOUND_DEFAULT: [u16; 2] = [404, 410];
const INACCESSIBLE_DEFAULT: [u16; 1] = [403];

/// An upstream that answers for a type of entities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceConfig {
    /// The type of entity.
    pub entity_type: String,
    /// The name of the upstream that is read.
    pub upstream: String,
    /// Path and query of a read, with `{id}` where the id goes.
    pub path: String,
    /// The GraphQL query that is sent there; without one, it is a GET.
    pub query: Option<GraphqlQuery>,
    /// The JSON pointer to the entity in a response.
    pub data: String,
    /// The JSON pointer to its version, from the entity on.
    pub version: Option<String>,
    /// Its fields by name, as JSON pointers from the entity on; if empty, those of the entity
    /// itself.
    pub fields: BTreeMap<String, String>,
    /// Statuses that mean that there is no such entity.
    pub not_found: Vec<u16>,
    /// Statuses that mean that there may be one, but not for this caller.
    pub inaccessible: Vec<u16>,
}

impl SourceConfig {
    /// A source that reads entities with a GET, each from a whole response.
    #[must_use]
    pub fn new(entity_type: impl Into<String>, upstream: impl Into<String>, path: impl Into<String>) -> Self {
        Self {
            entity_type: entity_type.into(),
            upstream: upstream.into(),
            path: path.into(),
            query: None,
            data: String::new(),
            version: None,
            fields: BTreeMap::new(),
            not_found: NOT_FOUND_DEFAULT.to_vec(),
            inaccessible: INACCESSIBLE_DEFAULT.to_vec(),
        }
    }
}

/// A GraphQL query with one variable, `$id`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphqlQuery {
    /// The query.
    pub text: String,
    /// The value of `$id`, with `{id}` where the id goes.
    pub id: String,
}

/// Reads all sources, which read these upstreams.
pub(super) fn read_all(
    root: &mut Section<'_>,
    upstreams: &[UpstreamConfig],
    reading: &mut ParseContext<'_>,
) -> Vec<SourceConfig> {
    let problems = &mut reading.problems;
    let sections = root.sections("source", problems);
    reject_second_sources(&sections, problems);
    sections.into_iter().filter_map(|section| read(section, upstreams, problems)).collect()
}

fn read(
    mut section: Section<'_>,
    upstreams: &[UpstreamConfig],
    problems: &mut Vec<ConfigProblem>,
) -> Option<SourceConfig> {
    let entity_type = required(&mut section, "entity_type", problems);
    let upstream = required(&mut section, "upstream", problems);
    let path = required(&mut section, "path", problems);
    let query = section.text("query", problems);
    let query_id = section.text("query_id", problems);
    let data = section.text("data", problems);
    let version = section.text("version", problems);
    let fields = section.texts_by_name("fields", FIELDS_EXAMPLE, problems);
    let not_found = section.integers("not_found", 400..=499, problems);
    let inaccessible = section.integers("inaccessible", 400..=499, problems);
    check_names(entity_type.as_ref(), upstream.as_ref(), upstreams, problems);
    if let Some(path) = &path {
        problems.extend(path_problem(path, query.is_some()));
    }
    if let (Some(found), None) = (&query_id, &query) {
        problems.push(found.problem("It is the id in a query, and there is no key query."));
    }
    for found in data.iter().chain(&version) {
        problems.extend(pointer_problem(found, &found.value));
    }
    problems.extend(fields.as_ref().and_then(fields_problem));
    problems.extend(not_found.iter().chain(&inaccessible).filter_map(status_problem));
    section.finish(problems);
    let text = |found: LocatedValue<String>| found.value;
    let query = query
        .map(|query| GraphqlQuery { text: query.value, id: query_id.map_or_else(|| ID.to_owned(), text) });
    let usual = SourceConfig::new(entity_type?.value, upstream?.value, path?.value);
    Some(SourceConfig {
        query,
        data: data.map(text).unwrap_or_default(),
        version: version.map(text),
        fields: fields.map(|found| found.value).unwrap_or_default(),
        not_found: not_found.map_or(usual.not_found, |found| found.value),
        inaccessible: inaccessible.map_or(usual.inaccessible, |found| found.value),
        ..usual
    })
}

fn required(
    section: &mut Section<'_>,
    key: &'static str,
    problems: &mut Vec<ConfigProblem>,
) -> Option<LocatedValue<String>> {
    let found = section.text(key, problems);
    if found.is_none() && !section.has(key) {
        problems.push(section.problem(format!("The key {key} is missing.")));
    }
    found
}

/// Reports types that have more than one source.
fn reject_second_sources(sections: &[Section<'_>], problems: &mut Vec<ConfigProblem>) {
    for (index, section) in sections.iter().enumerate() {
        let Some(entity_type) = section.peek("entity_type") else { continue };
        if sections[..index].iter().any(|earlier| earlier.peek("entity_type") == Some(entity_type)) {
            let message = format!("There is another source of {entity_type:?}.");
            problems.push(section.problem_at("entity_type", message));
        }
    }
}

fn check_names(
    entity_type: Option<&LocatedValue<String>>,
    upstream: Option<&LocatedValue<String>>,
    upstreams: &[UpstreamConfig],
    problems: &mut Vec<ConfigProblem>,
) {
    if let Some(found) = entity_type
        && let Err(error) = check_entity_type(&found.value)
    {
        problems.push(found.problem(format!("It is refused: {error}.")));
    }
    if let Some(found) =
        upstream.filter(|found| upstreams.iter().all(|upstream| upstream.name != found.value))
    {
        problems.push(found.problem(format!("There is no upstream {:?}.", found.value)));
    }
}

fn fields_problem(found: &LocatedValue<BTreeMap<String, String>>) -> Option<ConfigProblem> {
    if found.value.len() > ENTITY_FIELDS_MAX {
        return Some(found.problem(format!("There are at most {ENTITY_FIELDS_MAX} fields.")));
    }
    found.value.values().find_map(|pointer| pointer_problem(found, pointer))
}

/// A path has the id once, unless a query has it, and is one that an operation may have.
fn path_problem(path: &LocatedValue<String>, has_query: bool) -> Option<ConfigProblem> {
    let ids = path.value.matches(ID).count();
    if ids > 1 || (ids == 0 && !has_query) {
        return Some(path.problem("It must contain {id} once: that is where the id goes."));
    }
    let example = path.value.replace(ID, "1");
    let refused = HttpRequest::new(Method::Get, example.as_str()).validate().err();
    refused.map(|refusal| path.problem(refusal.message))
}

fn pointer_problem<T>(found: &LocatedValue<T>, pointer: &str) -> Option<ConfigProblem> {
    let is_pointer = pointer.is_empty() || pointer.starts_with('/');
    (!is_pointer).then(|| found.problem("A JSON pointer is empty or starts with a slash, as in /product/id."))
}

fn status_problem(found: &LocatedValue<Vec<u16>>) -> Option<ConfigProblem> {
    let status = found.value.iter().find(|status| NEVER_ABSENT.contains(status))?;
    Some(found.problem(format!("{status} says nothing about an entity, so it cannot be remembered.")))
}
