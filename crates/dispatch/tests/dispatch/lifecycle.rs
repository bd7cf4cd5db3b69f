//! A generation from its creation to its end: shown, listed, followed, canceled; within the limits
//! of its user.

use std::time::Duration;

use serde_json::json;
use tidegate_dispatch::{
    DispatchErrorKind, GenerationQuery, GenerationStatus, NewGeneration, ResultFile, UserLimits,
};
use tidegate_sim::{Provider as Simulated, ProviderSimOptions};

use crate::world::{World, fast, input, slow};

/// DSP-1: a generation is created once for each key, shown while it runs and when it is completed,
/// with its picture in our own storage.
#[tokio::test]
async fn dsp_1_a_generation_is_created_and_shown() {
    let world = World::start(vec![fast(Simulated::Replicate)], |config| {
        config.models[0].input_schema = Some(json!({
            "type": "object", "required": ["prompt"], "properties": { "prompt": { "type": "string" } },
        }));
    })
    .await;
    let mut new = NewGeneration::new("ann", "flux", input("a cat"));
    new.idempotency_key = Some("k-1".into());
    let created = world.generations.create(&new).await.unwrap();
    assert!(!created.deduplicated);
    let again = world.generations.create(&new).await.unwrap();
    assert_eq!((again.generation.id, again.deduplicated), (created.generation.id, true));
    let mut of_another = new.clone();
    of_another.user = "ben".into();
    let of_another = world.generations.create(&of_another).await.unwrap();
    assert!(!of_another.deduplicated, "a key belongs to its user");
    new.input = input("a dog");
    let conflict = world.generations.create(&new).await.unwrap_err();
    assert_eq!(conflict.kind, DispatchErrorKind::KeyConflict);
    let done = world.end(created.generation.id).await;
    assert_eq!((done.status, done.provider.as_deref()), (GenerationStatus::Completed, Some("replicate")));
    let [ResultFile { key, content_type, bytes }] = &done.files[..] else { panic!("{done:?}") };
    assert_eq!((key.as_str(), content_type.as_str()), (&*format!("{}/0.png", done.id), "image/png"));
    let file = world.storage.get(key).await.unwrap().unwrap();
    assert_eq!((file.bytes.len() as u64, &file.bytes[..4]), (*bytes, &b"\x89PNG"[..]));
    assert_eq!((done.user.as_str(), done.model.as_str(), done.input), ("ann", "flux", input("a cat")));
}

/// DSP-1: what is wrong with a request is named by its field, and nothing is created.
#[tokio::test]
async fn dsp_1_wrong_requests_are_refused_by_field() {
    let world = World::start(vec![fast(Simulated::Fal)], |config| {
        config.models[0].input_schema = Some(json!({
            "type": "object", "properties": { "seed": { "type": "integer" } },
        }));
    })
    .await;
    let table = [
        (
            NewGeneration::new("ann", "flux", json!({ "seed": "x" })),
            DispatchErrorKind::InvalidInput,
            "input.seed",
        ),
        (NewGeneration::new("ann", "flux", json!([])), DispatchErrorKind::InvalidInput, "input"),
        (NewGeneration::new("ann", "sora", input("a")), DispatchErrorKind::UnknownModel, "model"),
        (NewGeneration::new("", "flux", input("a")), DispatchErrorKind::Invalid, "user"),
    ];
    for (new, kind, field) in table {
        let error = world.generations.create(&new).await.unwrap_err();
        assert_eq!((error.kind, error.field.as_deref()), (kind, Some(field)), "{error}");
    }
    let page = world.generations.list(&GenerationQuery { limit: 9, ..GenerationQuery::default() }).await;
    assert_eq!(page.unwrap().generations, []);
}

/// DSP-1: a user's own generations are listed in pages, newest first, by status if wanted.
#[tokio::test]
async fn dsp_1_a_user_pages_through_their_own() {
    let world = World::start(vec![fast(Simulated::Replicate)], |_| ()).await;
    let mut own = Vec::new();
    for number in 0..5 {
        own.push(world.create_for("ann", &format!("cat {number}")).await);
        world.create_for("ben", &format!("dog {number}")).await;
    }
    for id in &own {
        world.end(*id).await;
    }
    let mut query = GenerationQuery { user: Some("ann".into()), limit: 2, ..GenerationQuery::default() };
    let mut listed = Vec::new();
    loop {
        let page = world.generations.list(&query).await.unwrap();
        assert!(page.generations.iter().all(|one| one.user == "ann" && one.model == "flux"));
        listed.extend(page.generations.iter().map(|generation| generation.id));
        query.before = page.next;
        if page.next.is_none() {
            break;
        }
    }
    own.reverse();
    assert_eq!(listed, own);
    let failed =
        GenerationQuery { status: Some(GenerationStatus::Failed), before: None, limit: 9, ..query.clone() };
    assert_eq!(world.generations.list(&failed).await.unwrap().generations, []);
    let completed = GenerationQuery { status: Some(GenerationStatus::Completed), ..failed };
    assert_eq!(world.generations.list(&completed).await.unwrap().generations.len(), 5);
}

