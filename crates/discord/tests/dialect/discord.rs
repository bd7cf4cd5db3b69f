//! The simulated Discord behind the dialect, without a network and on the clock of the test: its
//! rules are the simulator's.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::Value;
use tidegate::{Engine, Executors, Submission};
use tidegate_core::model::LimitView;
use tidegate_core::{OperationId, RetryRule, Time};
use tidegate_discord::{DiscordDialect, DiscordSettings};
use tidegate_sim::DiscordSimOptions;
use tidegate_sim::discord::limits::DiscordLimits;
use tidegate_sim::discord::request::DiscordRequest;
use tidegate_sim::discord::sim_state::{DiscordSimOutcome, DiscordSimState};
use tidegate_sim::discord::stats::DiscordStats;
use tidegate_store::{Clock, Store, WallClock};
use tidegate_store_embedded::MemoryStore;
use tidegate_upstream::http::response::{Content, RequestSummary, UpstreamResponse};
use tidegate_upstream::http::target::BaseUrl;
use tidegate_upstream::http::{Dialect, Meaning};
use tidegate_upstream::{Call, CallFuture, CallRequirements, Envelope, FieldRefusal, Outcome, Upstream};
use tokio::time::Instant;

/// A guild that exists once it is named.
pub(crate) const GUILD: u64 = 900_000_000_000_000_001;
/// Longer than any wait of a test.
pub(crate) const LONG: Duration = Duration::from_secs(100 * 3_600);

/// A bot limited only by Discord's limits.
pub(crate) fn wide() -> DiscordSettings {
    DiscordSettings::default().with_at_once(10_000)
}

/// A call that arrived: when, and its method and path.
pub(crate) type ReceivedCall = (Instant, String);

/// Discord, as an upstream.
pub(crate) struct SimulatedDiscord {
    world: Arc<Mutex<DiscordSimState>>,
    bots: BTreeMap<String, DiscordDialect>,
    /// Half of it on the way there, half on the way back.
    latency: Duration,
    epoch: Time,
    start: Instant,
    pub(crate) arrived: Mutex<Vec<ReceivedCall>>,
    under_way: AtomicUsize,
    pub(crate) most_at_once: AtomicUsize,
}

impl SimulatedDiscord {
    /// Creates it with one bot, and these limits instead of the usual ones.
    pub(crate) fn new(latency_ms: u64, figures: &[(&str, u64, u64)]) -> Arc<Self> {
        Self::with(latency_ms, figures, &[("discord", wide())])
    }

    pub(crate) fn with(
        latency_ms: u64,
        figures: &[(&str, u64, u64)],
        bots: &[(&str, DiscordSettings)],
    ) -> Arc<Self> {
        let mut limits = DiscordLimits::default();
        figures.iter().for_each(|(name, calls, ms)| limits.set(name, *calls, *ms).unwrap());
        let world = DiscordSimState::new(&DiscordSimOptions { limits, ..DiscordSimOptions::default() });
        let latency = Duration::from_millis(latency_ms);
        Self::around(Arc::new(Mutex::new(world)), latency, WallClock.now(), Instant::now(), bots)
    }

    fn around(
        world: Arc<Mutex<DiscordSimState>>,
        latency: Duration,
        epoch: Time,
        start: Instant,
        bots: &[(&str, DiscordSettings)],
    ) -> Arc<Self> {
        let base = "http://discord/api/v10";
        let made = bots
            .iter()
            .map(|(name, settings)| ((*name).to_owned(), DiscordDialect::new(name, base, *settings)));
        Arc::new(Self {
            world,
            bots: made.collect(),
            latency,
            epoch,
            start,
            arrived: Mutex::default(),
            under_way: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
        })
    }

    /// Returns it for another process: what the dialect had in memory is gone.
    pub(crate) fn restarted(&self) -> Arc<Self> {
        let bots = [("discord", wide())];
        Self::around(Arc::clone(&self.world), self.latency, self.epoch, self.start, &bots)
    }

