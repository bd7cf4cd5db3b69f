//! Generations whose server is killed again and again: each one ends, every bill is in
//! the ledger, and no slot is leaked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tidegate_fixture::redis::RedisServer;
use tidegate_sim::rng::SeededRng;
use tokio::time::{sleep, timeout};

use super::scale::Scale;
use super::studio::{COST, MODELS, Studio};
use crate::ALONE;
use crate::caller::Caller;
use crate::child::RunningServer;

/// Kills, with `./test`.
const KILLS: usize = 3;
/// From one request that was not served to the next.
const PAUSE: Duration = Duration::from_millis(20);

/// A generation that was created, and how it ended.
pub(super) struct EndedGeneration {
    id: String,
    model: &'static str,
    prompt: String,
    status: String,
}

/// Creates a generation, across restarts, once: its key is the same in every request.
async fn create(caller: &Caller, model: &str, prompt: &str) -> String {
    let (user, _) = prompt.split_once('-').unwrap();
    let body = json!({ "model_id": model, "input": { "prompt": prompt }, "user_id": user });
    loop {
        let key = [("idempotency-key", prompt)];
        match caller.call(Method::POST, "/api/generations/create", &key, Some(&body)).await {
            Some((200 | 202, answer)) => {
                let answer: Value = serde_json::from_str(&answer).unwrap();
                return answer["id"].as_str().unwrap().to_owned();
            }
            None | Some((503, _)) => sleep(PAUSE).await,
            // The key is blocked until the lease of the process that died has run out.
            Some((409, answer)) if answer.contains("IDEMPOTENCY_KEY_PROCESSING") => sleep(PAUSE).await,
            Some((status, answer)) => panic!("{prompt}: {status} {answer}"),
        }
    }
}

/// Waits until a generation has ended, across restarts.
async fn wait_until_ended(caller: &Caller, id: &str, pause: Duration) -> String {
    let path = format!("/api/generations/{id}");
    loop {
        match caller.call(Method::GET, &path, &[], None).await {
            Some((200, answer)) => {
                let answer: Value = serde_json::from_str(&answer).unwrap();
                let status = answer["status"].as_str().unwrap();
                if matches!(status, "completed" | "failed" | "canceled") {
                    return status.to_owned();
                }
            }
            None | Some((503, _)) => {}
            Some((status, answer)) => panic!("{id} was created and is lost: {status} {answer}"),
        }
        sleep(pause).await;
    }
}

/// Creates generations until it is told to stop, and waits for the end of all.
async fn load(caller: Caller, user: usize, scale: Scale, stop: Arc<AtomicBool>) -> Vec<EndedGeneration> {
    let (mut created, mut ended) = (Vec::new(), Vec::new());
    loop {
        let more = !stop.load(Ordering::Relaxed) || created.len() < scale.least;
        if more && created.len() < ended.len() + scale.ahead {
            let (prompt, model) = (format!("u{user}-{}", created.len()), MODELS[created.len() % 2]);
            let id = create(&caller, model, &prompt).await;
            created.push((id, model, prompt));
        } else if let Some((id, model, prompt)) = created.get(ended.len()).cloned() {
            let status = wait_until_ended(&caller, &id, scale.pause).await;
            ended.push(EndedGeneration { id, model, prompt, status });
        } else {
            return ended;
        }
    }
}

/// Makes the load, calls `kill` again and again, and waits until every generation has ended.
pub(super) async fn load_and_kill(
    studio: &Studio,
    caller: &Caller,
    chance: &mut SeededRng,
    mut kill: impl FnMut(usize),
) -> Vec<EndedGeneration> {
    let (scale, stop) = (&studio.scale, Arc::new(AtomicBool::new(false)));
    let users: Vec<_> = (0..scale.users)
        .map(|user| tokio::spawn(load(caller.clone(), user, scale.clone(), Arc::clone(&stop))))
        .collect();
    let kills = async {
        for number in 0..scale.kills {
            sleep(scale.load_time(chance)).await;
            tokio::task::block_in_place(|| kill(number));
        }
        stop.store(true, Ordering::Relaxed);
    };
    let all = async {
        tokio::join!(kills, studio.outage());
        let mut ended = Vec::new();
        for user in users {
            ended.extend(user.await.unwrap());
        }
        ended
    };
    timeout(scale.time, all).await.expect("every generation ends")
}

/// Every attempt in the ledger, by generation.
pub(super) async fn ledger(caller: &Caller) -> BTreeMap<String, Vec<Value>> {
    let (mut entries, mut cursor) = (BTreeMap::<_, Vec<_>>::new(), String::new());
    loop {
        let page = caller.get(&format!("/v1/ledger?limit=100&cursor={cursor}")).await;
        let page: Value = serde_json::from_str(&page).unwrap();
        for entry in page["entries"].as_array().unwrap() {
            let generation = entry["generation"].as_str().unwrap().to_owned();
            entries.entry(generation).or_default().push(entry.clone());
        }
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return entries,
        }
    }
}

