//! `tidegate token`: the file that it keeps, and a server that reads it.

use std::path::Path;

use crate::support::{CommandOutput, run, tidegate};

fn token(folder: &Path, args: &[&str]) -> CommandOutput {
    let mut command = tidegate();
    command.current_dir(folder).arg("token").args(args);
    run(command)
}

/// A token is printed once, listed without itself, and gone when it is revoked.
#[test]
fn a_token_is_created_listed_and_revoked() {
    let folder = tempfile::tempdir().unwrap();
    // Neither the secrets of the server nor the rest of its configuration are needed.
    let config =
        "[auth]\ntokens_file = \"tokens.toml\"\n[[upstream]]\nname = \"a\"\ntoken_env = \"NOT_SET\"\n";
    std::fs::write(folder.path().join("tidegate.toml"), config).unwrap();
    let created = token(
        folder.path(),
        &[
            "create",
            "deploys",
            "--scope",
            "write,read",
            "--scope",
            "read",
            "--tenant",
            "acme",
            "--expires",
            "90d",
        ],
    );
    let text = created.expect_success();
    assert!(text.starts_with("tg_") && text.len() == 67, "{created:?}");
    let kept = std::fs::read_to_string(folder.path().join("tokens.toml")).unwrap();
    assert!(!kept.contains(text) && kept.contains("sha256:"), "{kept}");
    let again = token(folder.path(), &["create", "deploys", "--scope", "read"]);
    assert_eq!(again.exit, Some(1));
    assert!(again.err.contains("already") && again.out.is_empty(), "{again:?}");
    let listed = token(folder.path(), &["list", "--json"]).json();
    let one = &listed["tokens"][0];
    assert_eq!((&one["name"], &one["tenant"]), (&"deploys".into(), &"acme".into()));
    assert_eq!(one["scopes"], serde_json::json!(["read", "write"]));
    assert!(one["expires_at"].as_str() > one["created_at"].as_str(), "{listed}");
    assert!(!listed.to_string().contains("sha256"), "{listed}");
    let table = token(folder.path(), &["list"]);
    assert!(table.expect_success().contains("read,write"), "{table:?}");
    assert_eq!(token(folder.path(), &["revoke", "deploys"]).exit, Some(0));
    let gone = token(folder.path(), &["revoke", "deploys"]);
    assert!(gone.exit == Some(1) && gone.err.contains("has no token"), "{gone:?}");
    assert_eq!(token(folder.path(), &["list", "--json"]).json()["tokens"], serde_json::json!([]));
}

#[test]
fn wrong_words_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (args, problem) in [
        (&["create", "a"][..], "--scope"),
        (&["create", "a", "--scope", "all"][..], "read, write, work, operate"),
        (&["create", "a b", "--scope", "read"][..], "letters"),
        (&["create", "a", "--scope", "read", "--tenant", ""][..], "tenant"),
        (&["create", "a", "--scope", "read", "--expires", "soon"][..], "90s"),
        (&["list"][..], "tokens_file"),
        (&["list", "--file", "a", "--config", "b"][..], "cannot be used with"),
    ] {
        let ran = token(folder.path(), args);
        assert_eq!(ran.exit, Some(2), "{ran:?}");
        assert!(ran.err.contains(problem), "{problem}: {ran:?}");
    }
    let elsewhere = token(folder.path(), &["create", "a", "--scope", "read", "--file", "none/tokens.toml"]);
    assert!(elsewhere.exit == Some(1) && elsewhere.err.contains("none/tokens.toml"), "{elsewhere:?}");
}
