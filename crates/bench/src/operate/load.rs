//! Lifecycles over HTTP: each connection submits an operation and waits for its end, then submits
//! the next. And pages that look on meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Args;
use crate::call;
use crate::client::{Client, with_headers};

/// Groups: more than there are connections, so that no operation waits for another.
const GROUPS: usize = 1_000;
/// The shortest time from one refresh of an open page to the next: that between two ticks.
const REFRESH: Duration = Duration::from_secs(1);
/// Submits an operation and waits for its end.
const SUBMIT: &str = "/v1/operations?wait_ms=10000";

/// Returns the lifecycles per second.
pub(super) async fn run(addr: SocketAddr, args: &Args, headers: &str, pages: usize) -> Result<f64, String> {
    let (time, start) = (Duration::from_secs(args.seconds), Instant::now());
    let mut looking = JoinSet::new();
    for _ in 0..pages {
        looking.spawn(look(addr));
    }
    let mut tasks = JoinSet::new();
    for connection in 0..args.connections {
        let (mut client, headers) = (Client::connect(addr).await?, headers.to_owned());
        let (body, connections) = (call::body(args.payload), args.connections);
        tasks.spawn(async move {
            let mut ended = 0_u64;
            while start.elapsed() < time {
                let group = (connection + ended as usize * connections) % GROUPS;
                let call = call::call(group as u64, &body).to_string();
                let request = with_headers(addr, "POST", SUBMIT, &headers, &call);
                let (status, body) = client.send(&request).await?;
                if status != 200 {
                    return Err(format!("{status}: {}", String::from_utf8_lossy(body)));
                }
                ended += 1;
            }
            Ok::<_, String>(ended)
        });
    }
    let mut ended = 0;
    while let Some(one) = tasks.join_next().await {
        ended += one.map_err(|error| error.to_string())??;
    }
    let per_s = ended as f64 / start.elapsed().as_secs_f64();
    match looking.try_join_next() {
        Some(Ok(Err(error))) => Err(error),
        Some(Err(error)) => Err(error.to_string()),
        _ => Ok(per_s),
    }
}

/// An open page under load: something changes all the time, so it refreshes as often as it may.
async fn look(addr: SocketAddr) -> Result<(), String> {
    let (mut client, request) =
        (Client::connect(addr).await?, with_headers(addr, "GET", "/page/live", "", ""));
    loop {
        let (status, _) = client.send(&request).await?;
        if status != 200 {
            return Err(format!("a page was refused with {status}"));
        }
        sleep(REFRESH).await;
    }
}
