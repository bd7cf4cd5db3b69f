//! How much of a limit is used, and who is kept waiting by whom: counted at the upstream.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::{HttpSim, HttpSimOptions, Stats};
use tokio::time::{Instant, sleep, timeout};

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, upstream};

fn operation(upstream: &str, group: &str, n: usize) -> Value {
    let request = json!({ "method": "POST", "path": "/x", "body": { "id": format!("{group}:{n}") } });
    json!({ "upstream": upstream, "group": group, "request": request })
}

/// Hands in `count` operations over `groups` groups in one batch; their ids.
pub(crate) async fn batch(caller: &Caller, upstream: &str, groups: usize, count: usize) -> Vec<String> {
    let operations: Vec<_> =
        (0..count).map(|n| operation(upstream, &format!("{upstream}:{}", n % groups), n)).collect();
    let answer = caller.post("/v1/operations/batch", &[], &json!({ "operations": operations })).await;
    let members = answer["operations"].as_array().unwrap();
    members.iter().map(|member| member["id"].as_str().expect("accepted").to_owned()).collect()
}

/// From the first of `count` calls to the last, and the longest time between two of them; to a
/// millisecond or two.
pub(crate) async fn span_of(sim: &HttpSim, count: u64) -> (Duration, Duration) {
    let (mut first, mut last, mut gap, mut calls) = (None, Instant::now(), Duration::ZERO, 0);
    while calls < count {
        sleep(Duration::from_millis(1)).await;
        let (now, seen) = (Instant::now(), sim.stats().calls);
        if seen > calls {
            gap = gap.max(first.map_or(Duration::ZERO, |_| now - last));
            (last, calls) = (now, seen);
            first = first.or(Some(now));
        }
    }
    (first.map_or(Duration::ZERO, |first| last - first), gap)
}

/// LIM-14, LIM-6: with more work than fits, at least 98 % of what the upstream permits is used, and
/// not one call is refused.
#[tokio::test(flavor = "multi_thread")]
async fn lim_14_lim_6_nearly_all_of_a_limit_is_used_and_none_of_it_overstepped() {
    const CAPACITY: u64 = 20;
    const REFILL_PER_S: u32 = 100;
    const CALLS: usize = 600;
    let _alone = ALONE.lock().await;
    for run in 1..=RUNS {
        let (used, stats, gap) = paced(CAPACITY, REFILL_PER_S, CALLS).await;
        if is_measured(run, used, (&stats, CALLS), gap) {
            return;
        }
    }
    panic!("nothing was measured: the machine stood still in each of {RUNS} runs");
}

/// Whether a run shows that the limit was kept and used. One in which the machine stood still for
/// longer than a call is taken to be on its way shows nothing when it falls short; any other must
/// not.
pub(crate) fn is_measured(run: usize, used: f64, (stats, calls): (&Stats, usize), gap: Duration) -> bool {
    let what = format!("run {run}: {:.2} % used, longest gap {gap:?}; {stats:?}", used * 100.0);
    println!("{what}");
    assert_eq!(stats.calls, calls as u64 + stats.throttled, "{what}");
    let is_good = stats.throttled == 0 && used >= 0.98;
    assert!(is_good || gap > STILL, "{what}");
    is_good
}

/// How often it is tried to find the machine quiet.
pub(crate) const RUNS: usize = 5;
/// No call for this long, though one every 10 ms is allowed: the machine stood still.
const STILL: Duration = Duration::from_millis(90);

/// Has `calls` carried under a limit; answers the share of it that was used, what the upstream
/// counted, and the longest time without a call.
async fn paced(capacity: u64, refill_per_s: u32, calls: usize) -> (f64, Stats, Duration) {
    let options = HttpSimOptions {
        capacity,
        refill_per_s: Some(f64::from(refill_per_s)),
        latency: Duration::from_millis(5),
        ..HttpSimOptions::default()
    };
    let sim = HttpSim::start(options).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), 64, &upstream("echo", &sim, Some((capacity, f64::from(refill_per_s)))));
    let server = RunningServer::start(dir.path(), "warn", None);
    let caller = Caller::of(&server.address);
    let counted = span_of(&sim, calls as u64);
    let (ids, span) = tokio::join!(batch(&caller, "echo", 100, calls), timeout(SOON, counted));
    let (span, gap) = span.unwrap_or_else(|_| panic!("{:?} within {SOON:?}", sim.stats()));
    for id in &ids {
        assert_eq!(caller.wait_until_ended(id).await, "succeeded");
    }
    let permitted = capacity as f64 + f64::from(refill_per_s) * span.as_secs_f64();
    (calls as f64 / permitted, sim.stats(), gap)
}

/// How long anything here is waited for.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// LIM-13: what waits for the limit of one upstream takes no worker, so calls to another one pass
/// by.
#[tokio::test(flavor = "multi_thread")]
async fn lim_13_a_busy_upstream_slows_no_other() {
    const EACH: usize = 200;
    let _alone = ALONE.lock().await;
    let slow =
        HttpSim::start(HttpSimOptions { capacity: 2, refill_per_s: Some(1.0), ..HttpSimOptions::default() });
    let (slow, quick) = (slow.await.unwrap(), HttpSim::start(HttpSimOptions::default()).await.unwrap());
    let dir = tempfile::tempdir().unwrap();
    let upstreams = upstream("slow", &slow, Some((2, 1.0))) + &upstream("quick", &quick, None);
    configure(dir.path(), 4, &upstreams);
    let server = RunningServer::start(dir.path(), "warn", None);
    let caller = Caller::of(&server.address);
    let waiting = batch(&caller, "slow", 50, EACH).await;
    let passing = batch(&caller, "quick", 10, EACH).await;
    let all = async {
        for id in &passing {
            assert_eq!(caller.wait_until_ended(id).await, "succeeded");
        }
    };
    timeout(SOON, all).await.expect("calls to the quick one wait for the slow one");
    let (slow, quick) = (slow.stats(), quick.stats());
    println!("when the quick one was done: {slow:?}, {quick:?}");
    assert_eq!((quick.calls, quick.duplicates), (EACH as u64, 0));
    // At one a second this is far away from the two hundred that were handed in first.
    assert!((1..EACH as u64 / 4).contains(&slow.calls), "{slow:?}");
    assert_eq!((slow.throttled, slow.calls), (0, slow.writes), "{slow:?}");
    let why = caller.get(&format!("/v1/operations/{}/why", waiting[EACH - 1])).await;
    assert!(why.contains("slow/requests"), "{why}");
}
