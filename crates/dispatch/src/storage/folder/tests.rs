//! Files in a folder: put, replaced, read at the same time, and what must not work.

use std::sync::Arc;

use super::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and so on";

fn open() -> (tempfile::TempDir, FolderStorage) {
    let dir = tempfile::tempdir().unwrap();
    let folder = FolderStorage::open(dir.path().join("results")).unwrap();
    (dir, folder)
}

fn temporary_files(folder: &FolderStorage) -> usize {
    fs::read_dir(folder.root.join(TEMPORARY)).unwrap().count()
}

/// DSP-20: a file comes back as it was stored, after a restart too; storing it again is harmless.
#[tokio::test]
async fn dsp_20_a_file_is_kept_in_its_folder() {
    let (_dir, folder) = open();
    let key = "generations/op_7/0.png";
    assert_eq!(folder.get(key).await, Ok(None));
    for _ in 0..2 {
        folder.put(key, "image/png", Bytes::from_static(PNG)).await.unwrap();
        let again = FolderStorage::open(&folder.root).unwrap();
        let stored = again.get(key).await.unwrap().unwrap();
        assert_eq!((stored.content_type.as_str(), &stored.bytes[..]), ("image/png", PNG));
    }
    folder.put(key, "text/html", Bytes::from_static(b"<script>")).await.unwrap();
    let replaced = folder.get(key).await.unwrap().unwrap();
    assert_eq!(replaced.content_type, content_type::UNKNOWN, "its bytes decide");
    assert_eq!(temporary_files(&folder), 0);
    for absent in ["generations", "generations/op_7", "generations/op_7/1.png", "generations/op_7/0.png/x"] {
        assert_eq!(folder.get(absent).await, Ok(None), "{absent}");
    }
}

/// DSP-20: a reader sees the whole of one file or of the other, whoever writes meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dsp_20_a_reader_never_sees_a_part() {
    let (_dir, folder) = open();
    let folder = Arc::new(folder);
    let contents = [b'a', b'b'].map(|byte| Bytes::from(vec![byte; 300_000]));
    folder.put("x", "image/png", contents[0].clone()).await.unwrap();
    let writers: Vec<_> = contents
        .iter()
        .map(|content| {
            let (folder, content) = (Arc::clone(&folder), content.clone());
            tokio::spawn(async move {
                for _ in 0..10 {
                    folder.put("x", "image/png", content.clone()).await.unwrap();
                }
            })
        })
        .collect();
    while writers.iter().any(|writer| !writer.is_finished()) {
        let read = folder.get("x").await.unwrap().unwrap();
        assert!(contents.contains(&read.bytes), "{} bytes", read.bytes.len());
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(temporary_files(&folder), 0);
}

/// DSP-20: neither a key nor a symbolic link leads out of the folder.
#[cfg(unix)]
#[tokio::test]
async fn dsp_20_no_path_leaves_the_folder() {
    let (dir, folder) = open();
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "hunter2").unwrap();
    std::os::unix::fs::symlink(&outside, folder.root.join("link")).unwrap();
    for key in ["../outside/secret", "/etc/passwd", "link/secret", ".tmp/x"] {
        let read = folder.get(key).await;
        assert!(matches!(read, Err(StorageError::InvalidKey(_))), "{key}: {read:?}");
        let put = folder.put(key, "image/png", Bytes::from_static(PNG)).await;
        assert!(matches!(put, Err(StorageError::InvalidKey(_))), "{key}: {put:?}");
    }
    assert_eq!(fs::read(outside.join("secret")).unwrap(), b"hunter2");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

/// DSP-20: results are for this user alone.
#[cfg(unix)]
#[tokio::test]
async fn dsp_20_no_other_user_may_read_a_result() {
    use std::os::unix::fs::PermissionsExt;
    let (_dir, folder) = open();
    folder.put("generations/op_7/0.png", "image/png", Bytes::from_static(PNG)).await.unwrap();
    for (path, expected) in [
        ("", 0o700),
        (TEMPORARY, 0o700),
        ("generations", 0o700),
        ("generations/op_7", 0o700),
        ("generations/op_7/0.png", 0o600),
    ] {
        let mode = fs::metadata(folder.root.join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, expected, "{path}");
    }
}

/// DSP-20: what a crash left is removed at the next start; what another process writes is not.
#[tokio::test]
async fn dsp_20_a_crash_leaves_nothing_for_long() {
    let (_dir, folder) = open();
    let (left, file) = folder.create_temporary().unwrap();
    let (in_use, recent) = folder.create_temporary().unwrap();
    let written_at = recent.metadata().unwrap().modified().unwrap();
    file.set_modified(written_at - LEFTOVER_AGE * 2).unwrap();
    FolderStorage::open(&folder.root).unwrap();
    assert!(!left.exists() && in_use.exists());
}

#[tokio::test]
async fn failures_have_their_reason() {
    let (dir, folder) = open();
    File::create(folder.root.join("large")).unwrap().set_len(RESULT_FILE_LEN_MAX as u64 + 1).unwrap();
    assert_eq!(folder.get("large").await, Err(StorageError::TooLarge));
    folder.put("a/b", "image/png", Bytes::new()).await.unwrap();
    for taken in ["a", "a/b/c"] {
        let put = folder.put(taken, "image/png", Bytes::from_static(PNG)).await.unwrap_err();
        assert!(matches!(put, StorageError::Io { .. }) && put.is_transient(), "{put}");
    }
    assert_eq!(temporary_files(&folder), 0);
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(FolderStorage::open(&file).is_err());
}
