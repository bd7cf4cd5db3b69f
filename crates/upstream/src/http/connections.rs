//! A pool of HTTP/1.1 connections to one origin; the most recently used one is used next. Each
//! carries one request at a time. A request is written once: it moves to another connection only
//! while hyper still has all of it, so none of it was written.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{Request, Response, Uri};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use tokio::time::{Instant, sleep};

use super::connect::{BoxError, Connector};
use super::send_state::WithdrawableBody;

/// Idle connections are closed before most servers do so (Node after 5 s): a request on a
/// connection that the server is just closing would have an unknown outcome.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// Most idle connections.
const IDLE_CONNECTIONS_MAX: usize = 256;

/// The connections to one origin.
#[derive(Debug)]
pub(super) struct Connections {
    connector: Connector,
    origin: Uri,
    idle: Arc<IdleConnections>,
}

/// Connections without a request, the most recently used last.
#[derive(Debug, Default)]
struct IdleConnections(Mutex<IdleState>);

#[derive(Debug, Default)]
struct IdleState {
    connections: VecDeque<(SendRequest<WithdrawableBody>, Instant)>,
    /// Whether a task is closing connections that have been idle for too long.
    is_watched: bool,
}

/// A response whose body is still arriving. Once it is read completely, its connection returns to
/// the pool.
#[derive(Debug)]
pub(super) struct PooledResponse {
    pub(super) head: Parts,
    body: Incoming,
    connection: Option<SendRequest<WithdrawableBody>>,
    idle: Arc<IdleConnections>,
}

impl Connections {
    pub(super) fn new(connector: Connector, origin: Uri) -> Self {
        Self { connector, origin, idle: Arc::default() }
    }

    /// Sends a request, which has a `Host`, and waits for the head of the response.
    pub(super) async fn send(
        &self,
        mut request: Request<WithdrawableBody>,
    ) -> Result<PooledResponse, BoxError> {
        while let Some(mut connection) = self.idle.take() {
            if connection.ready().await.is_err() {
                // The server has closed it.
                continue;
            }
            match connection.try_send_request(request).await {
                Ok(response) => return Ok(self.receive(response, connection)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(error.into_error().into()),
                },
            }
        }
        let mut connection = self.open().await?;
        let response = connection.send_request(request).await?;
        Ok(self.receive(response, connection))
    }

    async fn open(&self) -> Result<SendRequest<WithdrawableBody>, BoxError> {
        let stream = self.connector.connect(self.origin.clone()).await?;
        let (requests, connection) = handshake(stream).await?;
        tokio::spawn(async move {
            // An error shows in the request that it affects.
            let _ = connection.await;
        });
        Ok(requests)
    }

    fn receive(
        &self,
        response: Response<Incoming>,
        connection: SendRequest<WithdrawableBody>,
    ) -> PooledResponse {
        let (head, body) = response.into_parts();
        PooledResponse { head, body, connection: Some(connection), idle: Arc::clone(&self.idle) }
    }
}

impl PooledResponse {
    /// The length of the body, if the response states it.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// Returns the next chunk of the body; `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        while let Some(frame) = self.body.frame().await {
            // Trailers are ignored.
            if let Ok(data) = frame?.into_data() {
                return Ok(Some(data));
            }
        }
        if let Some(connection) = self.connection.take() {
            self.idle.keep(connection);
        }
        Ok(None)
    }
}

impl IdleConnections {
    fn lock(&self) -> MutexGuard<'_, IdleState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<SendRequest<WithdrawableBody>> {
        let mut idle = self.lock();
        idle.close_expired();
        idle.connections.pop_back().map(|(connection, _)| connection)
    }

    fn keep(self: &Arc<Self>, connection: SendRequest<WithdrawableBody>) {
        if connection.is_closed() {
            return;
        }
        let mut idle = self.lock();
        if idle.connections.len() == IDLE_CONNECTIONS_MAX {
            idle.connections.pop_front();
        }
        idle.connections.push_back((connection, Instant::now()));
        if !std::mem::replace(&mut idle.is_watched, true) {
            tokio::spawn(watch(Arc::downgrade(self)));
        }
    }
}

impl IdleState {
    fn close_expired(&mut self) {
        let is_expired = |(_, since): &(_, Instant)| since.elapsed() >= IDLE_MAX;
        while self.connections.front().is_some_and(is_expired) {
            self.connections.pop_front();
        }
    }
}

/// Closes connections that have been idle for too long, until none is left.
async fn watch(connections: Weak<IdleConnections>) {
    loop {
        sleep(IDLE_MAX / 2).await;
        let Some(connections) = connections.upgrade() else { return };
        let mut idle = connections.lock();
        idle.close_expired();
        if idle.connections.is_empty() {
            idle.is_watched = false;
            return;
        }
    }
}
