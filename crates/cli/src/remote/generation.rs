//! `generation`: creates, shows, lists and cancels generations, and explains why one waits.

use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::client::{Client, RemoteArgs, encode_segment, query};
use crate::error::CliError;
use crate::output::{Output, text};

/// How often a generation is looked at while `--wait-s` lasts.
const LOOK_EVERY: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  tidegate generation create --model flux --prompt \"a lighthouse at dusk\"
  tidegate generation create --model flux --input '{\"prompt\":\"a cat\",\"seed\":7}' --user anna --key order-7
  tidegate generation create --model flux --prompt \"a cat\" --wait-s 60 --json

Prints the id at once; with --wait-s, the generation when it has ended.";

#[derive(Args, Debug)]
pub(crate) struct GenerationArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(subcommand)]
    command: GenerationCommand,
}

#[derive(Subcommand, Debug)]
enum GenerationCommand {
    /// Create a generation and print its id.
    #[command(after_help = EXAMPLES)]
    Create(CreateArgs),
    /// Show a generation with the paths of its files.
    Show {
        /// Its id, as `generation create` printed it.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
    /// List generations, newest first.
    List {
        /// Only generations of this user.
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        /// Only generations in this state: queued, processing, completed, failed, canceled.
        #[arg(long)]
        status: Option<String>,
        /// List at most this many, 1 to 200. Default: 50.
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
        /// Continue a list with the cursor it printed.
        #[arg(long)]
        cursor: Option<String>,
    },
    /// Cancel a generation; a job that runs at a provider is canceled there if that is possible.
    Cancel {
        /// Its id, as `generation create` printed it.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
    /// Explain why a generation is not running: each provider of its chain, with its reason and
    /// time.
    Why {
        /// Its id, as `generation create` printed it.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        id: String,
    },
}

/// The options of `generation create`.
#[derive(Args, Debug)]
struct CreateArgs {
    /// The model, as [model.NAME] of the server's configuration names it.
    #[arg(long, value_name = "NAME")]
    model: String,
    /// The input, as a JSON object.
    #[arg(long, value_name = "JSON", value_parser = parse_input)]
    input: Option<Map<String, Value>>,
    /// The field "prompt" of the input.
    #[arg(long, value_name = "TEXT", required_unless_present = "input")]
    prompt: Option<String>,
    /// The user it is for, whose limits count. Default: whom the token belongs to.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The URL that its end is reported to.
    #[arg(long, value_name = "URL")]
    notify_url: Option<String>,
    /// A key of yours: with the same key again, no second generation is created.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Wait up to this long for it to end.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    wait_s: Option<u64>,
}

fn parse_input(json: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(json).map_err(|error| format!("it is not a JSON object: {error}"))
}

pub(crate) async fn run(args: GenerationArgs, output: &Output) -> Result<(), CliError> {
    let client = Client::new(&args.remote)?;
    match args.command {
        GenerationCommand::Create(args) => create(&client, args, output).await?,
        GenerationCommand::Show { id } => show(&client.get(&path(&id, ""), "status").await?, output),
        GenerationCommand::List { user, status, limit, cursor } => {
            let limit = limit.map(|limit| limit.to_string());
            let pairs = [("user_id", user), ("status", status), ("limit", limit), ("cursor", cursor)];
            let page = client.get(&format!("/api/generations{}", query(&pairs)), "generations").await?;
            list(&page, output);
        }
        GenerationCommand::Cancel { id } => {
            show(&client.post(&path(&id, "/cancel"), &json!({}), "status").await?, output);
        }
        GenerationCommand::Why { id } => why(&client.get(&path(&id, "/why"), "because").await?, output),
    }
    Ok(())
}

fn path(id: &str, rest: &str) -> String {
    format!("/api/generations/{}{rest}", encode_segment(id))
}

async fn create(client: &Client, args: CreateArgs, output: &Output) -> Result<(), CliError> {
    let mut input = args.input.unwrap_or_default();
    if let Some(prompt) = args.prompt {
        input.insert("prompt".to_owned(), prompt.into());
    }
    let mut body = json!({ "model_id": args.model, "input": input });
    for (name, value) in [("user_id", args.user), ("notify_url", args.notify_url)] {
        if let Some(value) = value {
            body[name] = value.into();
        }
    }
    let (route, mark) = ("/api/generations/create", "status");
    let created = match &args.key {
        Some(key) => client.post_with_key(route, &body, key, mark).await?,
        None => client.post(route, &body, mark).await?,
    };
    let Some(wait_s) = args.wait_s else {
        match output.json {
            true => output.print_json(&created),
            false => output.print_data(&text(&created, "id")),
        }
        return Ok(());
    };
    let ended = wait_for_end(client, created, Duration::from_secs(wait_s)).await?;
    show(&ended, output);
    match ended["status"].as_str() {
        Some("completed") => Ok(()),
        Some("failed" | "canceled") => Err(CliError::new(format!("It {}.", text(&ended, "status")))),
        _ => Err(CliError::new(format!("It has not ended within {wait_s} s."))
            .hint(format!("show it with `tidegate generation show {}`", text(&ended, "id")))),
    }
}

async fn wait_for_end(client: &Client, mut one: Value, most: Duration) -> Result<Value, CliError> {
    let end = Instant::now() + most;
    let id = text(&one, "id");
    while !has_ended(&one) && Instant::now() < end {
        tokio::time::sleep(LOOK_EVERY).await;
        one = client.get(&path(&id, ""), "status").await?;
    }
    Ok(one)
}

fn has_ended(one: &Value) -> bool {
    matches!(one["status"].as_str(), Some("completed" | "failed" | "canceled"))
}

fn show(value: &Value, output: &Output) {
    if output.json {
        return output.print_json(value);
    }
    let percent = text(value, "progress");
    output.print_facts(&[
        ("id", text(value, "id")),
        ("status", text(value, "status")),
        ("model", text(value, "model_id")),
        ("user", text(value, "user_id")),
        ("provider", text(value, "provider")),
        ("position", text(value, "queue_position")),
        ("progress", if percent.is_empty() { percent } else { format!("{percent} %") }),
        ("created", text(value, "created_at")),
        ("finished", text(value, "finished_at")),
        ("error", text(value, "error")),
        ("cancel", if value["cancel_requested"] == true { "requested".into() } else { String::new() }),
    ]);
    for file in value["results"].as_array().into_iter().flatten() {
        let size = format!("{} bytes", text(file, "bytes"));
        output.print_facts(&[(
            "result",
            format!("{} ({}, {size})", text(file, "url"), text(file, "content_type")),
        )]);
    }
}

fn list(value: &Value, output: &Output) {
    if output.json {
        return output.print_json(value);
    }
    let none = Vec::new();
    let generations = value["generations"].as_array().unwrap_or(&none);
    let row = |one: &Value| {
        let fields = ["id", "status", "model_id", "user_id", "created_at", "error"];
        fields.map(|field| text(one, field)).to_vec()
    };
    let rows: Vec<_> = generations.iter().map(row).collect();
    let next = value["next_cursor"].as_str();
    if rows.is_empty() && next.is_none() {
        return output.print_status("no generation matches");
    }
    output.print_table(&["ID", "STATUS", "MODEL", "USER", "CREATED", "ERROR"], &rows);
    if let Some(cursor) = next {
        output.print_status(&format!("showing {}; for more: --cursor {cursor}", rows.len()));
    }
}

fn why(value: &Value, output: &Output) {
    if output.json {
        return output.print_json(value);
    }
    output.print_data(&text(value, "because"));
    output.print_facts(&[
        ("status", text(value, "status")),
        ("position", text(value, "queue_position")),
        ("until", text(value, "until")),
    ]);
    let row =
        |one: &Value| ["provider", "key", "state", "until", "because"].map(|name| text(one, name)).to_vec();
    let Some(providers) = value["providers"].as_array().filter(|all| !all.is_empty()) else { return };
    let rows: Vec<_> = providers.iter().map(row).collect();
    output.print_table(&["PROVIDER", "KEY", "STATE", "UNTIL", "WHY"], &rows);
}
