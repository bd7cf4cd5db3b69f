//! The pictures of the demo: four simulated providers behind one model, and users who create
//! generations.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tidegate_sim::providers::webhook::WebhookFaults;
use tidegate_sim::rng::SeededRng;
use tidegate_sim::{Provider, ProviderSim, ProviderSimOptions};

use crate::client::{Client, RemoteArgs};
use crate::error::CliError;

/// The variable that holds the key of every simulated provider, which takes any.
pub(super) const KEY_VARIABLE: &str = "DEMO_KEY";
/// How often a generation is created.
const EVERY: Duration = Duration::from_millis(1_400);
/// How long a job runs.
const TAKES: Duration = Duration::from_secs(3);
const USERS: [&str; 3] = ["anna", "boris", "chen"];
const PROMPTS: [&str; 12] = [
    "a lighthouse at dusk",
    "a tide gate in the rain",
    "herons over a harbour",
    "a paper boat in a canal",
    "mountains of books",
    "a fox in a library",
    "a night train over the sea",
    "a garden on the moon",
    "an observatory in the snow",
    "a market at first light",
    "[fail] a broken mirror",
    "[nsfw] something a filter refuses",
];

/// The simulated providers.
pub(super) struct SimulatedProviders {
    replicate: ProviderSim,
    google: ProviderSim,
    fal: ProviderSim,
    higgsfield: ProviderSim,
}

impl SimulatedProviders {
    pub(super) async fn start() -> Result<Self, CliError> {
        let start = |provider: Provider, slots: usize, fail_rate: f64, lost: f64| async move {
            let options = ProviderSimOptions {
                max_concurrent: slots,
                takes: TAKES,
                latency: Duration::from_millis(50),
                fail_rate,
                webhook_faults: WebhookFaults { lost, ..WebhookFaults::default() },
                seed: 9,
                ..ProviderSimOptions::new(provider)
            };
            let started = ProviderSim::start(options).await;
            started.map_err(|error| CliError::new(format!("Cannot start the simulator: {error}.")))
        };
        Ok(Self {
            replicate: start(Provider::Replicate, 2, 0.0, 0.1).await?,
            google: start(Provider::Google, 1, 0.0, 0.0).await?,
            fal: start(Provider::Fal, 2, 0.1, 0.0).await?,
            higgsfield: start(Provider::Higgsfield, 2, 0.0, 0.5).await?,
        })
    }

    /// The configuration that uses them: as a file would have it.
    pub(super) fn config(&self, listen: SocketAddr, results: &Path) -> String {
        let mut text = String::new();
        // Without a port that is known, no webhook could arrive: the providers are polled.
        let has_webhooks = listen.port() != 0;
        let poll_s = if has_webhooks { 5 } else { 1 };
        if has_webhooks {
            let _ = writeln!(text, "[server]\npublic_url = \"http://{listen}\"");
        }
        let _ = writeln!(text, "[generations]\nstorage = {:?}", results.display().to_string());
        let providers = [
            ("replicate", format!("base_url = \"http://{}/v1\"\n", self.replicate.addr()), 2, 120),
            ("google", format!("base_url = \"http://{}/v1beta\"\n", self.google.addr()), 1, 10),
            (
                "fal",
                format!(
                    "base_url = \"http://{0}\"\njwks_url = \"http://{0}/.well-known/jwks.json\"\n",
                    self.fal.addr()
                ),
                2,
                100,
            ),
            ("higgsfield", format!("base_url = \"http://{}\"\n", self.higgsfield.addr()), 2, 30),
        ];
        for (name, address, slots, rpm) in providers {
            let _ = writeln!(
                text,
                "[provider.{name}]\n{address}key_env = \"{KEY_VARIABLE}\"\nmax_concurrent = {slots}\n\
                 rpm = {rpm}\npoll_after_s = {poll_s}\npoll_every_s = {poll_s}\ndeadline_s = 60"
            );
        }
        text.push_str(
            "[model.flux]\n\
             input_schema = '{\"type\":\"object\",\"required\":[\"prompt\"],\"properties\":{\"prompt\":{\"type\":\"string\",\"minLength\":1}}}'\n\
             chain = [\n\
             { provider = \"replicate\", model = \"black-forest-labs/flux-schnell\", cost = 3000 },\n\
             { provider = \"google\", model = \"gemini-2.5-flash-image\", cost = 39000 },\n\
             { provider = \"fal\", model = \"fal-ai/flux/schnell\", cost = 3000 },\n\
             { provider = \"higgsfield\", model = \"flux/dev/text-to-image\", cost = 5000 },\n\
             ]\n",
        );
        text
    }

    /// What the providers saw.
    pub(super) fn summary(&self) -> String {
        let all = [&self.replicate, &self.google, &self.fal, &self.higgsfield].map(ProviderSim::stats);
        let sum =
            |count: fn(&tidegate_sim::Stats) -> u64| all.iter().map(|stats| count(&stats.all)).sum::<u64>();
        format!(
            "the providers saw {} calls, billed {} jobs, and throttled {} calls.",
            sum(|stats| stats.calls),
            sum(|stats| stats.billed),
            sum(|stats| stats.throttled),
        )
    }
}

/// Creates generations until it is dropped.
pub(super) async fn create_generations(server: SocketAddr) {
    let remote = RemoteArgs { server: format!("http://{server}"), token_env: String::new() };
    let Ok(client) = Client::new(&remote) else { return };
    let mut chance = SeededRng::new(3);
    let mut pick = |all: &[&'static str]| {
        let index = usize::try_from(chance.next()).unwrap_or_default() % all.len();
        all[index]
    };
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for number in 0_u64.. {
        ticks.tick().await;
        let prompt = format!("{} ({number})", pick(&PROMPTS));
        let body = json!({ "model_id": "flux", "user_id": pick(&USERS), "input": { "prompt": prompt } });
        if let Err(trouble) = client.post("/api/generations/create", &body, "status").await {
            tracing::debug!(error = trouble.message, "a generation of the demo was not accepted");
        }
    }
}
