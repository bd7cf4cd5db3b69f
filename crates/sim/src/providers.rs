//! Simulators of image providers: a submit is accepted, runs in one of a few slots, and ends with a
//! picture that is really drawn; the end is shown to polls and reported by webhook. Limits are
//! enforced, every accepted submit is billed, and webhooks go wrong as configured.

pub mod api;
pub mod fal;
pub mod google;
pub mod higgsfield;
pub mod jobs;
pub mod picture;
pub mod replicate;
pub mod signature;
pub mod sim_state;
pub mod webhook;

mod job_runner;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::{Request, Response};
use serde_json::{Value, json};
use tidegate_core::Time;
use tidegate_store::{Clock, WallClock};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::server::{SimReply, SimServer, Simulator};
use crate::timestamp::date_and_time;
use api::{JobView, ProviderApi, ProviderCall, ProviderRefusal, respond, with_header};
use jobs::{Job, JobEnd, JobState, NewJob};
use signature::WebhookSigner;
use sim_state::{ProviderSimState, ProviderStats, picture_seed, state_name};
use webhook::WebhookFaults;

/// The headers that carry credentials.
const CREDENTIALS: [&str; 2] = ["authorization", "x-goog-api-key"];
/// Most jobs in one list.
const LIST_MAX: usize = 100;

/// A provider that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Replicate.
    Replicate,
    /// Google's Gemini API.
    Google,
    /// fal.
    Fal,
    /// Higgsfield.
    Higgsfield,
}

impl Provider {
    fn api(self) -> Box<dyn ProviderApi> {
        match self {
            Self::Replicate => Box::new(replicate::ReplicateApi),
            Self::Google => Box::new(google::GoogleApi),
            Self::Fal => Box::new(fal::FalApi),
            Self::Higgsfield => Box::new(higgsfield::HiggsfieldApi),
        }
    }
}

/// The options of the simulator.
#[derive(Clone, Debug)]
pub struct ProviderSimOptions {
    /// The provider.
    pub provider: Provider,
    /// The address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// How many jobs run at once.
    pub max_concurrent: usize,
    /// How many submits a minute allows.
    pub rpm: u64,
    /// How many of them may come at once.
    pub burst: u64,
    /// How long a job runs.
    pub takes: Duration,
    /// The latency of each response.
    pub latency: Duration,
    /// Whether every credential is refused, as after it was revoked.
    pub rejects_keys: bool,
    /// How often a submit fails without effect, from 0 to 1.
    pub fail_rate: f64,
    /// How often the response to an accepted submit is cut, from 0 to 1.
    pub cut_rate: f64,
    /// How often a job ends with a fault of the provider, from 0 to 1.
    pub job_fail_rate: f64,
    /// How often webhooks go wrong.
    pub webhook_faults: WebhookFaults,
    /// How late a late webhook is.
    pub late_by: Duration,
    /// Determines what fails, and the signing keys.
    pub seed: u64,
}

impl ProviderSimOptions {
    /// A provider with its documented or usual limits, jobs of two seconds and no faults.
    #[must_use]
    pub const fn new(provider: Provider) -> Self {
        let (max_concurrent, rpm, burst) = match provider {
            Provider::Replicate => (20, 600, 20),
            Provider::Google => (4, 10, 2),
            Provider::Fal => (2, 120, 10),
            Provider::Higgsfield => (2, 30, 2),
        };
        Self {
            provider,
            listen: SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            max_concurrent,
            rpm,
            burst,
            takes: Duration::from_secs(2),
            latency: Duration::ZERO,
            rejects_keys: false,
            fail_rate: 0.0,
            cut_rate: 0.0,
            job_fail_rate: 0.0,
            webhook_faults: WebhookFaults { lost: 0.0, early: 0.0, doubled: 0.0, late: 0.0, forged: 0.0 },
            late_by: Duration::from_secs(5),
            seed: 0,
        }
    }

    fn problem(&self) -> Option<&'static str> {
        let is_rate = |rate| (0.0..=1.0).contains(&rate);
        if ![self.fail_rate, self.cut_rate, self.job_fail_rate].into_iter().all(is_rate)
            || !self.webhook_faults.is_valid()
        {
            return Some("A rate is 0 to 1.");
        }
        (self.max_concurrent == 0 || self.rpm == 0 || self.burst == 0)
            .then_some("Without a slot, a rate and a burst no job would ever run.")
    }
}

