//! A folder that was damaged while nobody used it: the server says so, and never sends what it did
//! not accept.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::ALONE;
use crate::arrivals::arrivals;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, tidegate, upstream};

fn operation(nth: usize) -> Value {
    let request =
        json!({ "method": "POST", "path": "/g", "body": { "id": nth, "note": format!("marker-{nth}") } });
    json!({ "upstream": "echo", "group": "g", "request": request })
}

/// The server in a folder with a paused group and these operations in it; its address, and their
/// ids.
async fn with_operations(dir: &Path, count: usize) -> (RunningServer, Vec<String>) {
    let server = RunningServer::start(dir, "warn", None);
    let caller = Caller::of(&server.address);
    caller.post("/v1/groups/g/pause", &[], &json!({ "create": true })).await;
    let mut ids = Vec::new();
    for nth in 0..count {
        ids.push(caller.submit(&operation(nth)).await.0);
    }
    (server, ids)
}

fn in_data(dir: &Path, wanted: &str) -> PathBuf {
    let mut paths = fs::read_dir(dir.join("data")).unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.to_string_lossy().contains(wanted)).unwrap()
}

/// Waits until these bytes are in a file, and puts others in their place.
async fn patch(path: &Path, from: &[u8], to: &[u8]) {
    for _ in 0..1_000 {
        let mut bytes = fs::read(path).unwrap();
        let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
        if !places.is_empty() {
            if from != to {
                places.iter().for_each(|at| bytes[*at..at + to.len()].copy_from_slice(to));
                fs::write(path, bytes).unwrap();
            }
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("{} is not filled", path.display());
}

/// OPS-8: a payload that was patched on the disk is not sent: its operation fails and says why, the
/// others go out.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_a_patched_payload_is_never_sent() {
    let _alone = ALONE.lock().await;
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), 4, &upstream("echo", &sim, None));
    let (server, ids) = with_operations(dir.path(), 3).await;
    let data = dir.path().join("data");
    patch(&data.join("p0.sqlite"), b"marker-2", b"marker-2").await;
    server.kill();
    // All that matters has been moved from there into the file.
    for name in ["p0.sqlite-wal", "p0.sqlite-shm"] {
        let _ = fs::remove_file(data.join(name));
    }
    patch(&data.join("p0.sqlite"), b"marker-1", b"marker-7").await;
    let server = RunningServer::start(dir.path(), "warn", None);
    let caller = Caller::of(&server.address);
    let waiting = caller.get("/v1/operations?state=queued").await;
    assert!(ids[1..].iter().all(|id| waiting.contains(id)), "one that is damaged hides no other: {waiting}");
    caller.post("/v1/groups/g/resume", &[], &json!({})).await;
    let mut states = Vec::new();
    for id in &ids {
        states.push(caller.wait_until_ended(id).await);
    }
    assert_eq!(states, ["succeeded", "failed", "succeeded"]);
    for path in [format!("/v1/operations/{}", ids[1]), "/?state=failed".into()] {
        let shown = caller.get(&path).await;
        assert!(shown.contains(&ids[1]) && shown.contains("was not sent"), "{shown}");
    }
    assert_eq!(arrivals(&sim).await["/g"], [0, 2], "what was patched has not left");
    assert!(server.kill().contains("damaged"), "the log says so too");
}

/// OPS-8: killed, and then the front loses its end: the server does not start, and names file, byte
/// and what is gone.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_a_front_that_lost_its_end_is_refused() {
    let _alone = ALONE.lock().await;
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), 4, &upstream("echo", &sim, None));
    let server = RunningServer::start(dir.path(), "warn", None);
    // They wait without a command, whose entry in the audit log would be missed first.
    for nth in 0..5 {
        let mut delayed = operation(nth);
        delayed["delay_ms"] = 60_000.into();
        Caller::of(&server.address).submit(&delayed).await;
    }
    server.kill();
    // What SQLite had not made durable by itself, as after a power loss: it has none of it.
    for name in ["p0.sqlite", "p0.sqlite-wal", "p0.sqlite-shm"] {
        let _ = fs::remove_file(dir.path().join("data").join(name));
    }
    let front = in_data(dir.path(), ".front-");
    let whole = fs::read(&front).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
    fs::write(&front, &whole[..used]).unwrap();
    let mut command = tidegate();
    command.arg("serve").arg("--config").arg(dir.path().join("tidegate.toml")).current_dir(dir.path());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let parts = ["TG0022", &*front.file_name().unwrap().to_string_lossy(), "at byte ", "were acknowledged"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    assert_eq!(sim.stats().calls, 0);
}
