//! A server that is killed and started again with what it learned from Discord: the limit of a
//! route, a hidden limit that is used up, and a ban of its address.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_sim::{DiscordSim, DiscordSimOptions};
use tokio::time::{sleep, timeout};

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure};

const GUILD: u64 = 900_000_000_000_000_001;
/// New roles that the route allows at once, and how long until it allows as many again.
const ROLES: usize = 4;
const WINDOW_MS: u64 = 3_000;
/// How long anything is waited for.
const SOON: Duration = Duration::from_secs(20);
/// Long enough for a call that must not be made.
const MOMENT: Duration = Duration::from_millis(300);

/// A Discord, and a server in front of it that is killed.
struct KilledBot {
    sim: DiscordSim,
    dir: TempDir,
    server: Option<RunningServer>,
    address: String,
    /// A channel of the guild.
    channel: String,
}

impl KilledBot {
    async fn start() -> Self {
        let sim = DiscordSim::start(DiscordSimOptions::default()).await.unwrap();
        let discord = Caller::of(&format!("http://{}", sim.addr()));
        let figures = json!({ "role-create": { "calls": ROLES, "window_ms": WINDOW_MS } });
        discord.post("/_sim/limits", &[], &json!({ "figures": figures, "ban_ms": 3_600_000 })).await;
        let path = format!("/_sim/hand/guilds/{GUILD}/channels");
        let channel = discord.post(&path, &[], &json!({ "name": "desk" })).await["id"].clone();
        let dir = tempfile::tempdir().unwrap();
        let upstream = format!(
            "[[upstream]]\nname = \"discord\"\ndialect = \"discord\"\nbase_url = \"http://{}/api/v10\"\ntoken_env = \"BOT_TOKEN\"\n",
            sim.addr()
        );
        configure(dir.path(), 16, &upstream);
        let channel = channel.as_str().unwrap().to_owned();
        let mut bot = Self { sim, dir, server: None, address: String::new(), channel };
        bot.kill_and_start();
        bot
    }

    /// SIGKILL, and a new process on what it left.
    fn kill_and_start(&mut self) {
        let token = Some(("BOT_TOKEN", "a token of the bot"));
        tokio::task::block_in_place(|| {
            drop(self.server.take().map(RunningServer::kill));
            let server = RunningServer::start(self.dir.path(), "error", token);
            self.address.clone_from(&server.address);
            self.server = Some(server);
        });
    }

    fn caller(&self) -> Caller {
        Caller::of(&self.address)
    }

    async fn submit(&self, group: &str, method: &str, path: &str, body: Value) -> String {
        let request = json!({ "method": method, "path": path, "body": body });
        let operation = json!({ "upstream": "discord", "group": group, "request": request });
        self.caller().submit(&operation).await.0
    }

    /// Submits new roles, each in a group of its own.
    async fn create_roles(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for n in 0..ROLES {
            let path = format!("/guilds/{GUILD}/roles");
            ids.push(self.submit(&format!("role-{n}"), "POST", &path, json!({ "name": "a" })).await);
        }
        ids
    }

    async fn rename(&self, name: &str) -> String {
        let path = format!("/channels/{}", self.channel);
        self.submit(&format!("rename-{name}"), "PATCH", &path, json!({ "name": name })).await
    }

    /// Waits until all of them have succeeded.
    async fn succeeded(&self, ids: &[String]) {
        for id in ids {
            assert_eq!(timeout(SOON, self.caller().wait_until_ended(id)).await.unwrap(), "succeeded");
        }
    }

    async fn limit(&self, name: &str) -> Value {
        let limits: Value = serde_json::from_str(&self.caller().get("/v1/limits").await).unwrap();
        let limits = limits["limits"].as_array().unwrap();
        let found = limits.iter().find(|limit| limit["name"].as_str().unwrap() == name);
        found.cloned().unwrap_or_else(|| panic!("there is no {name}: {limits:?}"))
    }
}

/// LIM-24: after `kill -9` a learned limit that is used up is not overstepped, a hidden one stays
/// used up, and a ban is not called into.
#[tokio::test(flavor = "multi_thread")]
async fn lim_24_killed_with_learned_limits_renames_and_a_ban() {
    let _alone = ALONE.lock().await;
    let mut bot = KilledBot::start().await;
    let mut ids = bot.create_roles().await;
    ids.extend([bot.rename("one").await, bot.rename("two").await]);
    bot.succeeded(&ids).await;
    bot.kill_and_start();
    let learned = bot.limit(&format!("discord/POST /guilds/{{guild}}/roles {GUILD}")).await;
    assert_eq!((&learned["source"], &learned["capacity"]), (&"learned".into(), &ROLES.into()), "{learned}");
    let third = bot.rename("three").await;
    let ids = bot.create_roles().await;
    bot.succeeded(&ids).await;
    let why = bot.caller().get(&format!("/v1/operations/{third}/why")).await;
    assert!(why.contains(&format!("discord/renames {}", bot.channel)), "{why}");
    let stats = bot.sim.stats();
    assert_eq!((stats.all.throttled, stats.all.overstepped), (0, 0), "{stats:?}");
    assert_eq!(stats.done_by_route["PATCH /channels/{channel}"], 2, "{stats:?}");

    // A stranger behind the same address has it banned; the next call of the bot finds out.
    let discord = Caller::of(&format!("http://{}", bot.sim.addr()));
    let one = json!({ "figures": { "invalid": { "calls": 1, "window_ms": 1_000 } } });
    discord.post("/_sim/limits", &[], &one).await;
    discord.call(Method::GET, "/api/v10/users/@me", &[("user-agent", "a stranger")], None).await.unwrap();
    bot.submit("look", "GET", &format!("/guilds/{GUILD}"), Value::Null).await;
    let found_out = async {
        while bot.limit("discord").await["closed_until"].is_null() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, found_out).await.expect("the ban is noticed");
    bot.kill_and_start();
    let calls = bot.sim.stats().all.calls;
    bot.create_roles().await;
    sleep(MOMENT).await;
    let (stats, closed) = (bot.sim.stats(), bot.limit("discord").await);
    assert_eq!((stats.all.calls, stats.banned), (calls, 1), "{stats:?}");
    assert!(closed["closed_until"].is_string(), "{closed}");
}