/// A running simulator. Dropping it stops it.
#[derive(Debug)]
pub struct ProviderSim {
    server: SimServer,
    shared: Arc<Shared>,
    runner: JoinHandle<()>,
}

impl ProviderSim {
    /// Starts a simulator.
    ///
    /// # Errors
    /// When an option is invalid, or the address cannot be bound.
    pub async fn start(options: ProviderSimOptions) -> io::Result<Self> {
        if let Some(problem) = options.problem() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(ProviderSimState::new(&options)),
            api: options.provider.api(),
            signer: WebhookSigner::new(options.seed),
            forger: WebhookSigner::new(!options.seed),
            base: OnceLock::new(),
            changes: watch::Sender::new(0),
            epoch: WallClock.now(),
            started: Instant::now(),
            latency: options.latency,
            rejects_keys: options.rejects_keys,
            redirects_files: options.provider == Provider::Google,
            late_by: options.late_by,
        });
        let server = SimServer::start(options.listen, Arc::clone(&shared)).await?;
        let _ = shared.base.set(format!("http://{}", server.addr()));
        let runner = tokio::spawn(job_runner::run(Arc::clone(&shared)));
        Ok(Self { server, shared, runner })
    }

    /// Returns the address it listens on.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn stats(&self) -> ProviderStats {
        self.shared.state().0.stats()
    }

    /// Returns every job that it accepted, the newest first: its bill, item by item.
    #[must_use]
    pub fn jobs(&self) -> Vec<Job> {
        self.shared.state().0.jobs.newest_first().cloned().collect()
    }

    /// Changes the share of submits that fail, from 0 to 1: an outage begins, or ends.
    pub fn set_fail_rate(&self, rate: f64) {
        self.shared.state().0.set_fail_rate(rate);
    }

    /// Stops it. Webhooks that were not delivered yet are lost.
    pub async fn shutdown(self) {
        self.runner.abort();
        self.server.shutdown().await;
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<ProviderSimState>,
    api: Box<dyn ProviderApi>,
    signer: WebhookSigner,
    forger: WebhookSigner,
    base: OnceLock<String>,
    /// Counts changes of jobs, so that waits and the runner look again.
    changes: watch::Sender<u64>,
    epoch: Time,
    started: Instant,
    latency: Duration,
    late_by: Duration,
    rejects_keys: bool,
    /// Whether the address of a file redirects to another one.
    redirects_files: bool,
}

impl Shared {
    /// Returns the state and the time, which is read under the lock so that limits never see it go
    /// back.
    fn state(&self) -> (MutexGuard<'_, ProviderSimState>, Time) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state, self.epoch.after(self.started.elapsed()))
    }

    fn view<'a>(&'a self, state: &ProviderSimState, job: &'a Job) -> JobView<'a> {
        let base = self.base.get().map_or("", String::as_str);
        JobView { job, position: state.jobs.position(job.number), base, seed: picture_seed(job) }
    }

    fn notify(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn control(&self, path: &str) -> Response<Bytes> {
        let (state, _) = self.state();
        match path {
            "/_sim/stats" => respond(200, &serde_json::to_value(state.stats()).unwrap_or_default()),
            "/_sim/jobs" => {
                let jobs: Vec<Value> = state.jobs.newest_first().take(LIST_MAX).map(job_summary).collect();
                respond(200, &json!({ "jobs": jobs }))
            }
            _ => respond(404, &json!({ "error": "there are /_sim/stats and /_sim/jobs" })),
        }
    }

    fn picture(&self, name: &str) -> Response<Bytes> {
        let seed = {
            let (state, now) = self.state();
            let number = name.strip_suffix(".png").and_then(|number| number.parse().ok());
            let job = number.and_then(|number| state.jobs.by_number(number)).filter(|job| {
                job.state == JobState::Ended(JobEnd::Success)
                    && job.ended_at.is_some_and(|ended| now.since(ended) < self.api.keeps_pictures())
            });
            job.map(picture_seed)
        };
        match seed {
            Some(seed) => with_header(Response::new(picture::draw(seed)), "content-type", "image/png"),
            None => respond(404, &json!({ "error": "there is no such file, or it was deleted" })),
        }
    }

    async fn submit(&self, spec: NewJob) -> Option<Response<Bytes>> {
        let wait = spec.wait;
        let accepted = {
            let (mut state, now) = self.state();
            state.submit(&*self.api, spec, now)
        };
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(refusal) => return Some(self.api.refused(&refusal)),
        };
        self.notify();
        if accepted.is_early {
            job_runner::end_early(self, accepted.number).await;
        }
        if let Some(wait) = wait {
            let _ = tokio::time::timeout(wait, self.ended(accepted.number)).await;
        }
        tokio::time::sleep(self.latency).await;
        if accepted.is_cut {
            return None;
        }
        let (state, _) = self.state();
        let job = state.jobs.by_number(accepted.number)?;
        Some(self.api.accepted(&self.view(&state, job)))
    }

