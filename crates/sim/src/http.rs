//! A simulator of a plain HTTP API that accepts any path: writes have an effect and are logged in
//! order, calls beyond its limit get a 429, and it fails or cuts the connection at configured
//! rates.

pub mod log;
pub mod sim_state;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::{Request, Response, StatusCode};
use serde_json::json;
use tidegate_core::Time;
use tidegate_core::time::millis_up;
use tokio::time::Instant;

use crate::server::{SimReply, SimServer, Simulator, json};
use crate::stats::Stats;
use crate::token_bucket::BucketDecision;
use sim_state::{HttpSimOutcome, HttpSimRequest, HttpSimState};

/// The options of the simulator.
#[derive(Clone, Debug)]
pub struct HttpSimOptions {
    /// The address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The capacity of its bucket, in calls.
    pub capacity: u64,
    /// The refill per second; `None` for no limit at all.
    pub refill_per_s: Option<f64>,
    /// The latency of each response.
    pub latency: Duration,
    /// How often a call fails with a 500 and no effect, from 0 to 1.
    pub fail_rate: f64,
    /// How often the connection is cut after the effect, from 0 to 1.
    pub cut_rate: f64,
    /// Determines which calls fail and which are cut.
    pub seed: u64,
}

impl Default for HttpSimOptions {
    /// No limit, no latency, no faults, any free port.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            capacity: 40,
            refill_per_s: None,
            latency: Duration::ZERO,
            fail_rate: 0.0,
            cut_rate: 0.0,
            seed: 0,
        }
    }
}

impl HttpSimOptions {
    fn problem(&self) -> Option<&'static str> {
        let is_rate = |rate| (0.0..=1.0).contains(&rate);
        if !is_rate(self.fail_rate) || !is_rate(self.cut_rate) {
            return Some("A fail rate and a cut rate are 0 to 1.");
        }
        match self.refill_per_s {
            Some(refill) if !(0.0..=1e12).contains(&refill) => Some("A refill per second is 0 to 10^12."),
            Some(_) if self.capacity == 0 => Some("A capacity of 0 lets no call through."),
            _ => None,
        }
    }
}

/// A running simulator. Dropping it stops it.
#[derive(Debug)]
pub struct HttpSim {
    server: SimServer,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    world: Mutex<HttpSimState>,
    latency: Duration,
    started: Instant,
}

impl HttpSim {
    /// Starts a simulator.
    ///
    /// # Errors
    /// When an option is invalid, or the address cannot be bound.
    pub async fn start(options: HttpSimOptions) -> io::Result<Self> {
        if let Some(problem) = options.problem() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let world = Mutex::new(HttpSimState::new(&options));
        let shared = Arc::new(Shared { world, latency: options.latency, started: Instant::now() });
        let server = SimServer::start(options.listen, Arc::clone(&shared)).await?;
        Ok(Self { server, shared })
    }

    /// Returns the address it listens on.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.world().stats().clone()
    }

    /// Stops it.
    pub async fn shutdown(self) {
        self.server.shutdown().await;
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, HttpSimState> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn control(&self, request: &Request<Bytes>) -> Response<Bytes> {
        match request.uri().path() {
            "/_sim/stats" => json(StatusCode::OK, self.world().stats()),
            "/_sim/log" => {
                let after = request.uri().query().and_then(|query| query.strip_prefix("after="));
                match after.unwrap_or("0").parse() {
                    Ok(after) => json(StatusCode::OK, &self.world().log().page(after)),
                    Err(_) => json(StatusCode::BAD_REQUEST, &json!({ "error": "after is a number" })),
                }
            }
            _ => json(StatusCode::NOT_FOUND, &json!({ "error": "there are /_sim/stats and /_sim/log" })),
        }
    }
}

impl Simulator for Shared {
    async fn reply(&self, request: Request<Bytes>) -> SimReply {
        if request.uri().path().starts_with("/_sim/") {
            return SimReply::Answer(self.control(&request));
        }
        let arrival = HttpSimRequest::of(&request);
        // Also ended when the caller disconnects, for then this future is dropped.
        let _in_progress = InProgressGuard::new(self, &arrival);
        let (ruling, outcome) = {
            let mut world = self.world();
            // Under the lock, so that the bucket never sees time go back.
            let now = Time::ZERO.after(self.started.elapsed());
            world.handle(&arrival, now)
        };
        tokio::time::sleep(self.latency).await;
        let mut response = match outcome {
            HttpSimOutcome::Cut => return SimReply::Cut,
            HttpSimOutcome::Throttled => {
                json(StatusCode::TOO_MANY_REQUESTS, &json!({ "error": "too many requests" }))
            }
            HttpSimOutcome::Failed => {
                json(StatusCode::INTERNAL_SERVER_ERROR, &json!({ "error": "injected failure" }))
            }
            HttpSimOutcome::Done { call } => json(StatusCode::OK, &arrival.echo(call)),
        };
        if let Some(ruling) = ruling {
            add_limit_headers(&mut response, ruling);
        }
        SimReply::Answer(response)
    }
}

/// A call in progress, from its arrival until its response is ready or its caller is gone.
struct InProgressGuard<'a>(&'a Shared, &'a str);

impl<'a> InProgressGuard<'a> {
    fn new(shared: &'a Shared, arrival: &'a HttpSimRequest) -> Self {
        shared.world().begin(arrival.path());
        Self(shared, arrival.path())
    }
}

impl Drop for InProgressGuard<'_> {
    fn drop(&mut self) {
        self.0.world().end(self.1);
    }
}

/// Formats seconds with three decimals, rounded up.
fn seconds(duration: Duration) -> String {
    let millis = millis_up(duration);
    format!("{}.{:03}", millis / 1_000, millis % 1_000)
}

fn add_limit_headers(response: &mut Response<Bytes>, ruling: BucketDecision) {
    let stated = [
        ("x-ratelimit-limit", Some(ruling.limit.to_string())),
        ("x-ratelimit-remaining", Some(ruling.remaining.to_string())),
        ("x-ratelimit-reset-after", Some(seconds(ruling.full_after))),
        ("retry-after", ruling.wait.map(seconds)),
    ];
    for (name, value) in stated {
        if let Some(value) = value.and_then(|value| value.parse().ok()) {
            response.headers_mut().insert(name, value);
        }
    }
}
