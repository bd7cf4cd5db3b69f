//! The commands that the README starts with exist.

use std::fs;

use crate::repository::{file, root, sources};

#[test]
fn the_two_commands_of_the_readme_exist() {
    let readme = file("README.md").text;
    for command in ["cargo run --release -- demo", "./test"] {
        let shown = readme.lines().any(|line| line == command || line.starts_with(&format!("{command} ")));
        assert!(shown, "README.md:1: it must show `{command}`");
    }
    let workspace = file("Cargo.toml").text;
    assert!(
        workspace.contains("default-members = [\"crates/cli\"]"),
        "Cargo.toml:1: `cargo run` must start the CLI"
    );
    let demo = sources()
        .into_iter()
        .find(|file| file.path.starts_with("crates/cli/src") && file.text.contains("Demo"));
    assert!(demo.is_some(), "crates/cli/src/main.rs:1: there is no command `demo`");
}

#[cfg(unix)]
#[test]
fn scripts_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    for script in ["test", ".ci/run"] {
        let mode = fs::metadata(root().join(script)).unwrap_or_else(|error| panic!("{script}: {error}"));
        assert!(mode.permissions().mode() & 0o111 == 0o111, "{script}:1: it is not executable");
    }
}
