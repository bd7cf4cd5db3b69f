//! The description of the API, tried by a stranger: schemathesis makes requests from it, good ones
//! and bad ones, and holds every answer against it.

use std::path::Path;

use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::ALONE;
use crate::child::{RunningServer, configure, upstream};
use crate::languages::python_tool;

/// What is drawn when nothing else is asked for.
const SEED: &str = "1";
/// Requests that are made up for each call, beside those at its bounds.
const EXAMPLES: &str = "4";
/// The same when every run draws anew.
const EXAMPLES_LONG: &str = "20";
/// Calls that are not tried, because their answers have no end.
const STREAMS: usize = 2;
const TOKEN: &str = "a-token-of-a-stranger";

/// What is said on a line after these words.
fn after<'a>(said: &'a str, words: &str) -> &'a str {
    let (_, rest) = said.split_once(words).unwrap_or_else(|| panic!("{words:?} is not in {said}"));
    rest.lines().next().unwrap_or_default().trim()
}

/// Every call does what its description says: nothing that fits is misunderstood, nothing that does
/// not fit is accepted, every answer has a status, a type and a shape that are described, and
/// nothing is done without a token.
#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_finds_what_is_described() {
    let _alone = ALONE.lock().await;
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let token = "[[token]]\nname = \"stranger\"\nvalue_env = \"STRANGER\"\nscopes = [\"read\", \"write\", \"work\", \"operate\"]\n";
    configure(dir.path(), 8, &(upstream("echo", &sim, Some((1_000, 1_000.0))) + token));
    let server = RunningServer::start(dir.path(), "warn", Some(("STRANGER", TOKEN)));
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/process/described/schemathesis.toml");
    let drawn = std::env::var("TIDEGATE_SEED").ok();
    let examples = if drawn.is_some() { EXAMPLES_LONG } else { EXAMPLES };
    let mut stranger = python_tool("st");
    stranger.current_dir(dir.path()).arg("--config-file").arg(settings).arg("--no-color");
    stranger.args(["run", &format!("{}/openapi.json", server.address), "--continue-on-failure"]);
    stranger.args(["--phases", "examples,coverage,fuzzing", "--max-examples", examples]);
    stranger.args(["--seed", drawn.as_deref().unwrap_or(SEED), "--suppress-health-check", "all"]);
    stranger.args(["--header", &format!("Authorization: Bearer {TOKEN}")]);
    let output = tokio::task::spawn_blocking(move || stranger.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let (selected, all) = after(&said, "Selected: ").split_once('/').unwrap();
    assert_eq!(after(&said, "Tested: "), selected, "{said}");
    let [selected, all]: [usize; 2] = [selected, all].map(|count| count.parse().unwrap());
    assert_eq!(selected + STREAMS, all, "{said}");
    let talk = server.kill();
    assert!(!talk.contains("panicked"), "{talk}");
}
