//! The example service behind another implementation of idempotency: axum-idempotent with its
//! in-memory store, or a middleware of a few lines on Redis. It prints its address on one line, and
//! exits with its parent.

// The same source, not the same crate: the example's other dependencies are not wanted here.
#[path = "../../../../../examples/intake/src/lib.rs"]
mod intake;
mod sessions;
mod set_nx;

use std::io::Read;

use axum::Router;
use axum::routing::get;
use intake::{ItemStore, router};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The same allocator as in the program it is compared with.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The variable with the Redis URL. A variable, because arguments show in the list of processes,
/// and passwords with them.
const STORE_VAR: &str = "TIDEGATE_PEER_STORE";

#[tokio::main]
async fn main() -> Result<(), String> {
    let (who, keep_s) = asked()?;
    let shelf = ItemStore::default();
    let service = router(shelf.clone());
    let service = match who.as_str() {
        "axum-idempotent" => sessions::layered(service, keep_s),
        "set-nx" => {
            let url = std::env::var(STORE_VAR).map_err(|_| format!("{STORE_VAR} is not set"))?;
            set_nx::layered(service, &url, keep_s).await?
        }
        other => return Err(format!("{other:?} is nobody here")),
    };
    // Outside the layer that is measured.
    let count = get(async move || shelf.count().to_string());
    let service = Router::new().route("/count", count).merge(service);
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
    let addr = listener.local_addr().map_err(|error| error.to_string())?;
    println!("{addr}");
    let gone = parent_gone();
    tokio::select! {
        ended = axum::serve(listener, service) => ended.map_err(|error| error.to_string()),
        _ = gone => Ok(()),
    }
}

/// Returns which implementation to serve, and for how many seconds a response is kept.
fn asked() -> Result<(String, u64), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [who, keep_s] = args.as_slice() else { return Err("two arguments: who, and seconds to keep".into()) };
    let keep_s = keep_s.parse().map_err(|_| format!("seconds must be a whole number, not {keep_s:?}"))?;
    Ok((who.clone(), keep_s))
}

/// Resolves when the parent has ended.
fn parent_gone() -> oneshot::Receiver<()> {
    let (tell, gone) = oneshot::channel();
    std::thread::spawn(move || {
        // Nothing is ever sent: the end of input is the signal, and so is an error.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = tell.send(());
    });
    gone
}
