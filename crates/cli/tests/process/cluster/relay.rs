//! A TCP relay between nodes and their store that can inject network faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_sim::rng::SeededRng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What a connection carries to the store before it goes bad, in bytes: from a few words to some
/// dozen batches.
const REQUESTS: std::ops::Range<u64> = 2 * 1024..192 * 1024;
/// What it carries of answers, which are shorter.
const ANSWERS: std::ops::Range<u64> = 512..16 * 1024;

/// What the line does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkMode {
    /// It passes everything on.
    Good,
    /// After some bytes in either direction it is cut, in the middle of whatever is on its way.
    Cut,
    /// Connections are broken off and new ones are not taken.
    Gone,
    /// After some bytes of answers the next one is swallowed, though its request has arrived, and
    /// the line is cut.
    Swallow,
}

/// A relay. It ends with its handle.
pub(super) struct Relay {
    /// Where it listens.
    pub port: u16,
    line: watch::Sender<LinkMode>,
    cuts: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToStore,
    FromStore,
}

impl Relay {
    /// In front of what listens on this port.
    pub(super) async fn start(store: u16, mut chance: SeededRng) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (line, lines) = watch::channel(LinkMode::Good);
        let cuts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&cuts);
        let task = tokio::spawn(async move {
            loop {
                let Ok((node, _)) = listener.accept().await else { continue };
                if *lines.borrow() == LinkMode::Gone {
                    continue;
                }
                let (lines, counted) = (lines.clone(), Arc::clone(&counted));
                let most =
                    [REQUESTS, ANSWERS].map(|bytes| bytes.start + chance.next() % (bytes.end - bytes.start));
                tokio::spawn(async move {
                    // A store that is away closes the door.
                    let Ok(store) = TcpStream::connect(("127.0.0.1", store)).await else { return };
                    if carry(node, store, lines, most).await {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Self { port, line, cuts, task }
    }

    /// What the line does from now on, on connections that are there too.
    pub(super) fn set_mode(&self, line: LinkMode) {
        self.line.send_replace(line);
    }

    /// How many connections went bad.
    pub(super) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Carries a connection to its end; answers whether it was the line that ended it.
async fn carry(node: TcpStream, store: TcpStream, line: watch::Receiver<LinkMode>, most: [u64; 2]) -> bool {
    node.set_nodelay(true).unwrap();
    store.set_nodelay(true).unwrap();
    let (from_node, to_node) = node.into_split();
    let (from_store, to_store) = store.into_split();
    let mut gone = line.clone();
    // Whichever way ends first ends both.
    tokio::select! {
        _ = gone.wait_for(|line| *line == LinkMode::Gone) => true,
        cut = pass(from_node, to_store, Direction::ToStore, line.clone(), most[0]) => cut,
        cut = pass(from_store, to_node, Direction::FromStore, line.clone(), most[1]) => cut,
    }
}

/// Passes bytes on in one direction; answers whether the line went bad.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    way: Direction,
    line: watch::Receiver<LinkMode>,
    most: u64,
) -> bool {
    let (mut bytes, mut left) = (vec![0; 16 * 1024], most);
    loop {
        let Ok(read @ 1..) = from.read(&mut bytes).await else { return false };
        let is_over = read as u64 >= left;
        let (passed, is_bad) = match (*line.borrow(), way) {
            (LinkMode::Cut, _) if is_over => (left as usize, true),
            (LinkMode::Swallow, Direction::FromStore) if is_over => (0, true),
            _ => (read, false),
        };
        left = left.saturating_sub(read as u64).max(1);
        if to.write_all(&bytes[..passed]).await.is_err() {
            return false;
        }
        if is_bad {
            return true;
        }
    }
}
