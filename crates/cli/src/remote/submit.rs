//! `op submit`: submits an operation, and waits for it to end if asked to.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use clap::Args;
use hyper::Method;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::op::show;
use crate::client::{Client, encode_segment};
use crate::error::CliError;
use crate::output::{Output, text};
use tidegate_core::bounds::WAIT_MS_MAX;

pub(super) const EXAMPLES: &str = "\
Examples:
  tidegate op submit GET /status --upstream echo --wait-ms 5000
  tidegate op submit POST /orders --upstream echo --group shop:acme --key order-1001 --body '{\"sku\":\"a-1\"}'
  tidegate op submit --kind resize --group user:7 --body '{\"image\":\"a.png\"}'
  tidegate op submit --kind shopify.bulk --upstream acme-shop --body '{\"query\":\"{ products { edges { node { id } } } }\"}'

docs/operations.md describes every field.";

#[derive(Args, Debug)]
pub(crate) struct SubmitArgs {
    /// The method: GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.
    #[arg(required_unless_present = "kind")]
    method: Option<String>,
    /// The path below the upstream's base_url, with its query. Starts with /.
    #[arg(required_unless_present = "kind")]
    path: Option<String>,
    /// A kind other than http, such as shopify.bulk. Its request is the JSON given with --body;
    /// without --upstream, that is the payload for its remote workers.
    #[arg(long, value_name = "KIND", requires = "body", conflicts_with_all = ["method", "path", "headers"])]
    kind: Option<String>,
    /// The name of the upstream in the server's configuration.
    #[arg(long, value_name = "NAME", required_unless_present = "kind")]
    upstream: Option<String>,
    /// The group within which operations run in order. Default: the upstream's name, or the kind's.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// A header, such as "accept: text/plain". May be repeated.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// The body: JSON, or any text. @FILE reads a file, - reads stdin.
    #[arg(long, value_name = "BODY")]
    body: Option<String>,
    /// The dedupe key: two submissions with the same key are one operation.
    #[arg(long)]
    key: Option<String>,
    /// What it costs of a limit, such as points=52. Default: 1 of each. May be repeated.
    #[arg(long = "cost", value_name = "LIMIT=TOKENS")]
    costs: Vec<String>,
    /// The maximum number of attempts. Default: 8.
    #[arg(long, value_name = "N")]
    max_attempts: Option<u64>,
    /// Fail unless it can start within this time. Default: no deadline.
    #[arg(long, value_name = "MS")]
    deadline_ms: Option<u64>,
    /// Fail unless it can start before this time, such as 2031-05-06T07:08:09Z. Instead of
    /// --deadline-ms.
    #[arg(long, value_name = "TIME", conflicts_with = "deadline_ms")]
    deadline_at: Option<String>,
    /// Do not start before this time has passed; its group waits with it.
    #[arg(long, value_name = "MS")]
    delay_ms: Option<u64>,
    /// The priority, 0 to 4; higher goes first. Default: 0.
    #[arg(long, value_name = "N")]
    priority: Option<u64>,
    /// If it was sent and no response came: repeat it, or ask an operator. Default: ask for POST
    /// and PATCH, repeat for the others.
    #[arg(long, value_name = "repeat|ask")]
    on_unknown: Option<String>,
    /// If it failed permanently: skip it, or hold its group for an operator. Default: the server's
    /// configuration, otherwise skip.
    #[arg(long, value_name = "skip|hold")]
    on_failure: Option<String>,
    /// How the job ends that the request submits, as JSON, such as '{"callback":true}'. @FILE reads
    /// a file, - reads stdin.
    #[arg(long, value_name = "JSON")]
    completion: Option<String>,
    /// Wait up to this long for it to end, at most 60000, show it, and exit with 1 unless it
    /// succeeded.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=WAIT_MS_MAX))]
    wait_ms: Option<u64>,
}

pub(super) async fn run(client: &Client, args: SubmitArgs, output: &Output) -> Result<(), CliError> {
    let wait = args.wait_ms;
    let accepted = client.post("/v1/operations", &operation(args)?, "id").await?;
    let id = text(&accepted, "id");
    if accepted["deduplicated"] == true {
        output.print_remark("this key was submitted before: it is the same operation");
    }
    let Some(wait) = wait else {
        match output.json {
            true => output.print_json(&accepted),
            false => output.print_data(&id),
        }
        return Ok(());
    };
    let path = format!("/v1/operations/{}?wait_ms={wait}", encode_segment(&id));
    let ended = client.call_for_reply(Method::GET, &path, None, Duration::from_millis(wait), "id").await?;
    show(&ended, output);
    match ended.value["state"].as_str() {
        Some("succeeded") => Ok(()),
        Some(state @ ("failed" | "canceled")) => Err(CliError::new(format!("{id} {state}."))),
        Some("unknown") => Err(CliError::new(format!("The outcome of {id} is unknown: it was sent."))
            .hint(format!("tidegate op resolve {id} --as succeeded, failed or repeat"))),
        state => Err(CliError::new(format!("{id} is still {} after {wait} ms.", state.unwrap_or("running")))
            .hint(format!("tidegate op why {id}"))),
    }
}

