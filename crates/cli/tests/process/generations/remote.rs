//! Generations that worker processes submit. The server has no key of a provider; the workers have,
//! and are killed: each generation ends, every bill is in the ledger, and no slot is leaked.

use super::kills::{check_bills, check_slots, ledger, load_and_kill};
use super::scale::Scale;
use super::studio::Studio;
use crate::ALONE;
use crate::caller::Caller;

/// Worker processes.
const PROCESSES: usize = 2;
/// How often one of them is killed, with `./test`.
const KILLS: usize = 2;

/// DSP-17, DSP-3, DSP-10, DSP-18: two worker processes submit, poll and copy for a server that has
/// no key. Each is killed in the middle of its work and another takes its place. Every generation
/// ends, what was billed is in the ledger, and every slot is free at the end.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_17_dsp_3_dsp_10_dsp_18_a_worker_is_killed_under_generations() {
    let _alone = ALONE.lock().await;
    let mut chance = crate::cluster::chance("the kills of workers with generations");
    let studio = Studio::with_workers(chance.next(), Scale::new(KILLS)).await;
    let _server = studio.serve();
    let mut workers: Vec<_> = (0..PROCESSES).map(|_| studio.work()).collect();
    let caller = Caller::of(&studio.address);
    // The one that it replaces is killed.
    let kill = |number: usize| workers[number % PROCESSES] = studio.work();
    let ended = load_and_kill(&studio, &caller, &mut chance, kill).await;
    check_bills(&studio, &ended, &ledger(&caller).await);
    check_slots(&studio, &caller).await;
}