/// DSP-1: a queued generation is canceled at once; one at a provider is canceled there too, and its
/// slot is free. What has ended stays as it is.
#[tokio::test]
async fn dsp_1_a_cancel_is_passed_on() {
    for simulated in [Simulated::Replicate, Simulated::Fal] {
        let world =
            World::start(vec![slow(simulated)], |config| config.providers[0].max_concurrent = Some(1)).await;
        let (first, second) = (world.create("a cat").await, world.create("a dog").await);
        world.until(first, |one| one.processing_since.is_some()).await;
        let canceled = world.generations.cancel(second).await.unwrap();
        assert_eq!(canceled.status, GenerationStatus::Canceled);
        let third = world.create("a cow").await;
        world.generations.cancel(first).await.unwrap();
        assert_eq!(world.end(first).await.status, GenerationStatus::Canceled);
        assert_eq!(world.sims[0].stats().all.objects.get("canceled"), Some(&1), "{simulated:?}");
        world.until(third, |one| one.status == GenerationStatus::Processing).await;
        let late = world.generations.cancel(first).await.unwrap_err();
        assert_eq!(late.kind, DispatchErrorKind::NotNow);
    }
}

/// DSP-1: a cancel during the submit waits for its response, and is passed on: no job is left
/// behind at the provider.
#[tokio::test]
async fn dsp_1_a_cancel_during_the_submit_is_passed_on() {
    let answers_late =
        ProviderSimOptions { latency: Duration::from_millis(1_500), ..slow(Simulated::Replicate) };
    let world = World::start(vec![answers_late], |_| ()).await;
    let id = world.create("a cat").await;
    world.until(id, |one| one.status == GenerationStatus::Processing).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let canceling = world.generations.cancel(id).await.unwrap();
    assert_eq!((canceling.status, canceling.cancel_requested), (GenerationStatus::Processing, true));
    assert_eq!(world.end(id).await.status, GenerationStatus::Canceled);
    assert_eq!(world.sims[0].stats().all.objects.get("canceled"), Some(&1));
}

/// DSP-1: a user creates so many in a minute, and has so many at once; a repeat of a request is
/// none.
#[tokio::test]
async fn dsp_1_users_have_limits() {
    let rate = UserLimits { per_minute: Some(2), max_active: None };
    let world = World::start(vec![fast(Simulated::Fal)], |config| config.per_user = rate).await;
    let mut new = NewGeneration::new("ann", "flux", input("a cat"));
    new.idempotency_key = Some("k".into());
    for _ in 0..5 {
        world.generations.create(&new).await.unwrap();
    }
    world.create("a dog").await;
    let refused = world.generations.create(&NewGeneration::new("ann", "flux", input("a cow"))).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, DispatchErrorKind::TooFast);
    assert!(refused.retry_after.is_some_and(|wait| wait > Duration::from_secs(20)), "{refused:?}");
    world.create_for("ben", "a cow").await;
    let active = UserLimits { per_minute: None, max_active: Some(2) };
    let world = World::start(vec![slow(Simulated::Fal)], |config| config.per_user = active).await;
    let first = world.create("a cat").await;
    world.create("a dog").await;
    let new = NewGeneration::new("ann", "flux", input("a cow"));
    let refused = world.generations.create(&new).await.unwrap_err();
    assert_eq!(refused.kind, DispatchErrorKind::TooManyActive);
    world.until(first, |one| one.processing_since.is_some()).await;
    world.generations.cancel(first).await.unwrap();
    world.end(first).await;
    world.generations.create(&new).await.unwrap();
}

/// DSP-1: creations that come at the same time do not exceed the limit of their user together, and
/// a repeat of one of them is no further generation.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_1_creations_at_once_do_not_exceed_the_limit_of_a_user() {
    let active = UserLimits { per_minute: None, max_active: Some(3) };
    let world = World::start(vec![slow(Simulated::Fal)], |config| config.per_user = active).await;
    let creations: Vec<_> = (0..24)
        .map(|n| {
            let generations = world.generations.clone();
            let mut new = NewGeneration::new("ann", "flux", input(&format!("cat {}", n % 12)));
            new.idempotency_key = Some(format!("k{}", n % 12));
            tokio::spawn(async move { generations.create(&new).await })
        })
        .collect();
    let mut created = std::collections::BTreeSet::new();
    for creation in creations {
        match creation.await.unwrap() {
            Ok(one) => drop(created.insert(one.generation.id)),
            Err(error) => assert_eq!(error.kind, DispatchErrorKind::TooManyActive, "{error:?}"),
        }
    }
    assert_eq!(created.len(), 3);
    world.create_for("ben", "a cow").await;
}

/// DSP-2: each status of a generation is pushed in order to who listens, and its times are kept.
#[tokio::test]
async fn dsp_2_every_status_is_pushed_and_timed() {
    let world = World::start(vec![fast(Simulated::Higgsfield)], |_| ()).await;
    let mut changes = world.generations.changes(None);
    let id = world.create("a cat").await;
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|(status, _): &(GenerationStatus, _)| status.is_ended()) {
        let change = changes.next().await.unwrap();
        assert_eq!((change.id, change.user.as_deref()), (id, Some("ann")));
        seen.push((change.status, change.at));
    }
    let statuses: Vec<&str> = seen.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(statuses, ["queued", "processing", "completed"]);
    assert!(seen.is_sorted_by_key(|(_, at)| *at));
    let generation = world.get(id).await;
    let since = generation.processing_since.unwrap();
    assert!(generation.created_at <= since && since <= generation.finished_at.unwrap());
}
