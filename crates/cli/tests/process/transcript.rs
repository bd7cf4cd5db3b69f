//! Runs the transcript of a deployment as it is written: each command on its page, in order,
//! against a simulator with the page's quirks, says what the page says.

use std::path::Path;
use std::process::Command;

use hyper::Method;
use serde_json::{Value, json};
use tidegate_sim::{DiscordSim, DiscordSimOptions};

use crate::caller::Caller;
use crate::child::tidegate;

const PAGE: &str = include_str!("../../../../docs/guides/deploy-transcript.md");
/// The address of the simulator on the page.
const ADDRESS: &str = "127.0.0.1:7412";
/// After this sentence, someone changes the guild by hand.
const BY_HAND: &str = "Someone makes the role Moderators red in Discord.";

/// A part of the page that something is done about.
#[derive(Debug)]
enum PagePart {
    /// The content of a file.
    File(String),
    /// A command and what it says.
    Command(String, String),
    /// Someone changes the guild by hand.
    ByHand,
}

fn parts() -> Vec<PagePart> {
    let (mut parts, mut fence) = (Vec::new(), None);
    for line in PAGE.lines() {
        match (fence, line) {
            (None, "```yaml") => {
                fence = Some("yaml");
                parts.push(PagePart::File(String::new()));
            }
            (None, "```console") => fence = Some("console"),
            (None, line) if line.contains(BY_HAND) => parts.push(PagePart::ByHand),
            (Some(_), "```") => fence = None,
            (Some(_), line) if line.starts_with("$ ") => {
                parts.push(PagePart::Command(line[2..].to_owned(), String::new()));
            }
            (Some(_), line) => match parts.last_mut() {
                Some(PagePart::File(text) | PagePart::Command(_, text)) => {
                    text.push_str(line);
                    text.push('\n');
                }
                other => panic!("{line:?} follows {other:?}"),
            },
            (None, _) => {}
        }
    }
    parts
}

/// Hides what differs from run to run: ids, dates, and the time that is expected.
fn hide_ids(text: &str) -> String {
    let is_id = |word: &str| word.len() >= 15 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_date = |word: &str| word.len() >= 20 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
    let dateless = text.split_inclusive(char::is_whitespace);
    let text: String = dateless
        .map(
            |word| {
                if is_date(word.trim_end()) { word.replace(word.trim_end(), "@") } else { word.to_owned() }
            },
        )
        .collect();
    let mut hidden = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let plain = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let rest = word.get(plain.len()..).unwrap_or_default();
        hidden.push_str(if is_id(plain) { "#" } else { plain });
        hidden.push_str(rest);
    }
    let is_time = |part: &&str| part.starts_with("about ") || part.contains(" or longer: ");
    let expected = |line: &str| match line.split_once(", ").filter(|(_, rest)| is_time(rest)) {
        Some((calls, rest)) => format!("{calls}, {}", rest.replace(|c: char| c.is_ascii_digit(), "#")),
        None => line.to_owned(),
    };
    // A slow machine reports its progress in between.
    let is_progress = |line: &&str| [" call  ", " calls  ", " left  "].iter().any(|mark| line.contains(mark));
    let lines = hidden.lines().filter(|line| !is_progress(line));
    lines.map(expected).collect::<Vec<_>>().join("\n")
}

async fn make_red(sim: &DiscordSim) {
    let control = Caller::of(&format!("http://{}", sim.addr()));
    let guild: Value = serde_json::from_str(&control.get("/_sim/guilds/4177").await).unwrap();
    let roles = guild["roles"].as_array().unwrap();
    let role = roles.iter().find(|role| role["name"].as_str().unwrap().contains("Moderators")).unwrap();
    let path = format!("/_sim/hand/guilds/4177/roles/{}", role["id"].as_str().unwrap());
    control.call(Method::PATCH, &path, &[], Some(&json!({ "color": 0x00ff_0000 }))).await.unwrap();
}

/// Runs a command in a shell, with both of its outputs as they come.
async fn run(dir: &Path, command: &str) -> String {
    let program = Path::new(tidegate().get_program()).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(program).chain(std::env::split_paths(&path))).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1; {command}")]).current_dir(dir).env("PATH", path);
    shell.env("DISCORD_TOKEN", "any-token-will-do").env_remove("TIDEGATE_TOKEN");
    let ran = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

/// OPS-19: the transcript in the documentation is what the commands say today.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_the_transcript_is_true() {
    let dir = tempfile::tempdir().unwrap();
    let mut sim = None;
    let (mut ran, mut wrong) = (0, Vec::new());
    for part in parts() {
        match part {
            PagePart::File(text) => std::fs::write(dir.path().join("guild.yaml"), text).unwrap(),
            PagePart::ByHand => make_red(sim.as_ref().unwrap()).await,
            PagePart::Command(command, _) if command.starts_with("tidegate sim discord") => {
                let mut options = DiscordSimOptions::default();
                for quirk in command.split(" --quirk ").skip(1) {
                    options.quirks.set(quirk.trim_end_matches(" &").trim_matches('\'')).unwrap();
                }
                sim = Some(DiscordSim::start(options).await.unwrap());
            }
            PagePart::Command(command, _) if command.starts_with("export DISCORD_TOKEN=") => {}
            PagePart::Command(command, said) => {
                let address = sim.as_ref().unwrap().addr().to_string();
                let says =
                    run(dir.path(), &command.replace(ADDRESS, &address)).await.replace(&address, ADDRESS);
                if hide_ids(&says) != hide_ids(&said) {
                    wrong.push(format!("$ {command}\n{says}"));
                }
                ran += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "the page says something else than:\n{}", wrong.join("\n"));
    assert!(ran >= 13, "the page has commands: {ran}");
    assert_eq!(sim.unwrap().stats().all.duplicates, 0);
}
