//! Foreign APIs as sources: an unknown entity becomes a read that passes the limiter.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Client;
use serde_json::json;
use tidegate_fixture::nats::NatsServer;
use tidegate_fixture::redis::RedisServer;
use tidegate_server::Server;
use tidegate_server::config::{Config, Overrides};
use tidegate_sim::{DiscordSim, DiscordSimOptions, HttpSim, HttpSimOptions, ShopifySim, ShopifySimOptions};
use tokio::time::sleep;

use crate::support::{Answer, World, read, within};

/// A server with these upstreams and sources.
async fn serve(text: &str) -> Server {
    let text = format!("[server]\nlisten = \"127.0.0.1:0\"\ndrain_s = 1\n[store]\nurl = \"memory:\"\n{text}");
    let env = |name: &str| (name == "TEST_TOKEN").then(|| "a-token-of-some-length".to_owned());
    Server::start(Config::parse("test.toml", &text, &env, &Overrides::default(), &[]).unwrap()).await.unwrap()
}

async fn get(server: &Server, path: &str) -> Answer {
    read(Client::new().get(format!("http://{}{path}", server.addr)).send().await.unwrap()).await
}

/// What the plain simulator has for no id: the body of a GET, which is null.
const ABSENT: &str =
    "[[source]]\nentity_type = \"item\"\nupstream = \"echo\"\npath = \"/items/{id}\"\ndata = \"/body\"\n";

/// HYD-14: an unknown guild is read from Discord once, and an unknown channel is remembered as not
/// found.
#[tokio::test]
async fn hyd_14_discord_answers_for_guilds_and_channels() {
    within(async {
        let sim = DiscordSim::start(DiscordSimOptions::default()).await.unwrap();
        let server = serve(&format!(
            "[[upstream]]\nname = \"bot\"\ndialect = \"discord\"\nbase_url = \"http://{}/api/v10\"\n\
             token_env = \"TEST_TOKEN\"\n\
             [[source]]\nentity_type = \"guild\"\nupstream = \"bot\"\npath = \"/guilds/{{id}}\"\n\
             [source.fields]\ntitle = \"/name\"\n\
             [[source]]\nentity_type = \"channel\"\nupstream = \"bot\"\npath = \"/channels/{{id}}\"\n",
            sim.addr()
        ))
        .await;
        for _ in 0..3 {
            let guild = get(&server, "/v1/entities/guild/4177?wait_ms=10000").await;
            assert_eq!((guild.status, &guild.json["source_module"]), (200, &json!("bot")), "{guild:?}");
            assert_eq!(guild.json["data"], json!({ "title": "Guild 4177" }), "{guild:?}");
        }
        assert_eq!(sim.stats().all.calls, 1, "the copy answers");
        let ids = |number: u64| format!("/v1/entities/channel/{}?wait_ms=20000", 41_770_000 + number);
        for _ in 0..2 {
            let paths: Vec<_> = (0..30).map(ids).collect();
            for channel in join_all(paths.iter().map(|path| get(&server, path))).await {
                assert_eq!(channel.status, 404, "{channel:?}");
            }
            let stats = sim.stats();
            assert_eq!((stats.all.calls, stats.all.throttled), (31, 0), "once each, within the limits");
        }
        server.shutdown().await;
    })
    .await;
}

