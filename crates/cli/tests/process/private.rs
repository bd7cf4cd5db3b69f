//! What others must not find on the disk: credentials that callers send along, and files that they
//! may read.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hyper::Method;
use serde_json::{Value, json};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::caller::Caller;
use crate::child::{RunningServer, configure, upstream};

const SECRET: &str = "hunter2-hunter2";

/// The files of a folder, with their modes and what they hold.
fn files(dir: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = |entry: std::fs::DirEntry| {
        let path = entry.path();
        (entry.file_name().into_string().unwrap(), mode(&path), std::fs::read(&path).unwrap())
    };
    entries.map(file).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// OPS-22: a header that carries a credential is refused by its field and is nowhere on the disk;
/// other headers are sent. The store's files are their owner's alone, also in a folder that was
/// open to others.
#[tokio::test(flavor = "multi_thread")]
async fn ops_22_credentials_and_files_are_private() {
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    let allowed = format!("{}stored_headers = [\"X-Tenant-Key\"]\n", upstream("echo", &sim, None));
    configure(dir.path(), 4, &allowed);
    let server = RunningServer::start(dir.path(), "warn", None);
    let caller = Caller::of(&server.address);
    let operation = |path: &str, name: &str, value: &str| {
        let request = json!({ "method": "POST", "path": path, "headers": { name: value }, "body": {} });
        json!({ "kind": "http", "upstream": "echo", "group": "g", "request": request })
    };
    for (path, name, value, field) in [
        ("/x", "x-vault-token", SECRET, "request.headers.x-vault-token"),
        ("/x", "X-RapidAPI-Key", SECRET, "request.headers.X-RapidAPI-Key"),
        ("/x", "x-custom", "Bearer hunter2-hunter2", "request.headers.x-custom"),
        ("/.. ", "accept", "a", "request.path"),
    ] {
        let body = operation(path, name, value);
        let (status, answer) = caller.call(Method::POST, "/v1/operations", &[], Some(&body)).await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &answer["error"]["detail"]["field"]), (400, &field.into()), "{answer}");
        assert!(!answer.to_string().contains(SECRET), "{answer}");
    }
    for (name, value) in [("x-group", "kept-value-1"), ("x-tenant-key", "kept-value-2")] {
        let (id, _) = caller.submit(&operation("/x", name, value)).await;
        assert_eq!(caller.wait_until_ended(&id).await, "succeeded");
    }
    let found = files(&data);
    assert!(found.iter().any(|(.., bytes)| holds(bytes, "kept-value-1")), "headers are stored here");
    for (name, mode, bytes) in &found {
        assert_eq!(*mode, 0o600, "{name}");
        assert!(!holds(bytes, SECRET), "{name}");
    }
    assert_eq!(std::fs::metadata(&data).unwrap().permissions().mode() & 0o777, 0o700);
}
