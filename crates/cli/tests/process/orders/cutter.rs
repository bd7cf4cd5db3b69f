//! Stands between clients and a proxy and cuts some of their connections: inside of the request,
//! while it is in work, or inside of the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate_sim::rng::SeededRng;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// How many of all connections are cut.
const SHARE: f64 = 0.05;
/// After how many bytes at most. An order is shorter than this and its answer about as long.
const REQUEST_MAX: u64 = 512;
const ANSWER_MAX: u64 = 256;
/// A client that says nothing for so long has said everything, and its order is in work.
const SILENCE: Duration = Duration::from_millis(2);

/// How many connections there were, and how many of them were cut on the way there and on the way
/// back.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub connections: AtomicUsize,
    pub requests: AtomicUsize,
    pub answers: AtomicUsize,
}

/// Where a connection is cut, after so many bytes.
#[derive(Clone, Copy)]
enum CutPoint {
    Request(u64),
    Answer(u64),
}

/// A bad line. It ends with its handle.
pub(super) struct CuttingProxy {
    /// Where it listens.
    pub port: u16,
    pub counts: Arc<Counts>,
    task: tokio::task::JoinHandle<()>,
}

impl CuttingProxy {
    /// In front of what listens there.
    pub(super) async fn start(proxy: String, mut chance: SeededRng) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let counts = Arc::new(Counts::default());
        let counted = Arc::clone(&counts);
        let task = tokio::spawn(async move {
            loop {
                let Ok((client, _)) = listener.accept().await else { continue };
                let (counts, proxy, cut) = (Arc::clone(&counted), proxy.clone(), draw(&mut chance));
                counts.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move { carry(client, &proxy, cut, &counts).await });
            }
        });
        Self { port, counts, task }
    }
}

impl Drop for CuttingProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The fate of a connection.
fn draw(chance: &mut SeededRng) -> Option<CutPoint> {
    let (is_cut, on_the_way_back, bytes) = (chance.happens(SHARE), chance.happens(0.5), chance.next());
    let cut = if on_the_way_back {
        CutPoint::Answer(bytes % ANSWER_MAX)
    } else {
        CutPoint::Request(bytes % REQUEST_MAX)
    };
    is_cut.then_some(cut)
}

/// Carries a connection to its end, or to where it is cut. Whichever way ends first ends both.
async fn carry(client: TcpStream, proxy: &str, cut: Option<CutPoint>, counts: &Counts) {
    let Ok(proxy) = TcpStream::connect(proxy).await else { return };
    let (mut asked, mut answer) = client.into_split();
    let (mut answered, mut ask) = proxy.into_split();
    let (was_cut, count) = match cut {
        None => {
            tokio::select! {
                _ = copy(&mut asked, &mut ask) => {}
                _ = copy(&mut answered, &mut answer) => {}
            }
            return;
        }
        Some(CutPoint::Request(bytes)) => tokio::select! {
            cut = pass(asked, ask, bytes, Some(SILENCE)) => (cut, &counts.requests),
            _ = copy(&mut answered, &mut answer) => return,
        },
        Some(CutPoint::Answer(bytes)) => tokio::select! {
            _ = copy(&mut asked, &mut ask) => return,
            cut = pass(answered, answer, bytes, None) => (cut, &counts.answers),
        },
    };
    count.fetch_add(usize::from(was_cut), Ordering::Relaxed);
}

/// Passes so many bytes on and no more, and answers whether it was cut there or, where that counts,
/// when all had been said.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, most: u64, silence: Option<Duration>) -> bool {
    let (mut bytes, mut left) = ([0; 1_024], most as usize);
    loop {
        let begun = left as u64 != most;
        let read = match silence.filter(|_| begun) {
            None => from.read(&mut bytes).await,
            Some(silence) => match timeout(silence, from.read(&mut bytes)).await {
                Ok(read) => read,
                Err(_) => return true,
            },
        };
        let Ok(read @ 1..) = read else { return false };
        let passed = read.min(left);
        if to.write_all(&bytes[..passed]).await.is_err() {
            return false;
        }
        left -= passed;
        if passed < read || left == 0 {
            return true;
        }
    }
}
