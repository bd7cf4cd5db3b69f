//! `group`: lists, shows, pauses and resumes groups.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::client::{Client, RemoteArgs, encode_segment, query};
use crate::error::CliError;
use crate::output::{Output, text};

#[derive(Args, Debug)]
pub(crate) struct GroupArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(subcommand)]
    command: GroupCommand,
}

#[derive(Subcommand, Debug)]
enum GroupCommand {
    /// List groups by name, with what each waits for.
    List {
        /// Only groups that wait for an operator: held (by an unknown outcome or a failure),
        /// paused, or stopped for both.
        #[arg(long, value_name = "held|paused|stopped")]
        state: Option<String>,
        /// Continue after this name.
        #[arg(long, value_name = "NAME")]
        after: Option<String>,
        /// List at most this many, 1 to 200. Default: 50.
        #[arg(long, value_name = "N")]
        limit: Option<u64>,
    },
    /// Show a group and the head of its queue.
    Show {
        /// Its name.
        group: String,
    },
    /// Pause a group; calls in flight may finish.
    Pause {
        /// Its name.
        group: String,
        /// The reason, shown with the group.
        #[arg(long, default_value = "", hide_default_value = true)]
        reason: String,
        /// Who paused it, shown with the group.
        #[arg(long, env = "USER", default_value = "cli", value_name = "NAME")]
        by: String,
        /// Pause the group even if no operation has used it yet. Without this an unknown name is
        /// refused as a misspelling.
        #[arg(long)]
        create: bool,
    },
    /// Resume a group. One that is held by an unknown outcome needs `op resolve` first.
    Resume {
        /// Its name.
        group: String,
    },
}

pub(crate) async fn run(args: GroupArgs, output: &Output) -> Result<(), CliError> {
    let client = Client::new(&args.remote)?;
    match args.command {
        GroupCommand::List { state, after, limit } => {
            let limit = limit.map(|limit| limit.to_string());
            let pairs = [("state", state), ("after", after), ("limit", limit)];
            list(&client.get(&format!("/v1/groups{}", query(&pairs)), "groups").await?, output);
        }
        GroupCommand::Show { group } => show(&client.get(&path(&group, ""), "group").await?, output),
        GroupCommand::Pause { group, reason, by, create } => {
            let body = json!({ "by": by, "reason": reason, "create": create });
            let paused = client.post(&path(&group, "/pause"), &body, "group").await;
            let value = paused.map_err(|error| match error.code.as_deref() {
                Some("TG0011") => error.hint("to pause it before its first operation: --create"),
                _ => error,
            })?;
            show(&value, output);
            output.print_remark(&format!("paused; to resume: tidegate group resume {group}"));
        }
        GroupCommand::Resume { group } => {
            show(&client.post(&path(&group, "/resume"), &json!({}), "group").await?, output);
        }
    }
    Ok(())
}

fn path(group: &str, rest: &str) -> String {
    format!("/v1/groups/{}{rest}", encode_segment(group))
}

fn list(value: &Value, output: &Output) {
    if output.json {
        return output.print_json(value);
    }
    let none = Vec::new();
    let groups = value["groups"].as_array().unwrap_or(&none);
    let row = |group: &Value| {
        vec![text(group, "group"), text(group, "state"), text(group, "depth"), text(&group["why"], "because")]
    };
    let rows: Vec<_> = groups.iter().map(row).collect();
    if rows.is_empty() && value["next"].is_null() {
        return output.print_status("no group matches");
    }
    output.print_table(&["GROUP", "STATE", "DEPTH", "WHY"], &rows);
    if let Some(next) = value["next"].as_str() {
        output.print_status(&format!("showing {}; for more: --after {next:?}", rows.len()));
    }
}

fn show(value: &Value, output: &Output) {
    if output.json {
        return output.print_json(value);
    }
    let paused = &value["paused"];
    let pause = match paused.is_null() {
        true => String::new(),
        false => {
            format!("by {} since {} {}", text(paused, "by"), text(paused, "since"), text(paused, "reason"))
        }
    };
    output.print_facts(&[
        ("group", text(value, "group")),
        ("state", text(value, "state")),
        ("depth", text(value, "depth")),
        ("paused", pause),
        ("held by", text(&value["held"], "operation")),
        ("head", text(&value["head"], "id")),
        ("why", text(&value["why"], "because")),
    ]);
    let Some(line) = value["line"].as_array().filter(|line| !line.is_empty()) else { return };
    let row =
        |op: &Value| vec![text(op, "id"), text(op, "state"), text(op, "attempt"), text(op, "created_at")];
    output.print_table(&["ID", "STATE", "TRY", "CREATED"], &line.iter().map(row).collect::<Vec<_>>());
}
