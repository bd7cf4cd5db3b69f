//! Four endpoints on loopback that take submits, and one log of all that arrived. Each waits for
//! its latency, then accepts, or refuses while it fails. They speak a plain API, and that of
//! OpenAI's images for the peer: what is measured is who sends what, not what is drawn.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use tidegate_sim::server::{self, SimReply, SimServer, Simulator};
use tokio::time::Instant;

/// How many there are.
pub(super) const COUNT: usize = 4;
/// The path of submits, and that of the peer's.
pub(super) const SUBMIT: &str = "/submit";
const SUBMIT_OPENAI: &str = "/v1/images/generations";
/// The path of the only file, a picture by its first bytes.
const FILE: &str = "/file.png";
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// A submit that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubmitRecord {
    pub at: Instant,
    pub is_accepted: bool,
}

/// The submits of each prompt, in the order of their arrival.
pub(super) type SubmitsByPrompt = HashMap<String, Vec<SubmitRecord>>;

#[derive(Debug, Default)]
struct SubmitLog(Mutex<SubmitsByPrompt>);

impl SubmitLog {
    fn record(&self, prompt: &str, submit: SubmitRecord) {
        let mut submits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        submits.entry(prompt.to_owned()).or_default().push(submit);
    }
}

#[derive(Debug)]
struct Endpoint {
    log: Arc<SubmitLog>,
    is_failing: Arc<AtomicBool>,
    latency: Duration,
}

impl Endpoint {
    async fn submit(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let prompt = body.get("prompt").and_then(Value::as_str).unwrap_or_default();
        let is_accepted = !self.is_failing.load(Ordering::Relaxed);
        self.log.record(prompt, SubmitRecord { at: Instant::now(), is_accepted });
        tokio::time::sleep(self.latency).await;
        if !is_accepted {
            let error = json!({ "error": { "message": "It is out of service." } });
            return server::json(StatusCode::SERVICE_UNAVAILABLE, &error);
        }
        let host = request.headers().get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
        if request.uri().path() == SUBMIT_OPENAI {
            let picture = json!({ "url": format!("http://{host}{FILE}") });
            return server::json(StatusCode::OK, &json!({ "created": 0, "data": [picture] }));
        }
        server::json(StatusCode::OK, &finished_job(prompt, host))
    }
}

/// A job, which is finished as soon as it is accepted.
fn finished_job(id: &str, host: &str) -> Value {
    json!({ "id": id, "status": "done", "files": [format!("http://{host}{FILE}")] })
}

impl Simulator for Endpoint {
    async fn reply(&self, request: Request<Bytes>) -> SimReply {
        let path = request.uri().path();
        let host = request.headers().get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
        SimReply::Answer(match (request.method(), path) {
            (&Method::POST, SUBMIT | SUBMIT_OPENAI) => self.submit(&request).await,
            (&Method::GET, FILE) => Response::new(Bytes::from_static(PICTURE)),
            (&Method::GET, job) => {
                server::json(StatusCode::OK, &finished_job(job.trim_start_matches("/jobs/"), host))
            }
            _ => server::json(StatusCode::NOT_FOUND, &json!({})),
        })
    }
}

/// The endpoints.
#[derive(Debug)]
pub(super) struct EndpointSet {
    servers: Vec<SimServer>,
    failing: Vec<Arc<AtomicBool>>,
    log: Arc<SubmitLog>,
}

impl EndpointSet {
    pub(super) async fn start(latency: Duration) -> io::Result<Self> {
        let mut set = Self { servers: Vec::new(), failing: Vec::new(), log: Arc::default() };
        for _ in 0..COUNT {
            let is_failing = Arc::new(AtomicBool::new(false));
            let endpoint =
                Endpoint { log: Arc::clone(&set.log), is_failing: Arc::clone(&is_failing), latency };
            let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            set.servers.push(SimServer::start(listen, Arc::new(endpoint)).await?);
            set.failing.push(is_failing);
        }
        Ok(set)
    }

    /// The base URL of each.
    pub(super) fn bases(&self) -> Vec<String> {
        self.servers.iter().map(|server| format!("http://{}", server.addr())).collect()
    }

    /// The switch of the first one, which is everyone's first choice.
    pub(super) fn first(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.failing[0])
    }

    /// Lets all of them fail, or none.
    pub(super) fn set_all_failing(&self, is_failing: bool) {
        for switch in &self.failing {
            switch.store(is_failing, Ordering::Relaxed);
        }
    }

    /// How many submits have arrived since the log was taken.
    pub(super) fn submits(&self) -> usize {
        self.log.0.lock().unwrap_or_else(PoisonError::into_inner).values().map(Vec::len).sum()
    }

    /// Takes the log, and begins another one.
    pub(super) fn take_log(&self) -> SubmitsByPrompt {
        std::mem::take(&mut *self.log.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
