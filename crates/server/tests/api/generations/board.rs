//! The state of providers in Redis, as a person reads it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tidegate_fixture::redis::RedisServer;
use tidegate_sim::{Provider, ProviderSimOptions};

use super::studio::{Studio, StudioPlan, generation, slow};
use crate::support::within;

/// Sends one command as `redis-cli` would, and returns the lines of the reply.
fn redis(store: &RedisServer, command: &str) -> Vec<String> {
    let url = store.url();
    let mut stream =
        TcpStream::connect(url.trim_start_matches("redis://").split('/').next().unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(format!("{command}\r\nQUIT\r\n").as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let is_length = |line: &str| line.starts_with(['$', '*']);
    reply.lines().filter(|line| !is_length(line) && *line != "+OK").map(str::to_owned).collect()
}

fn failing(provider: Provider) -> ProviderSimOptions {
    let fail_rate = if provider == Provider::Fal { 1.0 } else { 0.0 };
    ProviderSimOptions { fail_rate, ..slow(provider) }
}

/// DSP-15: active leases, the current window, the last error and the count of errors of each
/// provider are keys that a person can read; they expire by themselves.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_15_providers_can_be_read_in_redis() {
    within(async {
        let store = RedisServer::start();
        let chain = vec![Provider::Fal, Provider::Replicate];
        let plan = StudioPlan { chain, sim: failing, store: store.url(), ..StudioPlan::default() };
        let studio = Studio::start(plan).await;
        let id = studio.create(&generation("anna", "a cat")).await;
        studio.wait_for_status(&id, "processing").await;
        let ask = |command: &str| tokio::task::block_in_place(|| redis(&store, command));
        while ask("ZRANGE tg:provider:{replicate}:active 0 -1") != [id.as_str()] {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let field = |key: &str, name: &str| ask(&format!("HGET tg:provider:{key} {name}")).join("");
        assert_eq!(field("{replicate}:state", "state"), "free");
        assert_eq!(
            (field("{replicate}:state", "in_use"), field("{replicate}:state", "max_concurrent")),
            ("1".into(), "4".into())
        );
        assert_eq!(
            (field("{replicate}:window", "limit"), field("{replicate}:window", "used")),
            ("6000".into(), "1".into())
        );
        assert_eq!(ask("GET tg:provider:{replicate}:errors"), ["0"]);
        assert_eq!(ask("GET tg:provider:{fal}:errors"), ["1"]);
        assert_eq!(field("{fal}:state", "state"), "cooling_down");
        assert!(field("{fal}:state", "until").contains('T'));
        assert!(!field("{fal}:last_error", "message").is_empty());
        assert_eq!(field("{fal}:last_error", "generation"), id);
        assert_eq!(ask("EXISTS tg:provider:{replicate}:last_error"), [":0"]);
        for key in ["{replicate}:active", "{fal}:state", "{fal}:window", "{fal}:errors", "{fal}:last_error"] {
            let ttl: i64 =
                ask(&format!("PTTL tg:provider:{key}"))[0].trim_start_matches(':').parse().unwrap();
            assert!((1..=30_000).contains(&ttl), "{key}: {ttl}");
        }
        studio.wait_until_ended(&id).await;
        while ask("EXISTS tg:provider:{replicate}:active") != [":0"] {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}