/// HYD-14: a product is read from Shopify by REST and by GraphQL, with its version.
#[tokio::test]
async fn hyd_14_shopify_answers_for_products() {
    within(async {
        let sim = ShopifySim::start(ShopifySimOptions::default()).await.unwrap();
        let shop = "/shops/acme/admin/api/2026-04";
        let server = serve(&format!(
            "[[upstream]]\nname = \"shop\"\ndialect = \"shopify\"\nbase_url = \"http://{}\"\n\
             token_env = \"TEST_TOKEN\"\n\
             [[source]]\nentity_type = \"product\"\nupstream = \"shop\"\ndata = \"/product\"\n\
             path = \"{shop}/products/{{id}}.json\"\nversion = \"/id\"\n\
             [[source]]\nentity_type = \"variant\"\nupstream = \"shop\"\ndata = \"/data/productVariant\"\n\
             path = \"{shop}/graphql.json\"\nquery_id = \"gid://shopify/ProductVariant/{{id}}\"\n\
             query = \"query($id: ID!) {{ productVariant(id: $id) {{ id title }} }}\"\n",
            sim.addr()
        ))
        .await;
        let product = get(&server, "/v1/entities/product/77?wait_ms=10000").await;
        assert_eq!((product.status, &product.json["version"]), (200, &json!(77)), "{product:?}");
        assert_eq!(product.json["data"]["id"], 77, "{product:?}");
        let variant = get(&server, "/v1/entities/variant/78?wait_ms=10000").await;
        assert_eq!(variant.status, 200, "{variant:?}");
        assert_eq!(variant.json["data"]["id"], "gid://shopify/ProductVariant/78", "{variant:?}");
        let listed = get(&server, "/v1/operations?upstream=shop").await.json;
        assert_eq!(listed["operations"].as_array().unwrap().len(), 2, "operations like any other");
        let sources = get(&server, "/v1/sources").await.json;
        assert_eq!(sources["sources"][0]["upstream"], "shop", "{sources}");
        server.shutdown().await;
    })
    .await;
}

/// HYD-14, HYD-26: a flood of unknown ids keeps within the limits of the upstream, and each is read
/// once.
#[tokio::test]
async fn hyd_14_a_flood_keeps_within_the_limits() {
    within(async {
        let limit = "[[upstream.limit]]\nname = \"calls\"\ncapacity = 5\nrefill_per_s = 50\n";
        let sim = HttpSimOptions { capacity: 5, refill_per_s: Some(60.0), ..HttpSimOptions::default() };
        let world = World::with(&format!("{limit}{ABSENT}"), sim).await;
        for _ in 0..2 {
            let paths: Vec<_> =
                (0..60).map(|number| format!("/v1/entities/item/{number}?wait_ms=20000")).collect();
            for absent in join_all(paths.iter().map(|path| world.get(path))).await {
                assert_eq!(absent.status, 404, "{absent:?}");
            }
            let stats = world.sim.stats();
            assert_eq!((stats.calls, stats.throttled, stats.overstepped), (60, 0, 0));
        }
    })
    .await;
}

/// HYD-14, HYD-26: what the limits do not let through in time is an error, not absence; it is not
/// read later for no one, and it does not block those who ask next.
#[tokio::test]
async fn hyd_14_what_cannot_be_read_in_time_is_canceled() {
    within(async {
        let limit = "[[upstream.limit]]\nname = \"calls\"\ncapacity = 1\nrefill_per_s = 2\n";
        let window = "[hydration]\nin_flight_window_ms = 300\n";
        let world = World::with(&format!("{limit}{ABSENT}{window}"), HttpSimOptions::default()).await;
        let paths: Vec<_> =
            (0..200).map(|number| format!("/v1/entities/item/{number}?wait_ms=100")).collect();
        let all = join_all(paths.iter().map(|path| world.get(path))).await;
        let missed = all.iter().filter(|answer| answer.status == 503).count();
        assert!(missed >= 198, "{missed} of {}", all.len());
        let queued = async {
            while world.get("/v1/operations?state=queued").await.json["operations"] != json!([]) {
                sleep(Duration::from_millis(50)).await;
            }
        };
        queued.await;
        assert!(world.sim.stats().calls < 20, "{:?}", world.sim.stats());
        let asked = world.get("/v1/entities/item/late?wait_ms=20000").await;
        assert_eq!(asked.status, 404, "{asked:?}");
    })
    .await;
}

/// HYD-14: a response that says nothing about the entity is an error, and nothing is remembered.
#[tokio::test]
async fn hyd_14_an_error_of_the_upstream_is_not_absence() {
    within(async {
        let sim = HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() };
        let retries = "[pacing]\nmax_attempts = 1\n[hydration]\nin_flight_window_ms = 500\n";
        let world = World::with(&format!("{ABSENT}{retries}"), sim).await;
        for calls in 1..=2 {
            let failed = world.get("/v1/entities/item/1?wait_ms=20000").await;
            assert_eq!((failed.status, &failed.json["reason"]), (503, &json!("source-failed")), "{failed:?}");
            assert!(world.sim.stats().calls >= calls, "asked again");
            // The failure is remembered for the rest of the window, and no longer.
            sleep(Duration::from_millis(600)).await;
        }
    })
    .await;
}

