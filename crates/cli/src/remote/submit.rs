//! `op submit`: hands an operation in, and waits for its end if asked to.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use clap::Args;
use hyper::Method;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::op::{WAIT_MAX_MS, show};
use crate::client::{Client, encode_segment};
use crate::error::CliError;
use crate::output::{Output, text};

pub(super) const EXAMPLES: &str = "\
Examples:
  tidegate op submit GET /status --upstream echo --wait-ms 5000
  tidegate op submit POST /orders --upstream echo --group shop:acme --key order-1001 --body '{\"sku\":\"a-1\"}'
  tidegate op submit --kind shopify.bulk --upstream acme-shop --body '{\"query\":\"{ products { edges { node { id } } } }\"}'

Every field is told in docs/operations.md.";

#[derive(Args, Debug)]
pub(crate) struct SubmitArgs {
    /// GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.
    #[arg(required_unless_present = "kind")]
    method: Option<String>,
    /// Where below the upstream's base_url, with its query: starts with /.
    #[arg(required_unless_present = "kind")]
    path: Option<String>,
    /// Another kind than http, as in shopify.bulk. Its request is what --body says, as JSON.
    #[arg(long, value_name = "KIND", requires = "body", conflicts_with_all = ["method", "path", "headers"])]
    kind: Option<String>,
    /// The upstream, as the server's configuration names it.
    #[arg(long, value_name = "NAME")]
    upstream: String,
    /// The group inside which order holds. Usually the upstream's name.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// A header, as in "accept: text/plain". May be repeated.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// What is sent: JSON, or any text. @FILE reads a file, - reads stdin.
    #[arg(long, value_name = "BODY")]
    body: Option<String>,
    /// The dedupe key: two submissions with one key are one operation.
    #[arg(long)]
    key: Option<String>,
    /// What it costs of a limit, as in points=52. Usually 1 of each. May be repeated.
    #[arg(long = "cost", value_name = "LIMIT=TOKENS")]
    costs: Vec<String>,
    /// Attempts in all. Usually 8.
    #[arg(long, value_name = "N")]
    max_attempts: Option<u64>,
    /// Fail unless it can be started within this time. Usually there is none.
    #[arg(long, value_name = "MS")]
    deadline_ms: Option<u64>,
    /// Fail unless it can be started before this time, as in 2031-05-06T07:08:09Z. Instead of --deadline-ms.
    #[arg(long, value_name = "TIME", conflicts_with = "deadline_ms")]
    deadline_at: Option<String>,
    /// Do not start earlier than after this time; its group waits with it.
    #[arg(long, value_name = "MS")]
    delay_ms: Option<u64>,
    /// 0 to 4, where more goes earlier. Usually 0.
    #[arg(long, value_name = "N")]
    priority: Option<u64>,
    /// When it left and no answer came: repeat it, or ask a person. Usually POST and PATCH ask, the others repeat.
    #[arg(long, value_name = "repeat|ask")]
    on_unknown: Option<String>,
    /// When it failed for good: skip it, or hold its group for a person. Usually what the server's configuration says, else skip.
    #[arg(long, value_name = "skip|hold")]
    on_failure: Option<String>,
    /// Wait so long for its end, at most 60000, show it, and exit with 1 unless it succeeded.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=WAIT_MAX_MS))]
    wait_ms: Option<u64>,
}

pub(super) async fn run(client: &Client, args: SubmitArgs, output: &Output) -> Result<(), CliError> {
    let wait = args.wait_ms;
    let accepted = client.post("/v1/operations", &operation(args)?, "id").await?;
    let id = text(&accepted, "id");
    if accepted["deduplicated"] == true {
        output.print_remark("this key was there before: it is the same operation");
    }
    let Some(wait) = wait else {
        match output.json {
            true => output.print_json(&accepted),
            false => output.print_data(&id),
        }
        return Ok(());
    };
    let path = format!("/v1/operations/{}?wait_ms={wait}", encode_segment(&id));
    let ended = client.call(Method::GET, &path, None, Duration::from_millis(wait), "id").await?;
    show(&ended, output);
    match ended["state"].as_str() {
        Some("succeeded") => Ok(()),
        Some(state @ ("failed" | "canceled")) => Err(CliError::new(format!("{id} {state}."))),
        state => {
            Err(CliError::new(format!("{id} is still {} after {wait} ms.", state.unwrap_or("under way")))
                .hint(format!("tidegate op why {id}")))
        }
    }
}

/// An operation as the server reads it; what was not said is left out.
#[derive(Serialize)]
struct OperationBody {
    kind: String,
    group: String,
    upstream: String,
    request: RequestBody,
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
    let request = match args.kind {
        Some(_) => RequestBody::Other(body),
        None => RequestBody::Http(HttpRequestBody {
            method: args.method.unwrap_or_default().to_ascii_uppercase(),
            path: args.path.unwrap_or_default(),
            headers,
            body,
        }),
    };
    Ok(OperationBody {
        kind: args.kind.unwrap_or_else(|| "http".to_owned()),
        group: args.group.unwrap_or_else(|| args.upstream.clone()),
        upstream: args.upstream,
        request,
        dedupe_key: args.key,
        cost,
        max_attempts: args.max_attempts,
        deadline_ms: args.deadline_ms,
        deadline_at: args.deadline_at,
        delay_ms: args.delay_ms,
        priority: args.priority,
        on_unknown: args.on_unknown,
        on_failure: args.on_failure,
    })
}

/// Headers as they are said, each NAME: VALUE.
pub(super) fn read_headers(said: &[String]) -> Result<BTreeMap<String, String>, CliError> {
    let pairs = said.iter().map(|header| {
        let (name, value) =
            header.split_once(':').ok_or_else(|| CliError::usage("A header is written NAME: VALUE."))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    });
    pairs.collect()
}

/// JSON where it is JSON, byte for byte; else the text.
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
    use super::*;

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
