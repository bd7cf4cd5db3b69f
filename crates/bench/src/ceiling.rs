//! The ceiling: the same bytes appended to a plain file with the same group commit, by as many
//! producers and workers, with no decisions and no index. Every store that is durable before it
//! responds must stay below it.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// The measured ceiling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ceiling {
    pub(crate) lifecycles_per_s: f64,
}

type AppendRequest = (Vec<u8>, oneshot::Sender<()>);

/// Bytes of a settlement: a claim, a result row, what an index would add.
const SETTLE_LEN: usize = 64;
/// Bytes of an acceptance besides its payload.
const ACCEPT_OVERHEAD: usize = 96;

/// Measures for `time` with `producers` that wait for each acceptance and `workers` that wait for
/// each settlement.
pub(crate) async fn measure(
    dir: &Path,
    producers: usize,
    workers: usize,
    payload: usize,
    time: Duration,
) -> std::io::Result<Ceiling> {
    let path = dir.join("ceiling.log");
    let file = File::create(&path)?;
    let (send, receive) = mpsc::channel::<AppendRequest>(4_096);
    let writer = std::thread::spawn(move || write(file, receive));
    let (queue, queued) = async_queue();
    let done = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..producers {
        let (send, queue) = (send.clone(), queue.clone());
        tasks.push(tokio::spawn(async move {
            while start.elapsed() < time {
                append(&send, vec![7; payload + ACCEPT_OVERHEAD]).await;
                if queue.send(()).await.is_err() {
                    return;
                }
            }
        }));
    }
    drop(queue);
    for _ in 0..workers {
        let (send, queued, done) = (send.clone(), Arc::clone(&queued), Arc::clone(&done));
        tasks.push(tokio::spawn(async move {
            loop {
                let next = queued.lock().await.recv().await;
                if next.is_none() {
                    return;
                }
                append(&send, vec![9; SETTLE_LEN]).await;
                done.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    drop(send);
    for task in tasks {
        task.await.map_err(std::io::Error::other)?;
    }
    let took = start.elapsed();
    writer.join().map_err(|_| std::io::Error::other("the writer failed"))??;
    std::fs::remove_file(&path)?;
    Ok(Ceiling { lifecycles_per_s: done.load(Ordering::Relaxed) as f64 / took.as_secs_f64() })
}

type SharedQueue = (mpsc::Sender<()>, Arc<tokio::sync::Mutex<mpsc::Receiver<()>>>);

fn async_queue() -> SharedQueue {
    let (send, receive) = mpsc::channel(2_000);
    (send, Arc::new(tokio::sync::Mutex::new(receive)))
}

async fn append(send: &mpsc::Sender<AppendRequest>, bytes: Vec<u8>) {
    let (done, written) = oneshot::channel();
    if send.send((bytes, done)).await.is_ok() {
        // The writer ends only when all senders are gone.
        let _ = written.await;
    }
}

fn write(mut file: File, mut receive: mpsc::Receiver<AppendRequest>) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    let mut waiting = Vec::new();
    while let Some((bytes, done)) = receive.blocking_recv() {
        buffer.extend_from_slice(&bytes);
        waiting.push(done);
        while let Ok((bytes, done)) = receive.try_recv() {
            buffer.extend_from_slice(&bytes);
            waiting.push(done);
        }
        file.write_all(&buffer)?;
        file.sync_data()?;
        buffer.clear();
        for done in waiting.drain(..) {
            // The waiting task may be gone.
            let _ = done.send(());
        }
    }
    Ok(())
}
