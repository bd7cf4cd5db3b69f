//! Unmodified Discord clients behind the paced proxy: they never hit the limits that they would
//! exceed.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::{DiscordSim, DiscordSimOptions};
use tokio::task::JoinSet;
use tokio::time::Instant;
use twilight_http::Client;
use twilight_model::id::Id;

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure};
use crate::languages::{node, python, run};

/// The number of concurrent calls.
const CALLS: usize = 32;
const GUILD: u64 = 900_000_000_000_000_001;

/// Discord and a server in front of it.
struct DiscordSetup {
    sim: DiscordSim,
    server: RunningServer,
    /// A channel of the guild.
    channel: u64,
    _dir: tempfile::TempDir,
}

impl DiscordSetup {
    /// Starts both with short limits that 32 concurrent calls exceed, and one that others have used
    /// up.
    async fn new() -> Self {
        let stage = Self::start().await;
        let caller = Caller::of(&format!("http://{}", stage.sim.addr()));
        // Long enough for a client that is slow to start.
        caller.post("/_sim/shared", &[], &json!({ "limit": "role-create", "for_ms": 5_000 })).await;
        stage
    }

    /// Starts both with short limits that 32 concurrent calls exceed.
    async fn start() -> Self {
        let latency = Duration::from_millis(20);
        let sim =
            DiscordSim::start(DiscordSimOptions { latency, ..DiscordSimOptions::default() }).await.unwrap();
        let discord = format!("http://{}", sim.addr());
        let caller = Caller::of(&discord);
        let second = |calls: u64| json!({ "calls": calls, "window_ms": 1_000 });
        let figures =
            json!({ "message-create": second(5), "role-create": second(4), "channel-create": second(4) });
        caller.post("/_sim/limits", &[], &json!({ "figures": figures })).await;
        let channel = create_channel(&sim, GUILD).await;
        let dir = tempfile::tempdir().unwrap();
        let upstream = format!(
            "[[upstream]]\nname = \"discord\"\ndialect = \"discord\"\nbase_url = \"{discord}/api/v10\"\ntoken_env = \"BOT_TOKEN\"\n"
        );
        configure(dir.path(), 64, &upstream);
        let server = tokio::task::block_in_place(|| {
            RunningServer::start(dir.path(), "error", Some(("BOT_TOKEN", "a token of the bot")))
        });
        Self { sim, server, channel, _dir: dir }
    }

    /// Each call was done once, none was refused except because of others' use, and it took no
    /// longer than the limits require.
    async fn check(&self, took: Duration) {
        self.check_calls(CALLS, took).await;
        let waits = self.sim.stats().throttled_by_scope;
        assert_eq!(waits.get("shared"), Some(&1), "somebody was told to wait");
    }

    /// Each of so many calls was asked for once and done once, within the limits.
    async fn check_calls(&self, calls: usize, took: Duration) {
        let stats = self.sim.stats();
        let done: u64 = stats.done_by_route.values().sum();
        println!("{done} calls in {took:?}; told to wait: {:?}", stats.throttled_by_scope);
        assert_eq!(done, calls as u64, "{:?}", stats.done_by_route);
        assert_eq!(stats.all.overstepped, 0, "{:?}", stats.throttled_by_route);
        assert!(took < Duration::from_secs(60), "{took:?}");
        let listed = Caller::of(&self.server.address).get("/v1/operations?limit=200").await;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed["operations"].as_array().map(Vec::len), Some(calls), "it asked for each once");
    }
}

/// A channel of a guild, made by hand.
async fn create_channel(sim: &DiscordSim, guild: u64) -> u64 {
    let caller = Caller::of(&format!("http://{}", sim.addr()));
    let path = format!("/_sim/hand/guilds/{guild}/channels");
    let channel = caller.post(&path, &[], &json!({ "name": "desk" })).await;
    channel["id"].as_str().unwrap().parse().unwrap()
}