/// Kills the server under load. Then nothing is lost, billed without a trace, or held.
async fn killed_under_load(store: &str) {
    let mut chance: SeededRng = crate::cluster::chance("the kills of generations");
    let studio = Studio::new(store, chance.next(), Scale::new(KILLS)).await;
    let mut server = Some(studio.serve());
    let caller = Caller::of(&studio.address);
    let ended = load_and_kill(&studio, &caller, &mut chance, |_| {
        let _ = server.take().map(RunningServer::kill);
        server = Some(studio.serve());
    })
    .await;
    check_bills(&studio, &ended, &ledger(&caller).await);
    check_slots(&studio, &caller).await;
}

/// Compares what the providers billed with what the ledger shows.
pub(super) fn check_bills(studio: &Studio, ended: &[EndedGeneration], ledger: &BTreeMap<String, Vec<Value>>) {
    let mut bill = studio.bill();
    let (mut completed, mut doubled) = (0, 0);
    for one in ended {
        let billed = bill.remove(&one.prompt).unwrap_or_default();
        let entries = ledger.get(&one.id).map_or(&[][..], Vec::as_slice);
        let told = format!("{} {} {}: {billed:?} {entries:?}", one.prompt, one.model, one.status);
        for name in studio.sims.keys() {
            let posts = billed.iter().filter(|(provider, _)| provider == name).count();
            let of_provider = || entries.iter().filter(|entry| entry["provider"] == *name);
            assert!(posts <= of_provider().count(), "{name} billed what the ledger does not show: {told}");
            let priced = of_provider().filter(|entry| entry["cost"] == COST).count();
            assert!(posts <= priced, "{name} billed what the ledger shows without its cost: {told}");
        }
        for entry in entries {
            assert_ne!(entry["outcome"], "awaiting", "{told}");
            if let Some(id) = entry["external_id"].as_str() {
                let is_ours = |(name, job): &(&str, String)| entry["provider"] == *name && job == id;
                assert!(billed.iter().any(is_ours), "{id} is a job of another generation: {told}");
            }
        }
        let in_doubt = entries.iter().filter(|entry| entry["may_be_billed_twice"] == true).count();
        assert!(billed.len() < 2 || billed.len() <= in_doubt, "billed twice, and not shown: {told}");
        assert!(billed.len() < 2 || one.model == MODELS[1], "it was to wait, and was billed twice: {told}");
        let succeeded = entries.iter().filter(|entry| entry["outcome"] == "succeeded").count();
        assert_eq!(succeeded, usize::from(one.status == "completed"), "{told}");
        completed += succeeded;
        doubled += usize::from(billed.len() > 1);
    }
    assert!(bill.is_empty(), "billed, and never created: {bill:?}");
    let attempts = ledger.values().map(Vec::len).sum::<usize>();
    let all = ended.len();
    println!("{all} generations, {completed} completed, {attempts} attempts, {doubled} billed twice");
    assert_eq!(ledger.len(), all, "each one has been attempted");
    // A slow machine that is killed as soon as it serves completes few of them.
    let least = studio.scale.users * studio.scale.least;
    assert!(all >= least && completed * 5 > all, "{completed} of {all} were completed");
}

/// Checks that no provider has a slot in use, or someone who waits for one.
pub(super) async fn check_slots(studio: &Studio, caller: &Caller) {
    let free = json!(studio.scale.slots);
    let all: Value = serde_json::from_str(&caller.get("/v1/providers").await).unwrap();
    for provider in all["providers"].as_array().unwrap() {
        let slots = &provider["slots"];
        assert_eq!((&slots["in_use"], &slots["free"]), (&json!(0), &free), "{provider}");
        assert_eq!(provider["waiting"], 0, "{provider}");
    }
}

/// DSP-3, DSP-10, DSP-18: the server is killed again and again while four unreliable providers work
/// for it. Every generation that was created ends, every job that a provider billed is in the
/// ledger, and every slot is free at the end.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_3_dsp_10_dsp_18_the_server_is_killed_under_generations() {
    let _alone = ALONE.lock().await;
    killed_under_load("").await;
}

/// DSP-3, DSP-10, DSP-18: the same on Redis.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_3_dsp_10_dsp_18_the_server_is_killed_under_generations_on_redis() {
    let _alone = ALONE.lock().await;
    let redis = RedisServer::start();
    killed_under_load(&redis.url()).await;
}
