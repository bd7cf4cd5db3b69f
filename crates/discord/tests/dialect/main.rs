//! The engine, the dialect and the simulated Discord together, on a manual clock: limits are
//! learned and kept, and closed limits are not tried again.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on stops")]

mod brake;
mod discord;
mod told;

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_core::State;
use tidegate_core::fact::{LimitShape, LimitSource};
use tidegate_core::operation::MICRO;
use tidegate_discord::DiscordSettings;
use tokio::time::Instant;

use discord::{GUILD, LONG, SimulatedDiscord, call, limit, memory, open, submit, succeeded, wide};

/// LIM-8, OPS-21: on a route whose limit is learned with the first call, nothing is ever refused,
/// and all of the limit is used.
#[tokio::test(start_paused = true)]
async fn ops_21_a_route_is_learned_and_never_overstepped() {
    let discord = SimulatedDiscord::new(50, &[]);
    let engine = open(&memory(), &discord).await;
    let path = format!("/guilds/{GUILD}/roles");
    let create = |n| call(&format!("g{n}"), "POST", &path, r#"{"name":"a","permissions":"0"}"#);
    let start = Instant::now();
    let ids = submit(&engine, (0..60).map(create).collect()).await;
    assert_eq!(succeeded(&engine, &ids).await, 60);
    let (took, stats) = (start.elapsed(), discord.stats());
    assert_eq!((stats.all.throttled, stats.invalid), (0, 0));
    // Ten in ten seconds: the last ten begin after five windows.
    assert!((50.0..51.0).contains(&took.as_secs_f64()), "{took:?}");
    let learned = limit(&engine, &format!("discord/POST /guilds/{{guild}}/roles {GUILD}")).await;
    assert_eq!(learned.source, LimitSource::Learned);
    assert!(matches!(learned.shape, LimitShape::Window { limit, .. } if limit == 10 * MICRO), "{learned:?}");
}

/// LIM-26, OPS-4: within one bucket as many calls run at once as it allows, and the order inside
/// each group is kept.
#[tokio::test(start_paused = true)]
async fn lim_26_a_bucket_is_used_by_many_calls_at_once_in_their_order() {
    // A bot for which the global limit does not matter.
    let large = wide().with_global_per_s(1_000);
    let figures = [("message-create", 20, 1_000), ("global", 1_000, 1_000)];
    let discord = SimulatedDiscord::with(200, &figures, &[("discord", large)]);
    let engine = open(&memory(), &discord).await;
    let path = format!("/channels/{}/messages", discord.channel());
    let say = |n: usize| call(&format!("g{}", n % 50), "POST", &path, &format!(r#"{{"content":"{n}"}}"#));
    let start = Instant::now();
    let ids = submit(&engine, (0..100).map(say).collect()).await;
    assert_eq!(succeeded(&engine, &ids).await, 100);
    let (took, most) = (start.elapsed(), discord.most_at_once.load(Ordering::SeqCst));
    assert_eq!(discord.stats().all.throttled, 0);
    // One after the other they would take 20 s; 20 in a second and a little, about 6.
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert_eq!(most, 20, "as many at once as the bucket allows");
    let arrived = discord.arrived.lock().unwrap().clone();
    let place = |n: usize| arrived.iter().position(|(_, told)| told.contains(&format!("\"{n}\""))).unwrap();
    assert!((0..50).all(|n| place(n) < place(n + 50)));
}

/// OPS-5: of many groups three run at once, or as many as configured, and none waits for the whole
/// queue of another.
#[tokio::test(start_paused = true)]
async fn ops_5_three_groups_of_a_bot_run_at_once() {
    for (settings, most) in [(DiscordSettings::default(), 3), (DiscordSettings::default().with_at_once(7), 7)]
    {
        let discord = SimulatedDiscord::with(1_000, &[], &[("discord", settings)]);
        let engine = open(&memory(), &discord).await;
        let look = |n: u64| call(&format!("g{}", n % 12), "GET", &format!("/guilds/{}", GUILD + n), "");
        let start = Instant::now();
        let ids = submit(&engine, (0..24).map(look).collect()).await;
        assert_eq!(succeeded(&engine, &ids).await, 24);
        assert_eq!(discord.most_at_once.load(Ordering::SeqCst), most);
        let rounds = 24_usize.div_ceil(most) as f64;
        assert!((rounds..rounds + 1.0).contains(&start.elapsed().as_secs_f64()), "{:?}", start.elapsed());
    }
}

/// LIM-7, LIM-14: calls of many routes also take from the global limit, no second of Discord's has
/// too many, and the limit is used.
#[tokio::test(start_paused = true)]
async fn lim_7_the_global_limit_holds_over_all_routes() {
    let discord = SimulatedDiscord::new(80, &[]);
    let engine = open(&memory(), &discord).await;
    let look = |n: u64| call(&format!("g{n}"), "GET", &format!("/guilds/{}", GUILD + n), "");
    let start = Instant::now();
    let ids = submit(&engine, (0..450).map(look).collect()).await;
    assert_eq!(succeeded(&engine, &ids).await, 450);
    assert_eq!(discord.stats().all.throttled, 0);
    assert!((9.0..11.0).contains(&start.elapsed().as_secs_f64()), "{:?}", start.elapsed());
    let mut times: Vec<_> = discord.arrived.lock().unwrap().iter().map(|(at, _)| *at).collect();
    times.sort_unstable();
    let fullest = times
        .iter()
        .map(|from| times.iter().filter(|at| **at >= *from && **at - *from < Duration::from_secs(1)).count());
    assert!(fullest.max().unwrap() <= 50);
}

/// LIM-7, LIM-8: routes of one hash share one count as soon as the hash is known; the hash allows
/// no more than the counts do.
#[tokio::test(start_paused = true)]
async fn lim_7_a_learned_hash_is_shared_by_two_routes() {
    let discord = SimulatedDiscord::new(50, &[]);
    let engine = open(&memory(), &discord).await;
    let path = format!("/channels/{}/permissions/{GUILD}", discord.channel());
    let put = r#"{"type":0,"allow":"0","deny":"1024"}"#;
    let edit = |n: usize| match n % 2 {
        0 => call(&format!("g{n}"), "PUT", &path, put),
        _ => call(&format!("g{n}"), "DELETE", &path, ""),
    };
    let ids = submit(&engine, (0..2).map(edit).collect()).await;
    succeeded(&engine, &ids).await;
    let start = Instant::now();
    let ids = submit(&engine, (2..32).map(edit).collect()).await;
    for id in &ids {
        engine.wait(*id, LONG).await.unwrap();
    }
    assert_eq!(discord.stats().all.throttled, 0, "{:?}", discord.stats().throttled_by_route);
    // 32 in all, ten in fifteen seconds: in the fourth window, and not later.
    assert!((44.0..47.0).contains(&start.elapsed().as_secs_f64()), "{:?}", start.elapsed());
    let shared = engine.limits().await.unwrap().iter().filter(|view| view.name.contains("/bucket ")).count();
    assert_eq!(shared, 1);
}

/// LIM-24, OPS-21: the hidden limit on renames survives a restart: the third rename waits its ten
/// minutes, and other edits do not.
#[tokio::test(start_paused = true)]
async fn lim_24_hidden_limits_survive_a_restart() {
    let (store, discord) = (memory(), SimulatedDiscord::new(50, &[]));
    let engine = open(&store, &discord).await;
    let path = format!("/channels/{}", discord.channel());
    let start = Instant::now();
    let rename = |n: usize| call(&format!("g{n}"), "PATCH", &path, &format!(r#"{{"name":"n{n}"}}"#));
    let ids = submit(&engine, (0..2).map(rename).collect()).await;
    assert_eq!(succeeded(&engine, &ids).await, 2);
    engine.drain().await;
    drop(engine);
    let discord = discord.restarted();
    let engine = open(&store, &discord).await;
    let ids = submit(&engine, vec![rename(3), call("other", "PATCH", &path, r#"{"nsfw":true}"#)]).await;
    assert_eq!(engine.wait(ids[1], LONG).await.unwrap().state, State::Succeeded);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_eq!(engine.wait(ids[0], LONG).await.unwrap().state, State::Succeeded);
    assert!((600.0..620.0).contains(&start.elapsed().as_secs_f64()), "{:?}", start.elapsed());
    assert_eq!(discord.stats().all.throttled, 0);
}
