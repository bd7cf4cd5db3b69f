//! Several buckets in one step.

use std::sync::Arc;

use tidegate_limits::{Grant, SharedBucket, take_all, take_all_within, try_take_all};
use tokio::time::Instant;

use crate::world::{bucket, expect_wait, ms, store};

/// LIM-7: all or nothing; having to wait takes from none and returns the longest wait; each is
/// settled by itself.
#[tokio::test(start_paused = true)]
async fn lim_7_all_or_nothing() {
    let store = store();
    let (route, global) = (bucket(&store, "route", 2.0, 1.0), bucket(&store, "global", 10.0, 10.0));
    let grants = try_take_all(&[(&route, 2.into()), (&global, 4.5.into())]).await.unwrap().granted().unwrap();
    assert_eq!(grants.iter().map(Grant::remaining).collect::<Vec<_>>(), [0.0, 5.5]);
    let wait = expect_wait(try_take_all(&[(&route, 2.into()), (&global, 6.into())]).await.unwrap());
    assert_eq!((wait.delay, wait.remaining), (ms(2_000), vec![0.0, 5.5]));
    for grant in grants {
        grant.settle(1).await.unwrap();
    }
    assert_eq!((route.level().await.unwrap(), global.level().await.unwrap()), (1.0, 9.0));
}

/// LIM-7: a waiter for several buckets gets all of them when the last is available.
#[tokio::test(start_paused = true)]
async fn lim_7_waits_for_the_longest() {
    let store = store();
    let (route, global) = (bucket(&store, "route", 1.0, 1.0), bucket(&store, "global", 10.0, 10.0));
    let wanted = [(&route, 1.into()), (&global, 1.into())];
    drop(take_all(&wanted).await.unwrap());
    let start = Instant::now();
    assert_eq!(expect_wait(take_all_within(&wanted, ms(900)).await.unwrap()).delay, ms(1_000));
    assert_eq!(start.elapsed(), ms(0));
    let many = (0..5).map(|_| {
        let (route, global) = (route.clone(), global.clone());
        tokio::spawn(async move { drop(take_all(&[(&route, 1.into()), (&global, 1.into())]).await.unwrap()) })
    });
    for task in many.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let waited = start.elapsed();
    assert!((ms(5_000)..ms(5_020)).contains(&waited), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn what_no_step_can_do_is_refused_in_words() {
    let (here, there) = (store(), store());
    let (a, b, other) =
        (bucket(&here, "a", 1.0, 1.0), bucket(&here, "b", 1.0, 1.0), bucket(&there, "c", 1.0, 1.0));
    let nine: Vec<SharedBucket> =
        (0..9).map(|number| bucket(&here, &format!("n{number}"), 1.0, 1.0)).collect();
    let nine: Vec<_> = nine.iter().map(|bucket| (bucket, 1.into())).collect();
    let refused = [
        (try_take_all(&[]).await, "One step takes from 1 to 8 buckets, not 0."),
        (try_take_all(&nine).await, "One step takes from 1 to 8 buckets, not 9."),
        (try_take_all(&[(&a, 1.into()), (&a, 1.into())]).await, "The bucket \"a\" is named twice."),
        (
            try_take_all(&[(&a, 1.into()), (&other, 1.into())]).await,
            "The buckets \"a\" and \"c\" are in different stores and cannot be taken in one step.",
        ),
        (
            try_take_all(&[(&a, 1.into()), (&b, 2.into())]).await,
            "It costs 2 of the bucket \"b\", which never holds more than 1.",
        ),
    ];
    for (answer, said) in refused {
        assert_eq!(answer.unwrap_err().to_string(), said);
    }
    // The same store behind another trait object is the same store.
    let store: Arc<dyn tidegate_store::Store> = here;
    let again = SharedBucket::new(store, "again", 1, 1).unwrap();
    assert!(try_take_all(&[(&a, 1.into()), (&again, 1.into())]).await.unwrap().granted().is_some());
}
