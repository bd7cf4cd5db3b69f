//! The file of tokens: what is written reads back, and what others could have changed is refused.

use std::time::Duration;

use super::*;
use crate::config::TokenScope;
use crate::file_watch::FileMark;

fn record(name: &str) -> TokenRecord {
    let token = ApiToken::new(name, "the-token-of-a-reader", vec![TokenScope::Read, TokenScope::Operate]);
    TokenRecord { token, created_at: Some(Time::from_millis(1_700_000_000_000)) }
}

fn file() -> (tempfile::TempDir, TokenFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = TokenFile::new(folder.path().join("tokens.toml"));
    (folder, file)
}

#[test]
fn what_is_written_reads_back() {
    let (_folder, file) = file();
    assert_eq!((file.read().unwrap().len(), FileMark::of(file.path())), (0, None), "there is no file yet");
    let mut first = record("a \"quoted\" name");
    first.token.tenant = Some("acme".to_owned());
    first.token.expires_at = Some(Time::from_millis(1_800_000_000_000));
    file.add(first.clone()).unwrap();
    let mark = FileMark::of(file.path());
    file.add(record("second")).unwrap();
    assert_ne!(FileMark::of(file.path()), mark, "a change is noticed");
    let read = file.read().unwrap();
    assert_eq!(read.len(), 2);
    assert_eq!((&read[0].token, read[0].created_at), (&first.token, first.created_at));
    assert!(!std::fs::read_to_string(file.path()).unwrap().contains("the-token"));
    assert!(file.remove("second").unwrap());
    assert!(!file.remove("second").unwrap());
    assert_eq!(file.read().unwrap().len(), 1);
}

#[test]
fn two_tokens_of_one_name_are_refused() {
    let (_folder, file) = file();
    file.add(record("one")).unwrap();
    assert!(file.add(record("one")).unwrap_err().to_string().contains("already"));
    let text = std::fs::read_to_string(file.path()).unwrap();
    let twice = format!("{text}\n{}", text.split_once('\n').unwrap().1);
    std::fs::write(file.path(), twice).unwrap();
    assert!(file.read().unwrap_err().to_string().contains("another one called"));
}

/// A key that is unknown, or a token in clear, is refused with its place.
#[test]
fn what_does_not_belong_there_is_refused_with_its_place() {
    let (_folder, file) = file();
    for (text, problem) in [
        (
            "[[token]]\nname = \"a\"\nscopes = [\"read\"]\nvalue_env = \"X\"\nhash = \"sha256:00\"\n",
            "value_env",
        ),
        ("[[token]]\nname = \"a\"\nscopes = [\"all\"]\nhash = \"sha256:00\"\n", "There is no scope"),
        ("[[token]]\nname = \"a\"\nscopes = [\"read\"]\nexpires_at = \"soon\"\n", "2031-05-06T07:08:09Z"),
        ("tokens = 1\n", "There is no such key"),
        ("[[token]\n", "This is not TOML"),
    ] {
        std::fs::write(file.path(), text).unwrap();
        close(&file);
        let error = file.read().unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains("tokens.toml:"), "{error}");
    }
}

/// Only the owner may write the file; a file that others may write is not trusted.
#[cfg(unix)]
#[test]
fn others_may_not_write_it() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, file) = file();
    file.add(record("one")).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.path()), 0o600);
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o620)).unwrap();
    assert!(file.read().unwrap_err().to_string().contains("chmod 600"));
    assert!(file.add(record("two")).is_err());
}

/// Processes that change the file at once lose nothing.
#[test]
fn changes_at_once_are_all_kept() {
    let (_folder, file) = file();
    std::thread::scope(|scope| {
        for nth in 0..8 {
            let file = &file;
            scope.spawn(move || file.add(record(&format!("t{nth}"))).unwrap());
        }
    });
    assert_eq!(file.read().unwrap().len(), 8);
}

#[test]
fn tokens_end_when_they_expire() {
    let (now, mut token) = (Time::from_millis(1_000), record("a").token);
    assert!(!token.is_expired(now));
    token.expires_at = Some(now);
    assert!(token.is_expired(now));
    assert!(!token.is_expired(Time::from_millis(999)));
    assert!(token.is_expired(now.after(Duration::from_secs(1))));
}

fn close(file: &TokenFile) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}