/// An operation in the server's request format; options that were not given are left out.
#[derive(Serialize)]
struct OperationBody {
    kind: String,
    group: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<RequestBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dedupe_key: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    cost: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_unknown: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RequestBody {
    Http(HttpRequestBody),
    Other(Option<Box<RawValue>>),
}

#[derive(Serialize)]
struct HttpRequestBody {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: Option<Box<RawValue>>,
}

fn operation(args: SubmitArgs) -> Result<OperationBody, CliError> {
    let headers = read_headers(&args.headers)?;
    let mut cost = BTreeMap::new();
    for entry in &args.costs {
        let parsed =
            entry.split_once('=').and_then(|(name, tokens)| Some((name, tokens.parse::<u64>().ok()?)));
        let (name, tokens) = parsed
            .ok_or_else(|| CliError::usage(format!("A cost is written LIMIT=TOKENS, not {entry:?}.")))?;
        cost.insert(name.to_owned(), tokens);
    }
    let body = read_body(args.body)?;
    let (request, payload) = match (&args.kind, &args.upstream) {
        (Some(_), None) => (None, body),
        (Some(_), Some(_)) => (Some(RequestBody::Other(body)), None),
        (None, _) => {
            let method = args.method.unwrap_or_default().to_ascii_uppercase();
            let path = args.path.unwrap_or_default();
            (Some(RequestBody::Http(HttpRequestBody { method, path, headers, body })), None)
        }
    };
    let kind = args.kind.unwrap_or_else(|| "http".to_owned());
    Ok(OperationBody {
        group: args.group.unwrap_or_else(|| args.upstream.clone().unwrap_or_else(|| kind.clone())),
        kind,
        upstream: args.upstream,
        request,
        payload,
        dedupe_key: args.key,
        cost,
        max_attempts: args.max_attempts,
        deadline_ms: args.deadline_ms,
        deadline_at: args.deadline_at,
        delay_ms: args.delay_ms,
        priority: args.priority,
        on_unknown: args.on_unknown,
        on_failure: args.on_failure,
        completion: read_body(args.completion)?,
    })
}

/// Parses headers, each written NAME: VALUE.
pub(super) fn read_headers(said: &[String]) -> Result<BTreeMap<String, String>, CliError> {
    let pairs = said.iter().map(|header| {
        let (name, value) =
            header.split_once(':').ok_or_else(|| CliError::usage("A header is written NAME: VALUE."))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    });
    pairs.collect()
}

/// Reads the body. Valid JSON is kept byte for byte; anything else becomes a JSON string.
pub(super) fn read_body(said: Option<String>) -> Result<Option<Box<RawValue>>, CliError> {
    let Some(said) = said else { return Ok(None) };
    let failed = |error: std::io::Error| CliError::new(format!("The body cannot be read: {error}."));
    let text = if said == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(failed)?;
        text
    } else if let Some(file) = said.strip_prefix('@') {
        std::fs::read_to_string(file).map_err(failed)?
    } else {
        said
    };
    let raw = serde_json::from_str(&text).or_else(|_| to_raw_value(&text));
    raw.map(Some).map_err(|error| CliError::new(format!("The body cannot be sent: {error}.")))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        submit: SubmitArgs,
    }

    /// What remote workers execute has a payload; everything else has an upstream.
    #[test]
    fn a_kind_without_an_upstream_has_a_payload() {
        let line = CommandLine::try_parse_from(["submit", "--kind", "resize", "--body", "7"]).unwrap();
        let sent = serde_json::to_string(&operation(line.submit).unwrap()).unwrap();
        assert_eq!(sent, r#"{"kind":"resize","group":"resize","payload":7}"#);
        assert!(CommandLine::try_parse_from(["submit", "GET", "/status"]).is_err());
    }

    #[test]
    fn json_is_sent_as_it_was_written_and_the_rest_as_text() {
        let sent = |said: &str| read_body(Some(said.to_owned())).unwrap().unwrap().get().to_owned();
        assert_eq!(
            sent(r#"{"b": 12345678901234567890123, "a": 1.10}"#),
            r#"{"b": 12345678901234567890123, "a": 1.10}"#
        );
        assert_eq!(sent("a=1&b"), r#""a=1&b""#);
        assert!(read_body(None).unwrap().is_none());
    }
}
