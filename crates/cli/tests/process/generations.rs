//! Runs the guide to generations as it is written: every command on its page, in order, in one
//! shell, with real processes for the server and its simulated providers.

mod changed_chain;
mod kills;
mod remote;
mod scale;
mod studio;

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::ALONE;
use crate::child::tidegate;

const PAGE: &str = include_str!("../../../../docs/generations.md");
/// The ports on the page.
const PORTS: [&str; 5] = ["7400", "7413", "7414", "7415", "7416"];

/// The blocks of the page that are marked with a language.
fn blocks(language: &str) -> String {
    let fence = format!("```{language}");
    let (mut text, mut is_inside) = (String::new(), false);
    for line in PAGE.lines() {
        match line {
            line if line == fence => is_inside = true,
            "```" => is_inside = false,
            line if is_inside => {
                text.push_str(line);
                text.push('\n');
            }
            _ => {}
        }
    }
    text
}

/// The same text with ports that are free.
fn with_free_ports(text: &str, free: &[String]) -> String {
    PORTS.iter().zip(free).fold(text.to_owned(), |text, (port, free)| text.replace(port, free))
}

/// DSP-1, DSP-13: the guide works as written: four providers, a server, a picture.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_1_dsp_13_the_guide_works_as_written() {
    let _alone = ALONE.lock().await;
    let dir = tempfile::tempdir().unwrap();
    let free: Vec<String> = {
        let listeners = PORTS.map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        listeners.iter().map(|listener| listener.local_addr().unwrap().port().to_string()).collect()
    };
    std::fs::write(dir.path().join("tidegate.toml"), with_free_ports(&blocks("toml"), &free)).unwrap();
    // The page ends what it started; this is for a page that fails before.
    let script = format!("trap 'kill $(cat pids) 2>/dev/null || true' EXIT\n{}", blocks("sh"));
    let program = Path::new(tidegate().get_program()).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(program).chain(std::env::split_paths(&path))).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-eu", "-c", &with_free_ports(&script, &free)]).current_dir(dir.path()).env("PATH", path);
    shell.env("TIDEGATE_SERVER", format!("http://127.0.0.1:{}", free[0])).env_remove("TIDEGATE_TOKEN");
    let ran = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    let log = std::fs::read_to_string(dir.path().join("serve.log")).unwrap_or_default();
    assert!(ran.status.success(), "{said}{}{log}", String::from_utf8_lossy(&ran.stderr));
    for word in [
        "4 providers, 1 model",
        "event: status",
        "\"status\":\"completed\"",
        "status\tcompleted",
        "replicate\tfree\t",
        "40",
    ] {
        assert!(said.contains(word), "{word:?} is not in {said}{log}");
    }
    assert!(std::fs::read(dir.path().join("picture.png")).unwrap().starts_with(b"\x89PNG"));
    assert_eq!(said.matches("\tsucceeded\t").count(), 2, "two generations are in the ledger: {said}");
}
