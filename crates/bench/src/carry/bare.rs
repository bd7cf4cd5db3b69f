//! The bare client: one connection per call in flight, each with the next call as soon as the last
//! response arrived. Hyper and nothing else; no pool, no queue, nothing is stored.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{Args, Run, Stopwatch};
use crate::call;
use crate::server_process::ServerProcess;

pub(super) async fn measure(args: &Args, upstream: &ServerProcess) -> Result<Run, String> {
    let body = Bytes::from(call::body(args.payload).to_string());
    let (before, next) = (upstream.items().await?, Arc::new(AtomicU64::new(0)));
    let mut connections = Vec::new();
    for _ in 0..args.workers {
        connections.push(connect(upstream.addr).await?);
    }
    let (mut tasks, watch) = (JoinSet::new(), Stopwatch::start());
    for mut connection in connections {
        let (body, next, addr, most) = (body.clone(), Arc::clone(&next), upstream.addr, args.operations);
        tasks.spawn(async move {
            while next.fetch_add(1, Ordering::Relaxed) < most {
                send(&mut connection, addr, body.clone()).await?;
            }
            Ok::<_, String>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())??;
    }
    let run = watch.stop(args.operations);
    super::queue::check_call_count(args.operations, upstream.items().await? - before)?;
    Ok(run)
}

async fn connect(addr: SocketAddr) -> Result<SendRequest<Full<Bytes>>, String> {
    let stream = TcpStream::connect(addr).await.map_err(|error| format!("{addr}: {error}"))?;
    stream.set_nodelay(true).map_err(|error| format!("{addr}: {error}"))?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        // An error shows in the call that it affects.
        let _ = connection.await;
    });
    Ok(sender)
}

/// Sends one call, with the headers that the queue also sends.
async fn send(
    connection: &mut SendRequest<Full<Bytes>>,
    addr: SocketAddr,
    body: Bytes,
) -> Result<(), String> {
    let request = Request::builder()
        .method(Method::POST)
        .uri("/x")
        .header(HOST, addr.to_string())
        .header(USER_AGENT, "bench")
        .header(CONTENT_TYPE, "application/json")
        .header("tidegate-operation", "op_000000000000000000000000000")
        .body(Full::new(body))
        .map_err(|error| error.to_string())?;
    connection.ready().await.map_err(|error| error.to_string())?;
    let response = connection.send_request(request).await.map_err(|error| error.to_string())?;
    let status = response.status();
    response.into_body().collect().await.map_err(|error| error.to_string())?;
    if status == StatusCode::OK { Ok(()) } else { Err(format!("the upstream responded with {status}")) }
}