/// HYD-14: the configuration's sources are not replaced or removed by a request.
#[tokio::test]
async fn hyd_14_a_configured_source_stays() {
    within(async {
        let world = World::with(ABSENT, HttpSimOptions::default()).await;
        let expected = json!({ "entity_type": "item", "upstream": "echo", "path": "/items/{id}" });
        assert_eq!(world.get("/v1/sources").await.json["sources"], json!([expected]));
        let replaced = world.put("/v1/sources/item", json!({ "url": "http://127.0.0.1:1/x" })).await;
        replaced.refused(400, "TG0002", Some("type"));
        let removed =
            crate::support::answer(world.request(reqwest::Method::DELETE, "/v1/sources/item")).await;
        removed.refused(400, "TG0002", Some("type"));
    })
    .await;
}

/// HYD-14: an odd id stays in its place of the path; the simulator echoes what it was asked.
#[tokio::test]
async fn hyd_14_hyd_27_odd_ids_stay_in_their_place() {
    within(async {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let server = serve(&format!(
            "[[upstream]]\nname = \"echo\"\nbase_url = \"http://{}\"\n\
             [[source]]\nentity_type = \"item\"\nupstream = \"echo\"\npath = \"/items/{{id}}\"\n",
            sim.addr()
        ))
        .await;
        let found = get(&server, "/v1/entities/item/a%2F..%2F..%2Fb%3Fc?wait_ms=10000").await;
        assert_eq!(found.status, 200, "{found:?}");
        assert_eq!(found.json["data"]["path"], "/items/a%2F..%2F..%2Fb%3Fc", "{found:?}");
        server.shutdown().await;
    })
    .await;
}

/// HYD-12, HYD-14, HYD-10: nodes on one bus and one store read an entity once for all of them, also
/// when that takes longer than until it is asked for again, and what was not found is known to the
/// node that did not ask.
async fn nodes_read_once(store: &str, bus: &str) {
    let slow = HttpSimOptions { latency: Duration::from_millis(450), ..HttpSimOptions::default() };
    let sim = HttpSim::start(slow).await.unwrap();
    let start = async || {
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\ndrain_s = 1\n[store]\nurl = \"{store}\"\n[bus]\nurl = \"{bus}\"\n\
             [[upstream]]\nname = \"echo\"\nbase_url = \"http://{}\"\n\
             [[source]]\nentity_type = \"item\"\nupstream = \"echo\"\npath = \"/items/{{id}}\"\n{ABSENT_PAGE}",
            sim.addr()
        );
        let config = Config::parse("test.toml", &text, &|_| None, &Overrides::default(), &[]).unwrap();
        Server::start(config).await.unwrap()
    };
    let nodes = [start().await, start().await];
    for (path, status) in [("/v1/entities/item/7", 200), ("/v1/entities/page/7", 404)] {
        let before = sim.stats().calls;
        let path = format!("{path}?wait_ms=20000");
        for answer in join_all((0..20).map(|caller| get(&nodes[caller % 2], &path))).await {
            assert_eq!(answer.status, status, "{answer:?}");
        }
        assert_eq!(sim.stats().calls - before, 1, "{path}");
    }
    for node in nodes {
        node.shutdown().await;
    }
}

/// A source of the plain simulator that has nothing.
const ABSENT_PAGE: &str =
    "[[source]]\nentity_type = \"page\"\nupstream = \"echo\"\npath = \"/pages/{id}\"\ndata = \"/body\"\n";

/// HYD-12, HYD-14, HYD-10: on Redis.
#[tokio::test]
async fn hyd_12_hyd_14_nodes_read_once_on_redis() {
    let server = RedisServer::start();
    within(nodes_read_once(&server.url(), &server.url())).await;
}

/// HYD-12, HYD-14, HYD-10: with the bus on NATS.
#[tokio::test]
async fn hyd_12_hyd_14_nodes_read_once_on_nats() {
    let (store, bus) = (RedisServer::start(), NatsServer::start());
    within(nodes_read_once(&store.url(), &bus.url())).await;
}
