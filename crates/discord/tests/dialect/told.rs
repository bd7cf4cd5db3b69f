//! A 429 is obeyed by the calls it is about, and by no others.

use std::time::Duration;

use tidegate_core::State;
use tokio::time::Instant;

use crate::discord::{GUILD, LONG, SimulatedDiscord, call, memory, open, submit, succeeded};

/// LIM-12, OPS-21: a global 429 holds every call back until it is over; only calls already in
/// flight get one.
#[tokio::test(start_paused = true)]
async fn lim_12_a_global_429_is_obeyed_by_all() {
    let discord = SimulatedDiscord::new(50, &[]);
    let engine = open(&memory(), &discord).await;
    let look = |n: u64| call(&format!("g{n}"), "GET", &format!("/guilds/{}", GUILD + n), "");
    let ids = submit(&engine, (0..20).map(look).collect()).await;
    succeeded(&engine, &ids).await;
    let (start, until) = (Instant::now(), discord.now().after(Duration::from_secs(30)));
    discord.world().limiter.close(until);
    let ids = submit(&engine, (20..100).map(look).collect()).await;
    assert_eq!(succeeded(&engine, &ids).await, 80);
    let stats = discord.stats();
    assert!((1..=8).contains(&stats.all.throttled), "{stats:?}");
    let arrived = discord.arrived.lock().unwrap();
    let early = |at: &Instant| *at >= start + Duration::from_secs(1) && *at < start + Duration::from_secs(30);
    assert!(!arrived.iter().any(|(at, _)| early(at)), "a call arrived while everything was closed");
    assert!(start.elapsed() < Duration::from_secs(36), "{:?}", start.elapsed());
}

/// LIM-12: a limit that others have spent closes its route and nothing else, and does not count
/// against the address.
#[tokio::test(start_paused = true)]
async fn lim_12_a_shared_429_closes_its_route_only() {
    let discord = SimulatedDiscord::new(50, &[]);
    let engine = open(&memory(), &discord).await;
    let until = discord.now().after(Duration::from_secs(60));
    discord.world().limiter.exhaust_shared("channel-create", until);
    let path = format!("/guilds/{GUILD}/channels");
    let start = Instant::now();
    let ids = submit(
        &engine,
        vec![call("a", "POST", &path, r#"{"name":"a"}"#), call("b", "POST", &path, r#"{"name":"b"}"#)],
    )
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(discord.stats().throttled_by_scope["shared"], 1, "the route is closed by now");
    let other = submit(&engine, vec![call("c", "GET", &path, "")]).await;
    assert_eq!(succeeded(&engine, &other).await, 1);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(succeeded(&engine, &ids).await, 2);
    let stats = discord.stats();
    assert_eq!((stats.throttled_by_scope["shared"], stats.invalid), (1, 0));
    assert!((60.0..63.0).contains(&start.elapsed().as_secs_f64()), "{:?}", start.elapsed());
}

/// LIM-12, OPS-21: a hidden limit that is stricter than known is obeyed once it responds with 429,
/// and other edits continue meanwhile.
#[tokio::test(start_paused = true)]
async fn lim_12_a_hidden_429_closes_what_it_is_about() {
    let discord = SimulatedDiscord::new(50, &[("renames", 1, 600_000)]);
    let engine = open(&memory(), &discord).await;
    let path = format!("/channels/{}", discord.channel());
    let start = Instant::now();
    let ids = submit(
        &engine,
        vec![call("a", "PATCH", &path, r#"{"name":"a"}"#), call("b", "PATCH", &path, r#"{"name":"b"}"#)],
    )
    .await;
    assert_eq!(engine.wait(ids[0], LONG).await.unwrap().state, State::Succeeded);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let other = submit(&engine, vec![call("c", "PATCH", &path, r#"{"nsfw":true}"#)]).await;
    assert_eq!(succeeded(&engine, &other).await, 1);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_eq!(succeeded(&engine, &ids).await, 2);
    assert!(start.elapsed() >= Duration::from_secs(600));
    assert_eq!(discord.stats().throttled_by_scope["hidden"], 1);
}

/// LIM-12, OPS-21: what a 429 says replaces what was assumed: renames that are refused for five
/// seconds wait for five seconds, not for the ten minutes that no one promised.
#[tokio::test(start_paused = true)]
async fn lim_12_a_hidden_429_is_believed() {
    let discord = SimulatedDiscord::new(50, &[("renames", 1, 5_000)]);
    let engine = open(&memory(), &discord).await;
    let path = format!("/channels/{}", discord.channel());
    let rename = |name: &str| call(name, "PATCH", &path, &format!(r#"{{"name":"{name}"}}"#));
    let start = Instant::now();
    let ids = submit(&engine, ["a", "b", "c"].map(rename).into()).await;
    assert_eq!(succeeded(&engine, &ids).await, 3);
    assert!((10..60).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

/// LIM-12, LIM-25: a ban of the address closes everything for as long as it says.
#[tokio::test(start_paused = true)]
async fn lim_25_a_ban_is_waited_out() {
    let discord = SimulatedDiscord::new(50, &[("invalid", 1, 1_000)]);
    discord.world().limits.ban_ms = 3_600_000;
    let engine = open(&memory(), &discord).await;
    // The first refusal causes the ban here.
    let until = discord.now().after(Duration::from_secs(1));
    discord.world().limiter.close(until);
    let start = Instant::now();
    let look = |n: u64| call(&format!("g{n}"), "GET", &format!("/guilds/{}", GUILD + n), "");
    let first = submit(&engine, vec![look(0)]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let ids = submit(&engine, (1..200).map(look).collect()).await;
    assert_eq!(succeeded(&engine, &ids).await + succeeded(&engine, &first).await, 200);
    let stats = discord.stats();
    assert_eq!(stats.bans, 1);
    assert!(stats.banned <= 2, "{}", stats.banned);
    assert!(start.elapsed() >= Duration::from_secs(3_600));
}
