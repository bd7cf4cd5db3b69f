//! `key`: idempotency keys, looked at without bodies, released, expired and completed.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tidegate_idempotency::CallerScope;

use super::submit::{read_body, read_headers};
use crate::client::{Client, RemoteArgs, encode_segment, query};
use crate::error::CliError;
use crate::output::{Output, text};

const NAMING: &str = "\
A key belongs to a caller and a route. When only one has it, its text is enough; else say which with --scope (or
--scope-value), --method and --path. With all of them it is found at once, however many keys there are.

The scope is the name of a token, - when there are no tokens, or ~ and digits for a caller that is known by a header's
value: --scope-value 'Bearer abc' finds that one by the value itself, which does not leave this machine.";

const COMPLETING: &str = "\
Example: the payment was made, says the bank; its client shall hear so when it asks again.
  tidegate key complete order-7 --status 201 --body '{\"id\":7,\"paid\":true}'

A key whose outcome is unknown is kept only with on_unknown = \"hold\". A key in work, or one that has an answer, is not
changed. To let the request run again instead: tidegate key release.";

#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Subcommand, Debug)]
enum KeyCommand {
    /// List keys, in the order of the store.
    #[command(after_help = NAMING)]
    List {
        /// Only with this text.
        #[arg(long)]
        key: Option<String>,
        #[command(flatten)]
        whose: KeyScopeArgs,
        /// Only in this state: processing, unknown, completed.
        #[arg(long)]
        state: Option<String>,
        /// At most this many, 1 to 200. Usually 50.
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// Go on where a list ended, with what it said.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Show a key: where it stands, and status and size of its answer.
    #[command(after_help = NAMING)]
    Show(KeyNameArgs),
    /// Free a key whose request is in work or has an unknown outcome: the next request with it is handled.
    #[command(after_help = NAMING)]
    Release(KeyNameArgs),
    /// Forget the answer of a key now: the next request with it is handled as new.
    #[command(after_help = NAMING)]
    Expire(KeyNameArgs),
    /// Record what came of a request whose outcome is unknown: its repeats get this answer.
    #[command(after_help = COMPLETING)]
    Complete {
        #[command(flatten)]
        which: KeyNameArgs,
        /// The status of the answer, 200 to 599.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(200..=599))]
        status: u16,
        /// The body of the answer: JSON, or any text. @FILE reads a file, - reads stdin.
        #[arg(long)]
        body: Option<String>,
        /// A header of the answer, as in "location: /orders/7". May be repeated.
        #[arg(long = "header", value_name = "NAME: VALUE")]
        headers: Vec<String>,
    },
}

/// One key.
#[derive(Args, Debug)]
struct KeyNameArgs {
    /// The key, as the client sent it.
    key: String,
    #[command(flatten)]
    whose: KeyScopeArgs,
    /// The method of its request.
    #[arg(long)]
    method: Option<String>,
    /// The path of its request, as `key list` shows it.
    #[arg(long)]
    path: Option<String>,
}

/// One caller.
#[derive(Args, Debug)]
struct KeyScopeArgs {
    /// Whose key, as `key list` shows it.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    scope: Option<String>,
    /// Whose key, by the value of the header that tells callers apart.
    #[arg(long, value_name = "VALUE", conflicts_with = "scope", allow_hyphen_values = true)]
    scope_value: Option<String>,
}

impl KeyScopeArgs {
    fn scope(self) -> Option<String> {
        let hashed = |value: String| CallerScope::secret(value.as_bytes()).as_str().to_owned();
        self.scope.or_else(|| self.scope_value.map(hashed))
    }
}

impl KeyNameArgs {
    /// Where it is, with more behind its name.
    fn request_path(self, more: &str) -> String {
        let pairs = [("scope", self.whose.scope()), ("method", self.method), ("path", self.path)];
        format!("/v1/keys/{}{more}{}", encode_segment(&self.key), query(&pairs))
    }
}

/// The answer that is recorded, its JSON as it was written.
#[derive(Serialize)]
struct AnswerBody {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Option<Box<RawValue>>,
}

pub(crate) async fn run(args: KeyArgs, output: &Output) -> Result<(), CliError> {
    let client = Client::new(&args.remote)?;
    match args.command {
        KeyCommand::List { key, whose, state, limit, cursor } => {
            let limit = limit.map(|limit| limit.to_string());
            let pairs = [
                ("key", key),
                ("scope", whose.scope()),
                ("state", state),
                ("limit", limit),
                ("cursor", cursor),
            ];
            list(&client.get(&format!("/v1/keys{}", query(&pairs)), "keys").await?, output);
        }
        KeyCommand::Show(which) => show(&client.get(&which.request_path(""), "key").await?, output),
        KeyCommand::Release(which) => {
            show(&client.post(&which.request_path("/release"), &json!({}), "key").await?, output);
        }
        KeyCommand::Expire(which) => {
            show(&client.post(&which.request_path("/expire"), &json!({}), "key").await?, output);
        }
        KeyCommand::Complete { which, status, body, headers } => {
            let answer = AnswerBody { status, headers: read_headers(&headers)?, body: read_body(body)? };
            show(&client.post(&which.request_path("/complete"), &answer, "key").await?, output);
        }
    }
    Ok(())
}

fn list(value: &Value, output: &Output) {
    if output.json {
        return output.print_json(value);
    }
    let none = Vec::new();
    let keys = value["keys"].as_array().unwrap_or(&none);
    let row = |key: &Value| {
        ["key", "state", "scope", "method", "path", "created_at", "expires_at"]
            .map(|field| text(key, field))
            .to_vec()
    };
    let rows: Vec<_> = keys.iter().map(row).collect();
    match (rows.is_empty(), value["next_cursor"].as_str()) {
        (true, None) => output.print_status("no key matches"),
        (true, Some(cursor)) => {
            output.print_status(&format!("none so far; to look further: --cursor {cursor}"));
        }
        (false, next) => {
            output.print_table(&["KEY", "STATE", "SCOPE", "METHOD", "PATH", "CREATED", "EXPIRES"], &rows);
            if let Some(cursor) = next {
                output.print_status(&format!("showing {}; for more: --cursor {cursor}", rows.len()));
            }
        }
    }
}

fn show(value: &Value, output: &Output) {
    if output.json {
        return output.print_json(value);
    }
    let answer = &value["answer"];
    let answer = match (answer.is_null(), answer["body_bytes"].as_u64()) {
        (true, _) => String::new(),
        (false, Some(bytes)) => format!("status {}, a body of {bytes} bytes", text(answer, "status")),
        (false, None) => format!("status {}, too large to be kept", text(answer, "status")),
    };
    output.print_facts(&[
        ("key", text(value, "key")),
        ("state", text(value, "state")),
        ("scope", text(value, "scope")),
        ("method", text(value, "method")),
        ("path", text(value, "path")),
        ("created", text(value, "created_at")),
        ("expires", text(value, "expires_at")),
        ("lease", text(value, "lease_until")),
        ("on_lapse", text(value, "on_lapse")),
        ("fingerprint", text(value, "fingerprint")),
        ("answer", answer),
        ("damaged", text(value, "damaged")),
    ]);
}