/// LIM-28, OPS-21: discord.js's REST client, with nothing changed but its base URL, makes 32 calls
/// at once and sees no 429.
#[tokio::test(flavor = "multi_thread")]
async fn lim_28_ops_21_discord_js_is_paced() {
    let _alone = ALONE.lock().await;
    let stage = DiscordSetup::new().await;
    let mut client = node("bots/client.mjs");
    client.arg(format!("{}/proxy/discord", stage.server.address));
    client.args([GUILD.to_string(), stage.channel.to_string()]);
    let since = Instant::now();
    let told = tokio::task::spawn_blocking(move || run(&mut client)).await.unwrap();
    assert_eq!((told["made"].as_u64(), &told["errors"]), (Some(CALLS as u64), &json!([])), "{told}");
    let statuses = told["statuses"].as_array().unwrap();
    assert!(
        statuses.len() == CALLS && statuses.iter().all(|status| matches!(status.as_u64(), Some(200..300))),
        "{told}"
    );
    stage.check(since.elapsed()).await;
}

/// LIM-28, OPS-21: twilight's client, with nothing changed but where Discord is, makes 32 calls at
/// once and sees no 429.
#[tokio::test(flavor = "multi_thread")]
async fn lim_28_ops_21_twilight_is_paced() {
    let _alone = ALONE.lock().await;
    let stage = DiscordSetup::new().await;
    let proxy = format!("{}/proxy/discord", stage.server.address.trim_start_matches("http://"));
    let client = std::sync::Arc::new(
        Client::builder().token("a token that is not used".to_owned()).proxy(proxy, true).build(),
    );
    let (guild, channel, since) = (Id::new(GUILD), Id::new(stage.channel), Instant::now());
    let mut calls = JoinSet::new();
    for nth in 0..CALLS {
        let client = std::sync::Arc::clone(&client);
        calls.spawn(async move {
            let name = format!("number-{nth}");
            let answered = match nth {
                0..12 => {
                    client.create_message(channel).content(&name).await.map(|answer| answer.status().get())
                }
                12..20 => client.create_role(guild).name(&name).await.map(|answer| answer.status().get()),
                20..28 => client.create_guild_channel(guild, &name).await.map(|answer| answer.status().get()),
                _ => client.guild(Id::new(GUILD + nth as u64)).await.map(|answer| answer.status().get()),
            };
            answered.map_err(|error| error.to_string())
        });
    }
    while let Some(answered) = calls.join_next().await {
        assert!(matches!(answered.unwrap(), Ok(200..300)));
    }
    stage.check(since.elapsed()).await;
    let caller = Caller::of(&stage.server.address);
    let metrics = caller.get("/metrics").await;
    assert!(metrics.contains("tidegate_limit_level{limit=\"discord/global\"}"), "{metrics}");
    assert!(metrics.contains("tidegate_limits_opened") && !metrics.contains("discord/POST"), "{metrics}");
}

/// LIM-28, OPS-21: discord.py, nextcord and hikari, with nothing changed but where Discord is, log
/// in and make 32 calls at once, each in a guild of its own, and see no 429.
#[tokio::test(flavor = "multi_thread")]
async fn lim_28_ops_21_libraries_of_python_are_paced() {
    const LIBRARIES: [&str; 3] = ["discord.py", "nextcord", "hikari"];
    /// Who am I, my application, and where is the gateway.
    const AT_LOGIN: usize = 3;
    let _alone = ALONE.lock().await;
    let stage = DiscordSetup::start().await;
    let wide = json!({ "figures": { "gateway-bot": { "calls": 3, "window_ms": 1_000 } } });
    Caller::of(&format!("http://{}", stage.sim.addr())).post("/_sim/limits", &[], &wide).await;
    let (mut clients, since) = (JoinSet::new(), Instant::now());
    for (nth, library) in LIBRARIES.into_iter().enumerate() {
        let guild = GUILD + 10 + nth as u64;
        let channel = create_channel(&stage.sim, guild).await;
        let mut client = python("bots/client.py");
        client.args([library, &format!("{}/proxy/discord", stage.server.address)]);
        client.args([guild.to_string(), channel.to_string()]);
        clients.spawn_blocking(move || (library, run(&mut client)));
    }
    while let Some(ran) = clients.join_next().await {
        let (library, told) = ran.unwrap();
        assert_eq!((&told["made"], &told["errors"]), (&CALLS.into(), &json!([])), "{library}: {told}");
        assert!(told["name"].as_str().is_some_and(|name| name.starts_with("bot-")), "{library}: {told}");
    }
    stage.check_calls(LIBRARIES.len() * (CALLS + AT_LOGIN), since.elapsed()).await;
}
