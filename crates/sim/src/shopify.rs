//! A simulator of Shopify's Admin API for any number of shops: GraphQL by cost, REST by calls, bulk
//! operations by slots, each limit enforced as Shopify does it. There is no schema behind it: every
//! field exists, and the data is made up.

pub mod address;
pub mod bodies;
pub mod bulk;
pub mod call;
pub mod cost;
pub mod data;
pub mod document;
pub mod keys;
pub mod leaky_bucket;
pub mod page;
pub mod plan;
pub mod points;
pub mod resource;
pub mod rows;
pub mod run;
pub mod shape;
pub mod shop;
pub mod sim_state;
pub mod version;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;
use tidegate_core::Time;
use tidegate_encoding::{AcceptEncoding, encode};
use tokio::time::Instant;

use crate::server::{IteratorBody, SimReply, SimServer, Simulator, json as answer};
use address::{AddressError, ApiAddress, is_shop, normalize_shop};
use call::ShopifyCall;
use leaky_bucket::BucketFill;
use page::RestPage;
use plan::ShopPlan;
use sim_state::{ShopifySimOutcome, ShopifySimState, ShopifyStats};
use version::Version;

/// The options of the simulator.
#[derive(Clone, Debug)]
pub struct ShopifySimOptions {
    /// The address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The plan of every shop.
    pub plan: ShopPlan,
    /// The version that responds when an older one is requested.
    pub oldest: Version,
    /// How long a bulk operation takes.
    pub bulk_takes: Duration,
    /// How many lines its result has.
    pub bulk_rows: u64,
    /// The latency of each response.
    pub latency: Duration,
    /// How often a call fails with a 5xx and no effect, from 0 to 1.
    pub fail_rate: f64,
    /// How often the connection is cut after the effect, from 0 to 1.
    pub cut_rate: f64,
    /// Determines which calls fail, which are cut, and how much each one returns.
    pub seed: u64,
}

impl Default for ShopifySimOptions {
    /// Standard shops, no latency, no faults, any free port.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            plan: ShopPlan::Standard,
            oldest: Version::OLDEST,
            bulk_takes: Duration::from_secs(2),
            bulk_rows: 1_000,
            latency: Duration::ZERO,
            fail_rate: 0.0,
            cut_rate: 0.0,
            seed: 0,
        }
    }
}

/// A running simulator. Dropping it stops it.
#[derive(Debug)]
pub struct ShopifySim {
    server: SimServer,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    world: Mutex<ShopifySimState>,
    oldest: Version,
    latency: Duration,
    seed: u64,
    started: Instant,
    /// Its base URL, once it listens.
    base: OnceLock<String>,
}

impl ShopifySim {
    /// Starts a simulator.
    ///
    /// # Errors
    /// When an option is invalid, or the address cannot be bound.
    pub async fn start(options: ShopifySimOptions) -> io::Result<Self> {
        let is_rate = |rate| (0.0..=1.0).contains(&rate);
        if !is_rate(options.fail_rate) || !is_rate(options.cut_rate) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "A fail rate and a cut rate are 0 to 1.",
            ));
        }
        let shared = Arc::new(Shared {
            world: Mutex::new(ShopifySimState::new(&options)),
            oldest: options.oldest,
            latency: options.latency,
            seed: options.seed,
            started: Instant::now(),
            base: OnceLock::new(),
        });
        let server = SimServer::start(options.listen, Arc::clone(&shared)).await?;
        let _ = shared.base.set(format!("http://{}", server.addr()));
        Ok(Self { server, shared })
    }

    /// Returns the address it listens on.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn stats(&self) -> ShopifyStats {
        let (mut world, now) = self.shared.world();
        world.stats(now)
    }

    /// Stops it.
    pub async fn shutdown(self) {
        self.server.shutdown().await;
    }
}

impl Shared {
    /// Returns the state and the time. The time is read under the lock, so that buckets never see
    /// it go back.
    fn world(&self) -> (MutexGuard<'_, ShopifySimState>, Time) {
        let world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        (world, Time::ZERO.after(self.started.elapsed()))
    }

    fn control(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let path = request.uri().path();
        let Some(shop) = path.strip_prefix("/_sim/shops/").map(normalize_shop) else {
            if path == "/_sim/stats" {
                let (mut world, now) = self.world();
                return answer(StatusCode::OK, &world.stats(now));
            }
            let error = "there are /_sim/stats and POST /_sim/shops/{shop}";
            return answer(StatusCode::NOT_FOUND, &json!({ "error": error }));
        };
        if !is_shop(&shop) || request.method() != Method::POST {
            return answer(
                StatusCode::NOT_FOUND,
                &json!({ "error": "a shop is changed by POST /_sim/shops/{shop}" }),
            );
        }
        let change = match serde_json::from_slice(request.body()) {
            Ok(change) => change,
            Err(error) => return answer(StatusCode::BAD_REQUEST, &json!({ "error": error.to_string() })),
        };
        let (mut world, now) = self.world();
        world.change_limits(&shop, change, now).map_or_else(
            || answer(StatusCode::BAD_REQUEST, &json!({ "error": "a figure is at most 1,000,000,000" })),
            |figures| answer(StatusCode::OK, &figures),
        )
    }

