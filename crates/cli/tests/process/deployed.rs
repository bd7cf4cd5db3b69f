//! A deployment over HTTP whose server is killed in the middle and started again; and the command
//! that has a server do it.

use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tidegate_sim::{DiscordSim, DiscordSimOptions};
use tokio::time::{sleep, timeout};

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, tidegate};

const SMALL: &str = include_str!("../../../../examples/guilds/small.yaml");
const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/guilds/small.yaml");
/// The guild that is deployed into.
pub(crate) const GUILD: &str = "4177";
/// The variable that the bot's token is in, and the token.
pub(crate) const UPSTREAM_TOKEN: (&str, &str) = ("BOT_TOKEN", "a token of the bot");
const LOOK: Duration = Duration::from_millis(20);
const WHOLE_TEST: Duration = Duration::from_secs(120);

/// A Discord whose limits are not in the way.
pub(crate) async fn discord() -> DiscordSim {
    let mut options = DiscordSimOptions::default();
    for limit in ["routes", "renames", "global"] {
        options.limits.set(limit, 1_000, 1_000).unwrap();
    }
    DiscordSim::start(options).await.unwrap()
}

/// The upstream of the configuration.
pub(crate) fn upstream(sim: &DiscordSim) -> String {
    format!(
        "[[upstream]]\nname = \"discord\"\ndialect = \"discord\"\nbase_url = \"http://{}/api/v10\"\ntoken_env = \"{}\"\n",
        sim.addr(),
        UPSTREAM_TOKEN.0
    )
}

/// What is asked for.
pub(crate) fn small() -> Value {
    json!({ "guild": GUILD, "upstream": "discord", "template": SMALL })
}

/// Has the simulator hang after the effect of a write.
pub(crate) async fn stop_at(sim: &DiscordSim, write: u64) {
    let order = json!({ "write": write, "when": "after" });
    Caller::of(&format!("http://{}", sim.addr())).post("/_sim/stop", &[], &order).await;
}

/// Until it hangs there.
pub(crate) async fn wait_until_stopped(sim: &DiscordSim) {
    let caller = Caller::of(&format!("http://{}", sim.addr()));
    while serde_json::from_str::<Value>(&caller.get("/_sim/stop").await).unwrap()["reached"] != true {
        sleep(LOOK).await;
    }
}

/// The deployment, when it has ended.
pub(crate) async fn wait_until_ended(caller: &Caller, id: &str) -> Value {
    loop {
        let answer = caller.call(Method::GET, &format!("/v1/deployments/{id}"), &[], None).await;
        let one: Value = answer.map_or(Value::Null, |(_, one)| serde_json::from_str(&one).unwrap());
        if matches!(one["stage"].as_str(), Some("done" | "failed")) {
            return one;
        }
        sleep(LOOK).await;
    }
}

async fn killed_in_the_middle() {
    let sim = discord().await;
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), 8, &upstream(&sim));
    let start =
        || tokio::task::block_in_place(|| RunningServer::start(dir.path(), "info", Some(UPSTREAM_TOKEN)));
    let server = start();
    stop_at(&sim, 5).await;
    let begun = Caller::of(&server.address).post("/v1/deployments", &[], &small()).await;
    wait_until_stopped(&sim).await;
    tokio::task::block_in_place(|| server.kill());
    Caller::of(&format!("http://{}", sim.addr()))
        .call(Method::DELETE, "/_sim/stop", &[], None)
        .await
        .unwrap();
    let server = start();
    let done = wait_until_ended(&Caller::of(&server.address), begun["id"].as_str().unwrap()).await;
    assert_eq!(done["stage"], "done", "{done}");
    let stats = sim.stats();
    assert_eq!((stats.all.duplicates, stats.all.objects["channels"]), (0, 8), "{stats:?}");
    assert_eq!(stats.all.objects["messages"], 2, "{stats:?}");
}

/// OPS-15, OPS-18: a server that was killed in the middle of a deployment goes on with it without
/// being asked, and makes nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn ops_15_ops_18_a_killed_server_goes_on_by_itself() {
    let _alone = ALONE.lock().await;
    timeout(WHOLE_TEST, killed_in_the_middle()).await.expect("it ends in time");
}

/// A run of `deploy` with this server: whether it went well, and what it said.
fn deploy(server: &RunningServer, args: &[&str]) -> (bool, String, String) {
    let mut command = tidegate();
    command.arg("deploy").args(args).args(["--guild", GUILD, "--server", &server.address]);
    let ran = tokio::task::block_in_place(|| command.output().unwrap());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ran.status.success(), text(ran.stdout), text(ran.stderr))
}

/// OPS-17, OPS-19: plan, apply, status and events say with a server what they say with a store of
/// their own.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_the_command_has_a_server_do_it() {
    let _alone = ALONE.lock().await;
    let sim = discord().await;
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), 8, &upstream(&sim));
    let server =
        tokio::task::block_in_place(|| RunningServer::start(dir.path(), "info", Some(UPSTREAM_TOKEN)));
    let of = |verb: &'static str| [verb, "--template", TEMPLATE];
    let (good, _, err) = deploy(&server, &["status"]);
    assert!(!good && err.contains("No deployment of guild 4177 is in the journal."), "{err}");
    let (good, out, err) = deploy(&server, &of("plan"));
    assert!(good && out.contains("+ role lead"), "{out}{err}");
    assert_eq!(sim.stats().all.writes, 0);
    let (good, out, err) = deploy(&server, &[&of("apply")[..], &["--yes"]].concat());
    assert!(good && out.starts_with("Guild 4177 is as the template says: 14 created"), "{out}{err}");
    let (good, out, err) = deploy(&server, &[&of("apply")[..], &["--yes"]].concat());
    assert!(
        good && out.contains("says: ") && out.contains("as they should be") && !out.contains("created"),
        "{out}{err}"
    );
    let (good, out, err) = deploy(&server, &["status"]);
    assert!(good && out.contains("role lead") && out.contains("done"), "{out}{err}");
    let (good, out, err) = deploy(&server, &["events", "--json"]);
    let events: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    assert!(good && events["events"].as_array().is_some_and(|events| events.len() == 14), "OPS-17: {events}");
    assert_eq!(sim.stats().all.duplicates, 0);
}
