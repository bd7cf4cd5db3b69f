//! `token`: creates, lists and revokes the tokens in a server's file. It works on the file, so it
//! needs no running server; a server that runs notices the change.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tidegate_core::text::is_plain_text;
use tidegate_core::{Time, bounds};
use tidegate_server::config::{
    ApiToken, TokenFile, TokenRecord, TokenScope, find_tokens_file, parse_duration,
};
use tidegate_store::{Clock, WallClock};

use crate::error::CliError;
use crate::output::{Output, pluralize};
use crate::serve::{DEFAULT_FILE, config_error};

/// The longest name of a token, in bytes.
const NAME_LEN_MAX: usize = 64;

const CREATING: &str = "\
The token is printed once, on stdout; the file only has its hash.

Scopes: read (read everything), write (submit operations), work (remote workers), operate (cancel,
rerun, resolve, pause, set limits). No scope includes another.

Example:
  tidegate token create deploys --scope read,write --expires 90d";

#[derive(Args, Debug)]
pub(crate) struct TokenArgs {
    /// The file of tokens. Default: tokens_file in [auth] of the configuration.
    #[arg(long, global = true, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The configuration that names the file of tokens. Default: tidegate.toml in the current
    /// directory if it exists.
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "file")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Subcommand, Debug)]
enum TokenCommand {
    /// Create a token and print it.
    #[command(after_help = CREATING)]
    Create {
        /// A name, for lists and the log: 1 to 64 letters, digits, '-', '_' or '.'.
        #[arg(value_parser = parse_name)]
        name: String,
        /// What it allows, comma-separated: read, write, work, operate.
        #[arg(long = "scope", required = true, value_delimiter = ',', value_parser = parse_scope)]
        scopes: Vec<TokenScope>,
        /// The tenant that its calls belong to: they see the entities of that tenant only, and
        /// share its idempotency keys.
        #[arg(long, value_parser = parse_tenant)]
        tenant: Option<String>,
        /// When it expires, such as 12h or 90d from now. Default: never.
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        expires: Option<Duration>,
    },
    /// List the tokens, without the tokens themselves.
    List,
    /// Revoke a token: servers refuse it within a second or two.
    Revoke {
        /// Its name.
        name: String,
    },
}

pub(crate) fn run(args: TokenArgs, output: &Output) -> Result<(), CliError> {
    let file = find_file(args.file, args.config)?;
    match args.command {
        TokenCommand::Create { name, scopes, tenant, expires } => {
            let now = WallClock.now();
            let expires_at = expires.map(|expires| now.after(expires));
            create(&file, NewToken { name, scopes, tenant, expires_at }, now, output)
        }
        TokenCommand::List => list(&file, output),
        TokenCommand::Revoke { name } => revoke(&file, &name, output),
    }
}

fn find_file(file: Option<PathBuf>, config: Option<PathBuf>) -> Result<TokenFile, CliError> {
    if let Some(file) = file {
        return Ok(TokenFile::new(file));
    }
    let config = config.or_else(|| Path::new(DEFAULT_FILE).exists().then(|| PathBuf::from(DEFAULT_FILE)));
    let found = find_tokens_file(config.as_deref()).map_err(|problems| config_error(&problems))?;
    found.ok_or_else(|| {
        CliError::usage("There is no file of tokens.")
            .hint("Name one in the configuration, under [auth]: tokens_file = \"tokens.toml\".")
            .hint("Or name it here: --file tokens.toml.")
    })
}

/// What is known of a token before it exists.
struct NewToken {
    name: String,
    scopes: Vec<TokenScope>,
    tenant: Option<String>,
    expires_at: Option<Time>,
}

fn create(file: &TokenFile, new: NewToken, now: Time, output: &Output) -> Result<(), CliError> {
    let text = ApiToken::random_text()
        .ok_or_else(|| CliError::new("The system has no random bytes for a token."))?;
    let NewToken { name, mut scopes, tenant, expires_at } = new;
    scopes.sort_unstable();
    scopes.dedup();
    let token = ApiToken { tenant, expires_at, ..ApiToken::new(name, &text, scopes) };
    let record = TokenRecord { token, created_at: Some(now) };
    let mut shown = describe(&record);
    file.add(record).map_err(|problems| config_error(&problems))?;
    if output.json {
        shown["token"] = json!(text);
        output.print_json(&shown);
        return Ok(());
    }
    output.print_status("The token, which is not shown again:");
    output.print_data(&text);
    Ok(())
}

fn list(file: &TokenFile, output: &Output) -> Result<(), CliError> {
    let records = file.read().map_err(|problems| config_error(&problems))?;
    let shown: Vec<Value> = records.iter().map(describe).collect();
    if output.json {
        output.print_json(&json!({ "tokens": shown }));
        return Ok(());
    }
    let now = WallClock.now();
    let time = |at: Option<Time>, none: &str| at.map_or_else(|| none.to_owned(), |at| at.to_string());
    let row = |TokenRecord { token, created_at }: &TokenRecord| {
        let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
        let expires = match token.is_expired(now) {
            true => "expired".to_owned(),
            false => time(token.expires_at, "never"),
        };
        let tenant = token.tenant.clone().unwrap_or_else(|| "-".to_owned());
        vec![token.name.clone(), scopes.join(","), tenant, time(*created_at, "-"), expires]
    };
    let rows: Vec<_> = records.iter().map(row).collect();
    output.print_table(&["NAME", "SCOPES", "TENANT", "CREATED", "EXPIRES"], &rows);
    let path = file.path().display();
    output.print_status(&format!("{} in {path}", pluralize(rows.len(), "token", "tokens")));
    Ok(())
}

fn revoke(file: &TokenFile, name: &str, output: &Output) -> Result<(), CliError> {
    if !file.remove(name).map_err(|problems| config_error(&problems))? {
        let message = format!("{} has no token {name:?}.", file.path().display());
        return Err(CliError::new(message).hint("tidegate token list shows which there are."));
    }
    if output.json {
        output.print_json(&json!({ "name": name, "revoked": true }));
    } else {
        output.print_status(&format!("{name} is revoked"));
    }
    Ok(())
}

/// A token as JSON, without its hash.
fn describe(record: &TokenRecord) -> Value {
    let TokenRecord { token, created_at } = record;
    let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.as_str()).collect();
    let time = |at: Option<Time>| at.map(|at| at.to_string());
    json!({
        "name": token.name, "scopes": scopes, "tenant": token.tenant,
        "created_at": time(*created_at), "expires_at": time(token.expires_at),
    })
}

fn parse_name(text: &str) -> Result<String, String> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if (1..=NAME_LEN_MAX).contains(&text.len()) && text.bytes().all(is_letter) {
        return Ok(text.to_owned());
    }
    Err(format!("a name is 1 to {NAME_LEN_MAX} letters, digits, '-', '_' or '.'"))
}

fn parse_tenant(text: &str) -> Result<String, String> {
    let most = bounds::TENANT_LEN_MAX;
    if is_plain_text(text, 1..=most) {
        return Ok(text.to_owned());
    }
    Err(format!("a tenant is 1 to {most} bytes on one line"))
}

fn parse_scope(word: &str) -> Result<TokenScope, String> {
    TokenScope::parse(word).ok_or_else(|| format!("there are {}", TokenScope::WORDS))
}
