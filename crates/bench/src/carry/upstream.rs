//! The upstream: a separate process that responds to every request with 200 on keep-alive
//! connections, at as little cost as hyper allows, and counts its responses.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::server_process::{announce_addr, parent_gone};

/// Serves until the parent exits.
pub(super) async fn serve_until_parent_exits() -> Result<String, String> {
    // One thread that no other wakes: the cost of the upstream reduces what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    std::thread::spawn(move || {
        if let Err(error) = runtime.block_on(serve()) {
            eprintln!("the upstream failed: {error}");
        }
    });
    // A message and a closed channel mean the same.
    let _ = parent_gone().await;
    Ok("no one is left to call this upstream".into())
}

async fn serve() -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    announce_addr(listener.local_addr().map_err(failed)?)?;
    let count = Arc::new(AtomicU64::new(0));
    loop {
        let (stream, _) = listener.accept().await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let count = Arc::clone(&count);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &count));
            // An error is a client that disconnected.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Responds to a call; a GET returns how many there were.
async fn answer(request: Request<Incoming>, count: &AtomicU64) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.method() == Method::GET {
        return Ok(Response::new(Full::from(count.load(Ordering::Relaxed).to_string())));
    }
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    count.fetch_add(1, Ordering::Relaxed);
    let mut response = Response::new(Full::new(Bytes::from_static(br#"{"status":"ok"}"#)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
