//! A server that differs from Discord, without a network and on the clock of the test: its rules
//! are the simulator's, with its quirks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use http::Request;
use tidegate::{Engine, Options};
use tidegate_core::outcome::AttemptEnd;
use tidegate_core::{Fault, FaultClass, RetryRule, Time, Verdict, VerdictClass};
use tidegate_discord::deploy::{
    DeployReport, DeployRequest, Deployer, NoopListener, PlanPreview, Result, StepExecutor,
};
use tidegate_discord::{DiscordDialect, DiscordSettings};
use tidegate_sim::DiscordSimOptions;
use tidegate_sim::discord::quirks::DiscordQuirks;
use tidegate_sim::discord::request::DiscordRequest;
use tidegate_sim::discord::sim_state::{DiscordSimOutcome, DiscordSimState};
use tidegate_store::{Clock, Store};
use tidegate_store_embedded::MemoryStore;
use tidegate_upstream::http::Dialect;
use tidegate_upstream::http::response::{Content, RequestSummary, UpstreamResponse};
use tidegate_upstream::http::target::BaseUrl;
use tidegate_upstream::{Call, CallFuture, CallRequirements, Envelope, FieldRefusal, Outcome, Upstream};
use tokio::time::Instant;

use crate::world::{GUILD, ms, wanted};

const BASE: &str = "http://discord/api/v10";

/// The clock of the test, as a date. It outlives the runtime of a process that is killed.
#[derive(Clone)]
pub(crate) struct TestClock(Arc<Mutex<(Time, Option<Instant>)>>);

impl TestClock {
    fn new() -> Self {
        Self(Arc::new(Mutex::new((Time::from_millis(1_800_000_000_000), Some(Instant::now())))))
    }

    /// Stops it with the runtime that moves it.
    fn stop(&self) {
        let now = self.now();
        *self.0.lock().unwrap() = (now, None);
    }

    /// Goes on with the time of another runtime.
    fn go_on(&self) {
        self.0.lock().unwrap().1 = Some(Instant::now());
    }
}

impl Clock for TestClock {
    fn now(&self) -> Time {
        let (base, start) = *self.0.lock().unwrap();
        start.map_or(base, |start| base.after(start.elapsed()))
    }
}

/// The server, as an upstream.
pub(crate) struct ForeignServer {
    world: Mutex<DiscordSimState>,
    dialect: DiscordDialect,
    /// What it answers to every call, if not what the simulator does.
    canned: Mutex<Option<(u16, &'static str)>>,
    pub(crate) clock: TestClock,
}

impl ForeignServer {
    pub(crate) fn new(options: &DiscordSimOptions) -> Arc<Self> {
        let settings = DiscordSettings::default();
        let clock = TestClock::new();
        let dialect = DiscordDialect::new("discord", BASE, settings);
        let world = Mutex::new(DiscordSimState::new(options));
        Arc::new(Self { world, dialect, canned: Mutex::new(None), clock })
    }

    pub(crate) fn with(quirks: DiscordQuirks) -> Arc<Self> {
        Self::new(&DiscordSimOptions { quirks, ..DiscordSimOptions::default() })
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, DiscordSimState> {
        self.world.lock().unwrap()
    }

    /// Answers every call with this status and body.
    pub(crate) fn answer_always(&self, status: u16, body: &'static str) {
        *self.canned.lock().unwrap() = Some((status, body));
    }

    /// Runs a process, with a runtime of its own: when `run` returns, everything else that it has
    /// begun is dropped where it is, as a kill does.
    pub(crate) fn run_process<T>(&self, run: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            self.clock.go_on();
            let returned = run.await;
            self.clock.stop();
            returned
        })
    }

    /// Returns everything in the guild.
    pub(crate) fn guild(&self) -> serde_json::Value {
        self.world().dump(GUILD.0).unwrap()
    }

