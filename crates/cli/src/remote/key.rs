//! `key`: lists, shows, releases, expires and completes idempotency keys. Bodies are never shown.

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
A key belongs to a caller and a route. If its text is unique, that is enough; otherwise select it
with --scope (or --scope-value), --method and --path. With all of them the lookup is fast, however
many keys there are.

The scope is the name of a token, - if there are no tokens, or ~ and digits for a caller that is
identified by a header. --scope-value 'Bearer abc' finds that caller by the header's value, which
does not leave this machine.";

const COMPLETING: &str = "\
Example: the bank confirms the payment, and the client should see that when it repeats the request.
  tidegate key complete order-7 --status 201 --body '{\"id\":7,\"paid\":true}'

A key whose outcome is unknown is kept only with on_unknown = \"hold\". A key that is processing or
completed is not changed. To let the request run again instead: tidegate key release.";

#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Subcommand, Debug)]
enum KeyCommand {
    /// List keys, in storage order.
    #[command(after_help = NAMING)]
    List {
        /// Only keys with this text.
        #[arg(long)]
        key: Option<String>,
        #[command(flatten)]
        whose: KeyScopeArgs,
        /// Only keys in this state: processing, unknown, completed.
        #[arg(long)]
        state: Option<String>,
        /// List at most this many, 1 to 200. Default: 50.
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// Continue a list with the cursor it printed.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Show a key: its state, and the status and size of its response.
    #[command(after_help = NAMING)]
    Show(KeyNameArgs),
    /// Release a key that is processing or has an unknown outcome: the next request with it runs.
    #[command(after_help = NAMING)]
    Release(KeyNameArgs),
    /// Expire the response of a key now: the next request with it runs as a new one.
    #[command(after_help = NAMING)]
    Expire(KeyNameArgs),
    /// Record the response of a request whose outcome is unknown: its repeats get this response.
    #[command(after_help = COMPLETING)]
    Complete {
        #[command(flatten)]
        which: KeyNameArgs,
        /// The status of the response, 200 to 599.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(200..=599))]
        status: u16,
        /// The body of the response: JSON, or any text. @FILE reads a file, - reads stdin.
        #[arg(long)]
        body: Option<String>,
        /// A header of the response, such as "location: /orders/7". May be repeated.
        #[arg(long = "header", value_name = "NAME: VALUE")]
        headers: Vec<String>,
    },
}

/// The options that select one key.
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

/// The options that select one caller.
#[derive(Args, Debug)]
struct KeyScopeArgs {
    /// The scope of the key, as `key list` shows it.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    scope: Option<String>,
    /// The caller, by the value of the header that identifies it.
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
    /// Builds the request path of the key, with `more` after its name.
    fn request_path(self, more: &str) -> String {
        let pairs = [("scope", self.whose.scope()), ("method", self.method), ("path", self.path)];
        format!("/v1/keys/{}{more}{}", encode_segment(&self.key), query(&pairs))
    }
}

/// The recorded response. A JSON body is sent exactly as written.
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
            output.print_status(&format!("no key matches so far; to continue: --cursor {cursor}"));
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
        (false, None) => format!("status {}, too large to be stored", text(answer, "status")),
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