    pub(crate) fn now(&self) -> Time {
        self.epoch.after(self.start.elapsed())
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, DiscordSimState> {
        self.world.lock().unwrap()
    }

    pub(crate) fn stats(&self) -> DiscordStats {
        self.world().stats()
    }

    /// Makes a call as another bot, whose limits do not matter here.
    pub(crate) fn by_hand(&self, method: &str, path: &str, body: &str) -> Value {
        let request = request(method, path, "a hand", Bytes::from(body.to_owned()), &[]);
        let fate = self.world().handle(&DiscordRequest::of(&request), self.now());
        let DiscordSimOutcome::Answer(answer) = fate else { panic!("{fate:?}") };
        assert!(answer.status.is_success(), "{answer:?}");
        serde_json::from_slice(answer.to_response().body()).unwrap_or_default()
    }

    /// Creates a text channel.
    pub(crate) fn channel(&self) -> String {
        let made = self.by_hand("POST", &format!("/guilds/{GUILD}/channels"), r#"{"name":"desk"}"#);
        made["id"].as_str().unwrap().to_owned()
    }

    async fn answer(&self, call: Call<'_>) -> Outcome {
        let envelope = Envelope::decode(call.payload).unwrap();
        let (name, mut sent) = (envelope.upstream, envelope.request);
        let retry_rule = RetryRule::new(call.on_unknown, self.bots[&name].server_errors());
        let reader = self.bots[&name].prepare_request(&mut sent, call.operation).unwrap();
        let base = BaseUrl::parse("http://discord/api/v10").unwrap();
        let asked = RequestSummary { method: sent.method, upstream: &name, base: &base, retry_rule };
        let (left, half) = (Instant::now(), self.latency / 2);
        tokio::time::sleep(half).await;
        let told = format!("{} {}", sent.method, sent.path);
        // The bot with this name has no token.
        let token = if name == "nobody" { "" } else { &name };
        let body = sent.body.into_bytes();
        self.arrived
            .lock()
            .unwrap()
            .push((Instant::now(), format!("{told} {}", String::from_utf8_lossy(&body))));
        let request = request(sent.method.as_str(), &sent.path, token, body, &sent.headers);
        let fate = self.world().handle(&DiscordRequest::of(&request), self.now());
        tokio::time::sleep(half).await;
        let DiscordSimOutcome::Answer(answer) = fate else { panic!("{fate:?}") };
        let (parts, body) = answer.to_response().into_parts();
        let at = call.now.after(left.elapsed());
        let answer = UpstreamResponse {
            status: parts.status,
            headers: parts.headers,
            content: Content::Whole(body),
            at,
        };
        let verdict = answer.verdict(&asked);
        let Meaning { verdict, hints, spending } = reader.interpret(&answer, &asked, verdict);
        let outcome = Outcome::unanswered(verdict).with_hints(hints).with_spending(spending);
        outcome.with_status(parts.status.as_u16())
    }
}

impl Upstream for SimulatedDiscord {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        let Envelope { upstream, request, .. } = Envelope::decode(payload)?;
        let dialect = &self.bots[&upstream];
        let charges = dialect.charges(&request, cost)?;
        let opens = dialect.limits_to_open(&request, &charges);
        Ok(CallRequirements::new(charges).with_opens(opens).with_on_unknown(dialect.on_unknown(&request)))
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(now, Ordering::SeqCst);
            let outcome = self.answer(call).await;
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            outcome
        })
    }
}

fn request(
    method: &str,
    path: &str,
    token: &str,
    body: Bytes,
    headers: &[(String, String)],
) -> Request<Bytes> {
    let mut request = Request::builder().method(method).uri(format!("/api/v10{path}"));
    if !token.is_empty() {
        request = request.header("authorization", format!("Bot {token}"));
    }
    request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
    request.header("user-agent", "a test").body(body).unwrap()
}

pub(crate) fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(WallClock)))
}

pub(crate) async fn open(store: &Arc<dyn Store>, discord: &Arc<SimulatedDiscord>) -> Engine {
    let executors = Executors::from([("http".into(), Arc::clone(discord) as Arc<dyn Upstream>)]);
    let limits = discord.bots.values().flat_map(DiscordDialect::limits);
    Engine::builder(Arc::clone(store)).executors(executors).limits(limits).open().await.unwrap()
}

/// Returns a call of a bot.
pub(crate) fn call_of(bot: &str, group: &str, method: &str, path: &str, body: &str) -> Submission {
    let body = if body.is_empty() { "null" } else { body };
    let request = format!(r#"{{"method":"{method}","path":"{path}","body":{body}}}"#);
    Submission::new("http", group, format!(r#"{{"upstream":"{bot}","request":{request}}}"#))
}

/// Returns a call of the usual bot.
pub(crate) fn call(group: &str, method: &str, path: &str, body: &str) -> Submission {
    call_of("discord", group, method, path, body)
}

/// Submits all of them at once.
pub(crate) async fn submit(engine: &Engine, calls: Vec<Submission>) -> Vec<OperationId> {
    let mut ids = Vec::new();
    for receipt in engine.submit_all(calls).await {
        ids.push(receipt.unwrap().id);
    }
    ids
}

/// Waits for all of them; returns how many succeeded.
pub(crate) async fn succeeded(engine: &Engine, ids: &[OperationId]) -> usize {
    let mut good = 0;
    for id in ids {
        let view = engine.wait(*id, LONG).await.unwrap();
        good += usize::from(view.state == tidegate_core::State::Succeeded);
    }
    good
}

/// Returns the state of a limit.
pub(crate) async fn limit(engine: &Engine, name: &str) -> LimitView {
    engine.limits().await.unwrap().into_iter().find(|view| &*view.name == name).unwrap()
}