    /// Waits for the end of a job.
    async fn ended(&self, number: u64) {
        let mut changes = self.changes.subscribe();
        let is_open = |shared: &Self| {
            let (state, _) = shared.state();
            state.jobs.by_number(number).is_some_and(|job| !job.state.is_final())
        };
        while is_open(self) && changes.changed().await.is_ok() {}
    }

    fn answer(&self, call: ProviderCall) -> Response<Bytes> {
        let (mut state, now) = self.state();
        let not_found = || self.api.refused(&ProviderRefusal::NotFound);
        match call {
            ProviderCall::Status(id) => {
                state.jobs.get(&id).map_or_else(not_found, |job| self.api.status(&self.view(&state, job)))
            }
            ProviderCall::Result(id) => {
                state.jobs.get(&id).map_or_else(not_found, |job| self.api.result(&self.view(&state, job)))
            }
            ProviderCall::Cancel(id) => {
                let Some(before) = state.jobs.get(&id).map(|job| job.state) else { return not_found() };
                if before == JobState::Queued || self.api.cancels_running() {
                    state.jobs.cancel(&id, now);
                    self.notify();
                }
                state
                    .jobs
                    .get(&id)
                    .map_or_else(not_found, |job| self.api.canceled(&self.view(&state, job), before))
            }
            ProviderCall::List { after, before } => {
                let is_within = |job: &&Job| {
                    let created = date_and_time(job.accepted_at);
                    let is_after = |time: &str| created.as_str() > time.trim_end_matches('Z');
                    let is_before = |time: &str| created.as_str() < time.trim_end_matches('Z');
                    after.as_deref().is_none_or(is_after) && before.as_deref().is_none_or(is_before)
                };
                let jobs = state.jobs.newest_first().filter(is_within).take(LIST_MAX);
                let views: Vec<_> = jobs.map(|job| self.view(&state, job)).collect();
                self.api.listed(&views)
            }
            ProviderCall::WebhookKey => self.api.webhook_key(&self.signer),
            ProviderCall::Submit(_) => not_found(),
        }
    }
}

/// The answer for a file that is at another address, as Google's are.
fn elsewhere(name: &str) -> Response<Bytes> {
    with_header(respond(302, &json!({})), "location", &format!("/_signed/{name}"))
}

fn job_summary(job: &Job) -> Value {
    json!({
        "id": job.id, "model": job.spec.model, "prompt": job.spec.prompt, "state": state_name(job.state),
        "accepted_at": date_and_time(job.accepted_at), "webhook": job.spec.webhook,
    })
}

impl Simulator for Shared {
    async fn reply(&self, request: Request<Bytes>) -> SimReply {
        let path = request.uri().path();
        if path.starts_with("/_sim/") {
            return SimReply::Answer(self.control(path));
        }
        if let Some(name) = path.strip_prefix("/_files/") {
            return SimReply::Answer(if self.redirects_files { elsewhere(name) } else { self.picture(name) });
        }
        if let Some(name) = path.strip_prefix("/_signed/") {
            return SimReply::Answer(self.picture(name));
        }
        self.state().0.count_call();
        let has_wrong_key =
            self.rejects_keys && CREDENTIALS.iter().any(|name| request.headers().contains_key(*name));
        match self.api.read(&request) {
            Ok(_) if has_wrong_key => SimReply::Answer(self.api.refused(&ProviderRefusal::WrongKey)),
            Ok(ProviderCall::Submit(spec)) => {
                self.submit(*spec).await.map_or(SimReply::Cut, SimReply::Answer)
            }
            Ok(call) => {
                tokio::time::sleep(self.latency).await;
                SimReply::Answer(self.answer(call))
            }
            Err(refusal) => SimReply::Answer(self.api.refused(&refusal)),
        }
    }
}
