//! Deployments over HTTP to a simulated guild.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tidegate_server::Server;
use tidegate_server::config::{Config, Overrides};
use tidegate_sim::{DiscordSim, DiscordSimOptions};
use tokio::time::sleep;

use crate::support::{Answer, answer, within};

const SMALL: &str = include_str!("../../../../examples/guilds/small.yaml");
/// The number of calls that create the small guild.
const WRITES: u64 = 14;

/// A server with a bot, and the Discord that it calls.
struct World {
    server: Server,
    sim: DiscordSim,
    client: reqwest::Client,
}

impl World {
    async fn new() -> Self {
        Self::on("memory:").await
    }

    async fn on(store: &str) -> Self {
        let mut options = DiscordSimOptions::default();
        for limit in ["routes", "renames", "global"] {
            options.limits.set(limit, 1_000, 1_000).unwrap();
        }
        let sim = DiscordSim::start(options).await.unwrap();
        let server = serve(store, &sim).await;
        Self { server, sim, client: reqwest::Client::new() }
    }

    async fn get(&self, path: &str) -> Answer {
        answer(self.client.get(format!("http://{}{path}", self.server.addr))).await
    }

    async fn page(&self, path: &str) -> (u16, String) {
        let response = self.client.get(format!("http://{}{path}", self.server.addr)).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn post(&self, body: &Value) -> Answer {
        let url = format!("http://{}/v1/deployments", self.server.addr);
        answer(self.client.post(url).body(body.to_string())).await
    }

    /// Starts a deployment and waits for its end.
    async fn deployed(&self, body: &Value) -> Value {
        let begun = self.post(body).await;
        assert_eq!(begun.status, 202, "{begun:?}");
        self.wait_until_ended(&begun.text("id")).await
    }

    async fn wait_until_ended(&self, id: &str) -> Value {
        loop {
            let shown = self.get(&format!("/v1/deployments/{id}")).await;
            if shown.json["stage"] != "running" {
                return shown.json;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Calls the simulator's own API.
    async fn sim(&self, method: Method, path: &str, body: &Value) -> Value {
        let url = format!("http://{}/_sim{path}", self.sim.addr());
        let request = self.client.request(method, url).header("content-type", "application/json");
        answer(request.body(body.to_string())).await.json
    }

    /// Waits until the simulator has stopped where it was told to.
    async fn wait_until_stopped(&self) {
        while self.sim(Method::GET, "/stop", &Value::Null).await["reached"] != true {
            sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn serve(store: &str, sim: &DiscordSim) -> Server {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ndrain_s = 1\n[store]\nurl = \"{store}\"\n[[upstream]]\nname = \"bot\"\n\
         dialect = \"discord\"\nbase_url = \"http://{}/api/v10\"\ntoken_env = \"TEST_TOKEN\"\n\
         [[upstream]]\nname = \"plain\"\nbase_url = \"http://{}\"\n",
        sim.addr(),
        sim.addr()
    );
    let env = |name: &str| (name == "TEST_TOKEN").then(|| "a-bot-token".to_owned());
    loop {
        let config = Config::parse("test.toml", &text, &env, &Overrides::default(), &[]).unwrap();
        match Server::start(config).await {
            Ok(server) => return server,
            // The previous server may hold the folder for a moment longer.
            Err(error) if error.code == tidegate_server::ErrorCode::StoreRefused => {
                sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn small() -> Value {
    json!({ "guild": "4177", "upstream": "bot", "template": SMALL })
}

/// OPS-17, OPS-18, OPS-19: a template is deployed to its end, every step is in the journal with the
/// operation that executed it, and a second run makes no write call.
#[tokio::test(flavor = "multi_thread")]
async fn ops_17_ops_18_ops_19_a_guild_is_deployed_once() {
    within(async {
        let world = World::new().await;
        let url = format!("http://{}/v1/deployments", world.server.addr);
        let keyed = || world.client.post(&url).header("idempotency-key", "k-1").body(small().to_string());
        let response = keyed().send().await.unwrap();
        let place = response.headers()["location"].to_str().unwrap().to_owned();
        let begun = crate::support::read(response).await;
        assert_eq!((begun.status, &begun.json["scope"]), (202, &json!("guild:4177")), "{begun:?}");
        let id = begun.text("id");
        assert_eq!(place, format!("/v1/deployments/{id}"));
        assert_eq!(answer(keyed()).await.text("id"), id, "the key makes it one");
        let done = world.wait_until_ended(&id).await;
        assert_eq!((&done["stage"], &done["note"]), (&json!("done"), &Value::Null), "{done}");
        assert_eq!((&done["counts"]["planned"], &done["counts"]["failed"]), (&json!(0), &json!(0)), "{done}");
        let carried: Vec<&Value> =
            done["steps"].as_array().unwrap().iter().filter(|step| step["operation"].is_string()).collect();
        assert_eq!(carried.len() as u64, WRITES, "{done}");
        let operation = carried[0]["operation"].as_str().unwrap();
        assert_eq!(world.get(&format!("/v1/operations/{operation}")).await.json["deployment_id"], json!(id));
        assert_eq!(world.sim.stats().all.writes, WRITES);

        let events = world.get(&format!("/v1/deployments/{id}/events")).await.json;
        assert_eq!((&events["deployment"], &events["dropped"]), (&json!(id), &json!(0)), "{events}");
        let of = |state: &str| {
            let listed = events["events"].as_array().unwrap().iter();
            listed.filter(|event| event["state"] == state && event["action"] == "create").count() as u64
        };
        assert_eq!((of("planned"), of("applied"), of("failed")), (WRITES, WRITES, 0), "{events}");

        let second = world.deployed(&small()).await;
        assert_eq!(second["stage"], "done", "{second}");
        assert_ne!(second["id"], done["id"]);
        let stats = world.sim.stats();
        assert_eq!((stats.all.writes, stats.all.duplicates, stats.all.throttled), (WRITES, 0, 0));

        let all = world.get("/v1/deployments?guild=4177").await.json["deployments"].take();
        let ids: Vec<&Value> = all.as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, [&second["id"], &done["id"]]);
        assert_eq!(world.get("/v1/deployments?guild=7").await.json["deployments"], json!([]));
        assert_eq!(
            world.get("/v1/deployments?limit=1").await.json["deployments"].as_array().unwrap().len(),
            1
        );
        page_shows(&world, &done).await;
    })
    .await;
}

/// The overview shows the deployment, and its page the state of each step.
async fn page_shows(world: &World, done: &Value) {
    let id = done["id"].as_str().unwrap();
    let (status, overview) = world.page("/").await;
    assert_eq!(status, 200);
    assert!(overview.contains(&format!("href=\"/deployments/{id}\"")) && overview.contains("guild:4177"));
    let (status, list) = world.page("/deployments").await;
    assert!(status == 200 && list.contains(&format!("href=\"/deployments/{id}\"")), "{list}");
    assert!(list.contains("<a href=\"/deployments\" aria-current=\"page\">"), "{list}");
    let (status, html) = world.page(&format!("/deployments/{id}")).await;
    assert_eq!(status, 200);
    for step in done["steps"].as_array().unwrap() {
        let (kind, key) = (step["kind"].as_str().unwrap(), step["key"].as_str().unwrap());
        assert!(html.contains(&format!("{kind} {key}</th>")), "{kind} {key}: {html}");
    }
    assert!(!html.contains("Руководитель"), "a template is not shown: {html}");
    assert!(html.contains("their names carry the keys"), "OPS-16: {html}");
    assert!(html.contains(&format!("href=\"/v1/deployments/{id}/events\"")), "{html}");
    assert!(html.contains("What happened last") && html.contains("<td>role lead</td>"), "{html}");
    let steps = done["steps"].as_array().unwrap().len();
    let progress = format!("aria-label=\"{steps} of {steps} steps applied\"");
    assert!(html.contains(&progress) && list.contains(&progress), "{html} {list}");
    let (status, html) = world.page("/deployments/%3Cb%3E").await;
    assert!(status == 404 && html.contains("TG0029") && !html.contains("<b>"), "{status} {html}");
}

/// OPS-16: with clean names, the page does not say that names carry keys.
#[tokio::test(flavor = "multi_thread")]
async fn ops_16_the_page_warns_by_the_style_of_names() {
    within(async {
        let world = World::new().await;
        let template = "names: clean\nroles:\n  - key: mods\n    name: Moderators\n";
        let wanted = json!({ "guild": "4177", "upstream": "bot", "template": template });
        let done = world.deployed(&wanted).await;
        assert_eq!(done["stage"], "done", "{done}");
        let (_, html) = world.page(&format!("/deployments/{}", done["id"].as_str().unwrap())).await;
        assert!(html.contains("their names carry no keys"), "{html}");
        assert!(!html.contains("their names carry the keys"), "{html}");
    })
    .await;
}

/// OPS-9, LIM-12: an operator opens, changes and resets any limit of a bot, assumed or learned.
#[tokio::test(flavor = "multi_thread")]
async fn ops_9_an_operator_changes_what_was_assumed_or_learned() {
    within(async {
        let world = World::new().await;
        world.deployed(&small()).await;
        let limits = world.get("/v1/limits?limit=100").await.json["limits"].take();
        let opened = limits.as_array().unwrap().iter().filter(|limit| limit["source"] == "learned");
        let names: Vec<&str> = opened.map(|limit| limit["name"].as_str().unwrap()).collect();
        for part in ["bot/role-creates ", "bot/bucket "] {
            assert!(names.iter().any(|name| name.starts_with(part)), "{part}: {names:?}");
        }
        let window = json!({ "capacity": 7, "period_ms": 9_000 });
        for name in names {
            for change in [json!({ "open": true }), window.clone(), json!({ "reset": true })] {
                let url = format!("http://{}/v1/limits/{name}", world.server.addr);
                let changed = answer(world.client.put(url).body(change.to_string())).await;
                assert_eq!(changed.status, 200, "{name} {change}: {changed:?}");
                if change == window {
                    assert_eq!(
                        (&changed.json["capacity"], &changed.json["source"]),
                        (&json!(7), &json!("operator"))
                    );
                }
            }
        }
    })
    .await;
}

/// OPS-19: a dry run returns the plan and its cost, and changes nothing; another plan than the one
/// that was agreed to is no deployment.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_a_dry_run_changes_nothing() {
    within(async {
        let world = World::new().await;
        let mut body = small();
        body["dry_run"] = json!(true);
        let planned = world.post(&body).await;
        assert_eq!(planned.status, 200, "{planned:?}");
        assert!(planned.json["plan"]["writes"].as_u64().unwrap() >= WRITES, "{planned:?}");
        assert!(planned.json["estimate"]["calls"].as_u64().unwrap() >= WRITES, "{planned:?}");
        assert!(planned.json["lines"].as_array().unwrap().len() as u64 > WRITES, "{planned:?}");
        body["dry_run"] = json!(false);
        body["plan_digest"] = json!("00000000000000000000000000000000");
        world.post(&body).await.refused(409, "TG0013", None);
        assert_eq!(world.sim.stats().all.writes, 0);
        assert_eq!(world.get("/v1/deployments").await.json["deployments"], json!([]));
    })
    .await;
}

/// OPS-19: all problems of a template are reported with their locations, and nothing is called; so
/// are those of an invalid request.
#[tokio::test(flavor = "multi_thread")]
async fn ops_19_what_cannot_be_deployed_is_told_with_its_place() {
    within(async {
        let world = World::new().await;
        let template = "prefix: SSO\nroles:\n  - nam: x\nchannels:\n  - key: a\n    type: txt\n";
        let bad = world.post(&json!({ "guild": "1", "upstream": "bot", "template": template })).await;
        bad.refused(422, "TG0028", Some("template"));
        let problems = bad.json["error"]["detail"]["problems"].as_array().unwrap();
        assert!(problems.len() >= 2, "{bad:?}");
        assert!(problems.iter().any(|problem| problem["line"] == 3 && problem["column"] == 5), "{bad:?}");
        for upstream in ["plain", "nobody"] {
            let body = json!({ "guild": "1", "upstream": upstream, "template": SMALL });
            world.post(&body).await.refused(422, "TG0003", Some("upstream"));
        }
        let body = json!({ "guild": 1, "upstream": "bot", "template": SMALL });
        world.post(&body).await.refused(400, "TG0001", Some("guild"));
        world.get("/v1/deployments/none").await.refused(404, "TG0029", Some("id"));
        world.get("/v1/deployments/none/events").await.refused(404, "TG0029", Some("id"));
        world.get("/v1/deployments?guild=x").await.refused(400, "TG0001", Some("guild"));
        assert_eq!(world.sim.stats().all.calls, 0);
    })
    .await;
}

/// OPS-15: a guild with a running deployment refuses another one, and the error names the running
/// one.
#[tokio::test(flavor = "multi_thread")]
async fn ops_15_a_busy_guild_takes_no_other_deployment() {
    within(async {
        let world = World::new().await;
        world.sim(Method::POST, "/stop", &json!({ "write": 3, "when": "before" })).await;
        let first = world.post(&small()).await.text("id");
        world.wait_until_stopped().await;
        let refused = world.post(&small()).await;
        refused.refused(409, "TG0013", None);
        assert_eq!(refused.json["error"]["detail"]["deployment"], json!(first), "{refused:?}");
        world.sim(Method::DELETE, "/stop", &Value::Null).await;
        assert_eq!(world.wait_until_ended(&first).await["stage"], "done");
        assert_eq!(world.sim.stats().all.duplicates, 0);
    })
    .await;
}

/// OPS-15, OPS-18: a server that shuts down gracefully leaves its deployment in the journal, and
/// the next one resumes it by itself.
#[tokio::test(flavor = "multi_thread")]
async fn ops_15_ops_18_a_stopped_server_goes_on_when_it_is_back() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let store = format!("file:{}", dir.path().display());
        let world = World::on(&store).await;
        world.sim(Method::POST, "/stop", &json!({ "write": 5, "when": "after" })).await;
        let id = world.post(&small()).await.text("id");
        world.wait_until_stopped().await;
        let World { server, sim, client } = world;
        server.shutdown().await;
        let world = World { server: serve(&store, &sim).await, sim, client };
        world.sim(Method::DELETE, "/stop", &Value::Null).await;
        let done = world.wait_until_ended(&id).await;
        assert_eq!(done["stage"], "done", "{done}");
        let stats = world.sim.stats();
        assert_eq!((stats.all.duplicates, stats.all.objects["channels"]), (0, 8), "{stats:?}");
    })
    .await;
}
