//! The brake: whatever goes wrong, it never gets an address banned.

use std::time::Duration;

use tidegate_core::{FaultClass, State};
use tokio::time::Instant;

use crate::discord::{GUILD, LONG, SimulatedDiscord, call_of, limit, memory, open, submit, wide};

/// LIM-25: two bots behind one address that are refused again and again, with many slow calls in
/// flight, stay below the ceiling together: calls that would exceed it wait.
#[tokio::test(start_paused = true)]
async fn lim_25_the_brake_stops_before_the_ban() {
    let share = wide().with_invalid_max(95 / 2);
    let discord = SimulatedDiscord::with(
        3_000,
        &[("invalid", 100, 600_000), ("routes", 1_000, 1_000)],
        &[("ann", share), ("ben", share)],
    );
    let engine = open(&memory(), &discord).await;
    // Another bot's message: no one else may edit it.
    let channel = discord.channel();
    let message = discord.by_hand("POST", &format!("/channels/{channel}/messages"), r#"{"content":"mine"}"#);
    let path = format!("/channels/{channel}/messages/{}", message["id"].as_str().unwrap());
    let wrong = |n: usize| {
        let bot = if n.is_multiple_of(2) { "ann" } else { "ben" };
        call_of(bot, &format!("g{n}"), "PATCH", &path, r#"{"content":"ours"}"#)
    };
    let start = Instant::now();
    let ids = submit(&engine, (0..300).map(wrong).collect()).await;
    for id in &ids {
        let view = engine.wait(*id, LONG).await.unwrap();
        assert_eq!(view.fault.map(|fault| fault.class), Some(FaultClass::Forbidden));
    }
    let stats = discord.stats();
    assert_eq!((stats.invalid, stats.bans), (300, 0));
    let mut times: Vec<_> = discord.arrived.lock().unwrap().iter().map(|(at, _)| *at).collect();
    times.sort_unstable();
    let ten_minutes = Duration::from_secs(600);
    let most = times
        .iter()
        .map(|from| times.iter().filter(|at| **at >= *from && **at - *from < ten_minutes).count());
    assert!(most.max().unwrap() <= 95);
    // And they are not stopped for good: about 95 of them in any ten minutes.
    assert!(start.elapsed() < Duration::from_secs(3_600), "{:?}", start.elapsed());
}

/// LIM-25: calls that are not refused do not use it up.
#[tokio::test(start_paused = true)]
async fn lim_25_good_calls_are_not_braked() {
    let few = wide().with_invalid_max(20);
    let discord = SimulatedDiscord::with(50, &[], &[("ann", few)]);
    let engine = open(&memory(), &discord).await;
    let before = limit(&engine, "ann/invalid").await.level;
    let look = |n: u64| call_of("ann", &format!("g{n}"), "GET", &format!("/guilds/{}", GUILD + n), "");
    let start = Instant::now();
    let ids = submit(&engine, (0..200).map(look).collect()).await;
    for id in &ids {
        assert_eq!(engine.wait(*id, LONG).await.unwrap().state, State::Succeeded);
    }
    assert_eq!(limit(&engine, "ann/invalid").await.level, before);
    assert!(start.elapsed() < Duration::from_secs(7), "{:?}", start.elapsed());
}

/// LIM-25, OPS-10: an unknown token is not tried over and over: the call fails with that reason,
/// and the others wait.
#[tokio::test(start_paused = true)]
async fn lim_25_an_unknown_token_stops_everything() {
    let discord = SimulatedDiscord::with(50, &[], &[("nobody", wide())]);
    let engine = open(&memory(), &discord).await;
    let look = |n: u64| call_of("nobody", &format!("g{n}"), "GET", &format!("/guilds/{}", GUILD + n), "");
    let first = submit(&engine, vec![look(0)]).await[0];
    let view = engine.wait(first, LONG).await.unwrap();
    let fault = view.fault.unwrap();
    assert_eq!((view.state, view.attempt, fault.class), (State::Failed, 1, FaultClass::Forbidden));
    assert!(fault.message.contains("nothing is sent with this token for 15 minutes"), "{fault}");
    let start = Instant::now();
    let ids = submit(&engine, (1..50).map(look).collect()).await;
    tokio::time::sleep(Duration::from_secs(14 * 60)).await;
    assert_eq!(discord.stats().all.calls, 1);
    engine.wait(ids[0], LONG).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(15 * 60));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(discord.stats().all.calls, 2, "one tries for all");
}