    async fn answer(&self, call: Call<'_>) -> Outcome {
        let mut sent = Envelope::decode(call.payload).unwrap().request;
        let retry_rule = RetryRule::new(call.on_unknown, self.dialect.server_errors());
        let reader = self.dialect.prepare_request(&mut sent, call.operation);
        let base = BaseUrl::parse(BASE).unwrap();
        let asked = RequestSummary { method: sent.method, upstream: "discord", base: &base, retry_rule };
        let left = Instant::now();
        tokio::time::sleep(ms(20)).await;
        let mut request = Request::builder().method(sent.method.as_str());
        request = request.uri(format!("/api/v10{}", sent.path)).header("authorization", "Bot hunter2");
        request = sent.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        let request = request.body(sent.body.into_bytes()).unwrap();
        let canned = *self.canned.lock().unwrap();
        if let Some((status, body)) = canned {
            let (status, at) = (http::StatusCode::from_u16(status).unwrap(), call.now.after(left.elapsed()));
            let content = Content::Whole(body.into());
            return UpstreamResponse { status, headers: http::HeaderMap::new(), content, at }
                .outcome(&asked, reader);
        }
        let fate = self.world().handle(&DiscordRequest::of(&request), self.clock.now());
        tokio::time::sleep(ms(20)).await;
        let DiscordSimOutcome::Answer(answer) = fate else {
            let fault = Fault::new(FaultClass::Transient, format!("{asked} was sent and cut off."));
            return Outcome::unanswered(match retry_rule.classify(AttemptEnd::NoAnswer) {
                VerdictClass::Retry => Verdict::Retry { after: None, fault },
                _ => Verdict::Unknown(fault),
            });
        };
        let (parts, body) = answer.to_response().into_parts();
        let (status, headers, at) = (parts.status, parts.headers, call.now.after(left.elapsed()));
        UpstreamResponse { status, headers, content: Content::Whole(body), at }.outcome(&asked, reader)
    }
}

impl Upstream for ForeignServer {
    fn check(
        &self,
        payload: &[u8],
        cost: &BTreeMap<String, u64>,
    ) -> std::result::Result<CallRequirements, FieldRefusal> {
        let request = Envelope::decode(payload)?.request;
        let charges = self.dialect.charges(&request, cost)?;
        let opens = self.dialect.limits_to_open(&request, &charges);
        let on_unknown = self.dialect.on_unknown(&request);
        Ok(CallRequirements::new(charges).with_opens(opens).with_on_unknown(on_unknown))
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(self.answer(call))
    }
}

/// A process that deploys to it.
pub(crate) struct ForeignNode {
    pub(crate) engine: Engine,
    pub(crate) deployer: Deployer,
}

pub(crate) fn store(server: &ForeignServer) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(server.clock.clone())))
}

impl ForeignNode {
    pub(crate) async fn open(server: &Arc<ForeignServer>, store: &Arc<dyn Store>) -> Self {
        let http = Arc::clone(server) as Arc<dyn Upstream>;
        let engine = Engine::builder(Arc::clone(store))
            .options(Options::default().with_lease(ms(2_000)))
            .executors(StepExecutor::executors(http).collect())
            .limits(server.dialect.limits())
            .open()
            .await
            .unwrap();
        let deployer = Deployer::new(engine.clone(), Arc::clone(store))
            .with_patience(Duration::from_secs(60))
            .with_clock(Arc::new(server.clock.clone()));
        Self { engine, deployer }
    }

    /// Opens one on a store of its own.
    pub(crate) async fn alone(server: &Arc<ForeignServer>) -> Self {
        Self::open(server, &store(server)).await
    }

    pub(crate) async fn apply(&self, template: &str) -> Result<DeployReport> {
        self.deployer.apply(&wanted(template), &NoopListener).await
    }

    pub(crate) async fn plan(&self, template: &str) -> PlanPreview {
        let wanted: DeployRequest = wanted(template);
        self.deployer.plan(&wanted, &wanted.read().unwrap(), &NoopListener).await.unwrap()
    }
}
