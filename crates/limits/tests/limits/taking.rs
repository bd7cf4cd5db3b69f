//! One request, one response: granted with what remains, or the time to wait.

use tidegate_limits::{Error, SharedBucket};

use crate::world::{bucket, expect_wait, ms, store};

/// LIM-5: granted with what remains, or the exact time to wait.
#[tokio::test(start_paused = true)]
async fn lim_5_granted_or_told_when() {
    let store = store();
    let shop = bucket(&store, "shop", 4.0, 2.0);
    let grant = shop.try_take(2.5).await.unwrap().granted().unwrap();
    assert_eq!((grant.remaining(), grant.reserved(), grant.bucket()), (1.5, 2.5, "shop"));
    let wait = expect_wait(shop.try_take(3).await.unwrap());
    assert_eq!((wait.delay, wait.remaining), (ms(750), vec![1.5]));
    tokio::time::advance(ms(749)).await;
    assert_eq!(expect_wait(shop.try_take(3).await.unwrap()).delay, ms(1));
    tokio::time::advance(ms(1)).await;
    assert!(shop.try_take(3).await.unwrap().granted().is_some());
    assert_eq!(shop.level().await.unwrap(), 0.0);
    assert_eq!(bucket(&store, "new", 4.0, 2.0).level().await.unwrap(), 4.0);
}

/// Unused tokens are returned, excess usage is taken, and never below zero.
#[tokio::test(start_paused = true)]
async fn a_grant_is_settled_with_what_it_cost() {
    let store = store();
    let shop = bucket(&store, "shop", 10.0, 1.0);
    shop.take(6).await.unwrap().settle(1.25).await.unwrap();
    assert_eq!(shop.level().await.unwrap(), 8.75);
    shop.take(1).await.unwrap().settle(3).await.unwrap();
    assert_eq!(shop.level().await.unwrap(), 5.75);
    shop.take(1).await.unwrap().settle(100).await.unwrap();
    assert_eq!(shop.level().await.unwrap(), 0.0);
    assert!(matches!(shop.take(0).await.unwrap().settle(-1).await, Err(Error::Invalid(_))));
}

/// LIM-9: a cost above the capacity is an error with the numbers in it, and no one waits for it.
#[tokio::test(start_paused = true)]
async fn lim_9_what_can_never_be_had_is_an_error() {
    let shop = bucket(&store(), "shop", 4.0, 2.0);
    let error = shop.take(4.5).await.unwrap_err();
    let said = "It costs 4.5 of the bucket \"shop\", which never holds more than 4.";
    assert_eq!(error.to_string(), said);
    assert!(!error.is_unsure());
}

#[tokio::test(start_paused = true)]
async fn figures_and_names_out_of_bounds_are_refused_in_words() {
    let store = store();
    let made = |name: &str, capacity: f64, refill: f64| {
        SharedBucket::new(std::sync::Arc::clone(&store) as _, name, capacity, refill)
            .map_err(|error| error.to_string())
    };
    let long = "x".repeat(256);
    let refused = [
        (made("", 1.0, 1.0), "The name of a bucket is 1 to 255 bytes on one line; this one has 0."),
        (made(&long, 1.0, 1.0), "The name of a bucket is 1 to 255 bytes on one line; this one has 256."),
        (made("a\nb", 1.0, 1.0), "The name of a bucket is 1 to 255 bytes on one line; this one has 3."),
        (
            made("b", 0.0, 1.0),
            "The capacity of the bucket \"b\" is 0, and must be 0.000001 to 1000000000000.",
        ),
        (
            made("b", 1.0, f64::NAN),
            "The refill of the bucket \"b\" is NaN, and must be 0.000001 to 1000000000000.",
        ),
    ];
    for (answer, said) in refused {
        assert_eq!(answer.unwrap_err(), said);
    }
    let cost = made("b", 1.0, 1.0).unwrap().try_take(-2).await.unwrap_err();
    assert_eq!(cost.to_string(), "The cost of the bucket \"b\" is -2, and must be 0 to 1000000000000.");
}