    fn result(&self, path: &str) -> SimReply {
        let named = path.strip_suffix(".jsonl").and_then(|path| path.split_once('/'));
        let (world, now) = self.world();
        match named.and_then(|(shop, number)| world.rows(shop, number, now)) {
            Some(rows) => {
                let mut head = Response::new(());
                head.headers_mut().insert("content-type", HeaderValue::from_static("application/jsonl"));
                SimReply::Stream(head, IteratorBody::new(rows))
            }
            None => SimReply::Answer(answer(StatusCode::NOT_FOUND, &json!({ "errors": "Not Found" }))),
        }
    }

    async fn admin(&self, request: &Request<Bytes>) -> Option<Response<Bytes>> {
        let address = match ApiAddress::of(request) {
            Ok(address) => address,
            Err(AddressError::NoToken) => {
                return Some(answer(StatusCode::UNAUTHORIZED, &bodies::unauthorized()));
            }
            Err(AddressError::NotFound) => {
                return Some(answer(StatusCode::NOT_FOUND, &json!({ "errors": "Not Found" })));
            }
        };
        let version = address.version.unwrap_or(self.oldest).served(self.oldest);
        let call = ShopifyCall::read(&address.target, version, request);
        let base = self.base.get().map_or("", String::as_str);
        let (outcome, number) = {
            let (mut world, now) = self.world();
            let outcome = world.handle(&address, version, &call, base, now);
            (outcome, world.calls())
        };
        tokio::time::sleep(self.latency).await;
        let fill = if let ShopifySimOutcome::Rest(_, _, fill) = &outcome { Some(*fill) } else { None };
        let (status, body) = {
            let (mut world, now) = self.world();
            world.respond(&address.shop, outcome, now)?
        };
        let mut response = answer(status, &body);
        let id = format!("{:08x}-0000-4000-8000-{number:012x}", self.seed & 0xffff_ffff);
        set_header(response.headers_mut(), "x-request-id", &id);
        set_header(response.headers_mut(), "x-shopify-api-version", &version.to_string());
        if let ShopifyCall::Rest { method: Method::GET, page: Some(page), .. } = &call
            && status == StatusCode::OK
        {
            add_link_header(response.headers_mut(), *page, request, base);
        }
        if let Some(fill) = fill {
            add_limit_header(response.headers_mut(), status, fill);
        }
        Some(response)
    }
}

impl Simulator for Shared {
    async fn reply(&self, request: Request<Bytes>) -> SimReply {
        let path = request.uri().path();
        if path.starts_with("/_sim/") {
            return SimReply::Answer(self.control(&request));
        }
        if let Some(path) = path.strip_prefix("/_bulk/") {
            return self.result(path);
        }
        match self.admin(&request).await {
            Some(response) => {
                let response = compressed(response, request.headers()).await;
                if response.headers().contains_key(CONTENT_ENCODING) {
                    self.world().0.count_compressed();
                }
                SimReply::Answer(response)
            }
            None => SimReply::Cut,
        }
    }
}

/// Compresses a response with the client's preferred coding, as Shopify's servers do.
async fn compressed(mut response: Response<Bytes>, asked: &HeaderMap) -> Response<Bytes> {
    let accept = asked.get(ACCEPT_ENCODING).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    set_header(response.headers_mut(), "vary", "Accept-Encoding");
    if let Some(coding) = AcceptEncoding::parse(accept).preferred()
        && let Ok(body) = encode(coding, response.body()).await
    {
        *response.body_mut() = body;
        set_header(response.headers_mut(), "content-encoding", coding.as_str());
    }
    response
}

/// Adds links to the adjacent pages, under the host name by which the simulator was called.
fn add_link_header(headers: &mut HeaderMap, page: RestPage, request: &Request<Bytes>, base: &str) {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let origin = host.map_or_else(|| base.to_owned(), |host| format!("http://{host}"));
    if let Some(links) = page.links(&format!("{origin}{}", request.uri().path())) {
        set_header(headers, "link", &links);
    }
}

fn add_limit_header(headers: &mut HeaderMap, status: StatusCode, fill: BucketFill) {
    set_header(headers, "x-shopify-shop-api-call-limit", &format!("{}/{}", fill.used, fill.size));
    if status == StatusCode::TOO_MANY_REQUESTS {
        set_header(headers, "retry-after", "2.0");
    }
}

fn set_header(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
