//! A server that is killed again and again under load, and started again on what it left behind.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::rng::SeededRng;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::ALONE;
use crate::arrivals::arrivals;
use crate::caller::Caller;
use crate::child::{RunningServer, StartingServer, configure, upstream};

/// Kills under load.
const KILLS: usize = 12;
const WORKERS: usize = 8;
const GROUPS: usize = 12;
/// What one group has waiting at the most, so that the end comes soon after the last kill.
const AHEAD: usize = 8;
const CAPACITY: u64 = 20;
const REFILL_PER_S: f64 = 100.0;
/// Long enough that some calls are under way at each kill: the effect is there, the answer is not.
const LATENCY: Duration = Duration::from_millis(25);
/// How long the load goes on before a kill, in milliseconds.
const LOAD_MS: std::ops::Range<u64> = 150..700;
/// How long a start goes on before it is killed, in milliseconds: in the middle of opening and
/// replay, too.
const START_MS: std::ops::Range<u64> = 0..60;
const WHOLE_TEST: Duration = Duration::from_secs(40);

/// What was acknowledged to one group's caller, in the order it handed it in.
struct GroupLog {
    name: String,
    ids: Vec<String>,
}

fn operation(group: &str, n: usize) -> Value {
    json!({
        "upstream": "echo", "group": group, "dedupe_key": format!("{group}:{n}"), "on_unknown": "repeat",
        "max_attempts": 100, "request": { "method": "POST", "path": format!("/{group}"), "body": { "id": n } },
    })
}

/// Hands in operations with growing ids until it is told to stop, and waits for the end of all of
/// them.
async fn load(caller: Caller, name: String, stop: Arc<AtomicBool>) -> GroupLog {
    let mut ids: Vec<String> = Vec::new();
    let mut ended = 0;
    loop {
        let stopped = stop.load(Ordering::Relaxed);
        if !stopped && ids.len() < ended + AHEAD {
            ids.push(caller.submit(&operation(&name, ids.len())).await.0);
        } else if ended < ids.len() {
            assert_eq!(caller.wait_until_ended(&ids[ended]).await, "succeeded", "{name}, {ended}");
            ended += 1;
        } else {
            return GroupLog { name, ids };
        }
    }
}

/// A time out of a range of milliseconds.
fn draw(chance: &mut SeededRng, millis: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(millis.start + chance.next() % (millis.end - millis.start))
}

/// Kills the server at times drawn by chance, and starts it again each time; now and then that
/// start is killed too. Gives the last one back, and how many were killed.
async fn kill_and_start(
    dir: &std::path::Path,
    mut chance: SeededRng,
    at: &watch::Sender<String>,
) -> (RunningServer, usize) {
    let start = || RunningServer::start(dir, "warn", None);
    let mut server = tokio::task::block_in_place(start);
    let mut kills = KILLS;
    for _ in 0..KILLS {
        at.send_replace(server.address.clone());
        sleep(draw(&mut chance, LOAD_MS)).await;
        tokio::task::block_in_place(|| server.kill());
        if chance.happens(0.5) {
            kills += 1;
            let _early = StartingServer::new(dir, "warn", None);
            sleep(draw(&mut chance, START_MS)).await;
        }
        server = tokio::task::block_in_place(start);
    }
    at.send_replace(server.address.clone());
    (server, kills)
}

/// OPS-8, OPS-4, LIM-24: killed at any moment, the server loses nothing it acknowledged, keeps the
/// order inside each group, repeats at most what was under way, and oversteps no limit after it
/// came back.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_lim_24_killed_again_and_again() {
    let _alone = ALONE.lock().await;
    let chance = crate::cluster::chance("the kills");
    let options = HttpSimOptions {
        capacity: CAPACITY,
        refill_per_s: Some(REFILL_PER_S),
        latency: LATENCY,
        ..HttpSimOptions::default()
    };
    let sim = HttpSim::start(options).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), WORKERS, &upstream("echo", &sim, Some((CAPACITY, REFILL_PER_S))));
    let (at, server) = watch::channel("http://127.0.0.1:9".to_owned());
    let caller = Caller::new(server);
    let stop = Arc::new(AtomicBool::new(false));
    let groups: Vec<_> =
        (0..GROUPS).map(|n| tokio::spawn(load(caller.clone(), format!("g{n}"), Arc::clone(&stop)))).collect();
    let all = async {
        let (server, kills) = kill_and_start(dir.path(), chance, &at).await;
        stop.store(true, Ordering::Relaxed);
        let mut ended = Vec::new();
        for group in groups {
            ended.push(group.await.unwrap());
        }
        (server, kills, ended)
    };
    let (_server, kills, groups) = timeout(WHOLE_TEST, all).await.expect("it ends in time");
    check(kills, &groups, &caller, &sim).await;
}

async fn check(kills: usize, groups: &[GroupLog], caller: &Caller, sim: &HttpSim) {
    let arrived = arrivals(sim).await;
    let (mut accepted, mut repeated) = (0, 0);
    for group in groups {
        accepted += group.ids.len();
        let arrived = &arrived[&format!("/{}", group.name)];
        // One at a time: a repeat comes before whatever is behind it, so the whole line never steps
        // back.
        assert!(arrived.is_sorted(), "{}: {arrived:?}", group.name);
        let first: Vec<_> = arrived.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        assert!(first.iter().copied().eq(0..group.ids.len()), "{}: {first:?}", group.name);
        repeated += arrived.len() - first.len();
        // What was acknowledged before the first kill is still known by its key.
        let (id, known) = caller.submit(&operation(&group.name, 0)).await;
        assert_eq!((&id, known), (&group.ids[0], true));
    }
    let distinct: BTreeSet<_> = groups.iter().flat_map(|group| &group.ids).collect();
    assert_eq!(distinct.len(), accepted, "one id was given to two operations");
    let stats = sim.stats();
    println!("{kills} kills, {accepted} accepted and done, {repeated} repeated, {stats:?}");
    assert!(accepted > 100, "{accepted} operations are no load");
    assert!((1..=kills * WORKERS).contains(&repeated), "{repeated} repeated over {kills} kills");
    assert_eq!((stats.overstepped, stats.overlapping), (0, 0), "{stats:?}");
}
