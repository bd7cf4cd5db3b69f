//! Generations that worker processes submit. The server has no key of a provider; the workers have,
//! and are killed: each generation ends, every bill is in the ledger, and no slot is leaked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::kills::{LOAD_MS, USERS, WHOLE_TEST, check_bills, check_slots, ledger, load};
use super::studio::Studio;
use crate::ALONE;
use crate::caller::Caller;

/// Worker processes.
const PROCESSES: usize = 2;
/// How often one of them is killed, and how often with `./test --long`.
const KILLS: usize = 2;
const KILLS_LONG: usize = 50;
/// How much longer a test may take for each kill.
const TIME_PER_KILL: Duration = Duration::from_secs(5);

/// DSP-17, DSP-3, DSP-10, DSP-18: two worker processes submit, poll and copy for a server that has
/// no key. Each is killed in the middle of its work and another takes its place. Every generation
/// ends, what was billed is in the ledger, and every slot is free at the end.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_17_dsp_3_dsp_10_dsp_18_a_worker_is_killed_under_generations() {
    let _alone = ALONE.lock().await;
    let kills = if std::env::var_os("TIDEGATE_SEED").is_some() { KILLS_LONG } else { KILLS };
    let mut chance = crate::cluster::chance("the kills of workers with generations");
    let studio = Studio::with_workers(chance.next()).await;
    let _server = studio.serve();
    let mut workers: Vec<_> = (0..PROCESSES).map(|_| studio.work()).collect();
    let (caller, stop) = (Caller::of(&studio.address), Arc::new(AtomicBool::new(false)));
    let users: Vec<_> =
        (0..USERS).map(|user| tokio::spawn(load(caller.clone(), user, Arc::clone(&stop)))).collect();
    let all = async {
        for kill in 0..kills {
            let wait = LOAD_MS.start + chance.next() % (LOAD_MS.end - LOAD_MS.start);
            sleep(Duration::from_millis(wait)).await;
            // The one that it replaces is killed.
            workers[kill % PROCESSES] = studio.work();
        }
        stop.store(true, Ordering::Relaxed);
        let mut ended = Vec::new();
        for user in users {
            ended.extend(user.await.unwrap());
        }
        ended
    };
    let time = WHOLE_TEST + TIME_PER_KILL * u32::try_from(kills).unwrap();
    let ended = timeout(time, all).await.expect("every generation ends");
    check_bills(&studio, &ended, &ledger(&caller).await);
    check_slots(&caller).await;
}
