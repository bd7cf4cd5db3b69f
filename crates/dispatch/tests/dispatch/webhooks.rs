//! Webhooks of all four providers, as they should be and as they should not: lost, early, doubled,
//! late, forged, with a wrong signature, stale, after a cancel and after a failover.

use std::time::Duration;

use http::HeaderValue;
use tidegate::OperationId;
use tidegate_dispatch::{GenerationStatus, UnknownPolicy, WebhookReceipt, WebhookRefusal};
use tidegate_images::WebhookError;
use tidegate_images::webhook::standard::{self, StandardSecret};
use tidegate_sim::providers::signature::WebhookSigner;
use tidegate_sim::providers::webhook::WebhookFaults;
use tidegate_sim::{Provider as Simulated, ProviderSimOptions};
use tidegate_store::{Clock, WallClock};

use crate::world::{ALL, LONG, Message, World, fast};

/// A message that goes wrong on its way.
struct FaultCase {
    name: &'static str,
    faults: WebhookFaults,
    /// How soon the first poll comes: only where the webhook does not do its work.
    poll_after: Duration,
}

const NONE: WebhookFaults = WebhookFaults { lost: 0.0, early: 0.0, doubled: 0.0, late: 0.0, forged: 0.0 };
const SOON: Duration = Duration::from_millis(200);

const CASES: [FaultCase; 5] = [
    FaultCase { name: "lost", faults: WebhookFaults { lost: 1.0, ..NONE }, poll_after: SOON },
    FaultCase { name: "early", faults: WebhookFaults { early: 1.0, ..NONE }, poll_after: LONG },
    FaultCase { name: "doubled", faults: WebhookFaults { doubled: 1.0, ..NONE }, poll_after: LONG },
    FaultCase { name: "late", faults: WebhookFaults { late: 1.0, ..NONE }, poll_after: SOON },
    FaultCase { name: "forged", faults: WebhookFaults { forged: 1.0, ..NONE }, poll_after: LONG },
];

/// DSP-11, DSP-12: whatever happens to the webhook on its way, the generation is completed once: by
/// the message where it does its work, and by a poll otherwise. A forged message changes nothing.
#[tokio::test]
async fn dsp_11_dsp_12_webhooks_go_wrong_and_generations_do_not() {
    let runs = ALL.map(|simulated| {
        tokio::spawn(async move {
            for case in &CASES {
                run(simulated, case).await;
            }
        })
    });
    for run in runs {
        run.await.unwrap();
    }
}

async fn run(simulated: Simulated, case: &FaultCase) {
    let options = ProviderSimOptions {
        webhook_faults: case.faults,
        late_by: Duration::from_millis(100),
        ..fast(simulated)
    };
    let world = World::start(vec![options], |config| {
        config.providers[0].poll_after = Some(case.poll_after);
    })
    .await;
    let name = format!("{simulated:?} {}", case.name);
    // However long the machine takes, a late message is passed on after the end.
    *world.receiver.holds.lock().unwrap() = case.name == "late";
    let id = world.create("a cat").await;
    let done = tokio::time::timeout(Duration::from_secs(10), world.end(id)).await;
    let done = done.unwrap_or_else(|_| panic!("{name}: it does not end"));
    assert_eq!((done.status, world.billed()), (GenerationStatus::Completed, 1), "{name}: {done:?}");
    let expected = match case.name {
        "lost" => 0,
        "doubled" | "forged" => 2,
        _ => 1,
    };
    let messages = world.messages(expected).await;
    assert_eq!(messages.len(), expected, "{name}");
    for (number, message) in messages.iter().enumerate() {
        let result = match message.result.clone() {
            Some(result) => result,
            None => message.deliver(&world.generations).await,
        };
        let is_forged = case.name == "forged" && number == 0;
        match (simulated, result) {
            // The token is right, and no one signs: it only asks for a poll.
            (Simulated::Higgsfield, Ok(_)) => {}
            (_, Err(WebhookRefusal::Refused(WebhookError::Forged))) if is_forged => {}
            (_, Ok(receipt)) if !is_forged => {
                // A repeat may come before the poll has ended the job.
                assert!(case.name != "late" || receipt == WebhookReceipt::Stale, "{name}: {receipt:?}");
            }
            (_, other) => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(world.get(id).await.status, GenerationStatus::Completed, "{name}");
}

/// A world whose webhooks are held, a generation at its provider, and its genuine message.
async fn held(simulated: Simulated) -> (World, OperationId, Message) {
    let world = World::start(vec![fast(simulated), fast(other(simulated))], |_| ()).await;
    *world.receiver.holds.lock().unwrap() = true;
    let id = world.create("a cat").await;
    let message = world.messages(1).await.remove(0);
    (world, id, message)
}

fn other(simulated: Simulated) -> Simulated {
    if simulated == Simulated::Replicate { Simulated::Fal } else { Simulated::Replicate }
}

/// DSP-11, DSP-19: a message with a wrong signature, an old timestamp, another token, another
/// provider's address or another job is refused, and nothing changes; the genuine one completes the
/// generation, and a repeat of it is stale.
#[tokio::test]
async fn dsp_11_dsp_19_only_the_genuine_message_counts() {
    for simulated in ALL {
        let (world, id, genuine) = held(simulated).await;
        world.until(id, |one| one.processing_since.is_some()).await;
        for (name, wrong, refusal) in changed(simulated, &genuine) {
            let result = wrong.deliver(&world.generations).await;
            assert_eq!(result, Err(refusal), "{simulated:?} {name}");
            assert_eq!(world.get(id).await.status, GenerationStatus::Processing, "{simulated:?} {name}");
        }
        let result = genuine.deliver(&world.generations).await;
        assert_eq!(result, Ok(WebhookReceipt::Polling), "{simulated:?}");
        assert_eq!(world.end(id).await.status, GenerationStatus::Completed);
        assert_eq!(genuine.deliver(&world.generations).await, Ok(WebhookReceipt::Stale), "repeated");
        assert_eq!(world.billed(), 1);
    }
}

/// Variants of a genuine message, each with why it is refused.
fn changed(simulated: Simulated, genuine: &Message) -> Vec<(&'static str, Message, WebhookRefusal)> {
    let mut found = Vec::new();
    let mut token = genuine.clone();
    token.token.replace_range(token.token.len() - 1.., if token.token.ends_with('0') { "1" } else { "0" });
    found.push(("another token", token, WebhookRefusal::BadToken));
    let mut elsewhere = genuine.clone();
    elsewhere.provider = if simulated == Simulated::Replicate { "fal".into() } else { "replicate".into() };
    found.push(("another provider", elsewhere, WebhookRefusal::BadToken));
    let mut stranger = genuine.clone();
    stranger.provider = "stranger".into();
    found.push(("no provider", stranger, WebhookRefusal::UnknownProvider));
    if simulated == Simulated::Higgsfield {
        let mut job = genuine.clone();
        job.body = r#"{"request_id":"another","status":"completed"}"#.into();
        found.push(("another job", job, WebhookRefusal::Refused(WebhookError::OtherJob)));
        return found;
    }
    let mut body = genuine.clone();
    body.body = String::from_utf8(body.body.to_vec()).unwrap().replace(':', ": ").into();
    found.push(("changed body", body, WebhookRefusal::Refused(WebhookError::Forged)));
    let time = if simulated == Simulated::Fal { "x-fal-webhook-timestamp" } else { "webhook-timestamp" };
    let mut old = genuine.clone();
    let seconds: u64 = old.headers[time].to_str().unwrap().parse().unwrap();
    old.headers.insert(time, HeaderValue::from(seconds - 301));
    found.push(("stale", old, WebhookRefusal::Refused(WebhookError::Stale)));
    found
}

/// DSP-11: a webhook after a cancel changes nothing, with every provider.
#[tokio::test]
async fn dsp_11_a_webhook_after_a_cancel_changes_nothing() {
    for simulated in ALL {
        let (world, id, message) = held(simulated).await;
        world.until(id, |one| one.processing_since.is_some()).await;
        world.generations.cancel(id).await.unwrap();
        let ended = world.end(id).await;
        assert_eq!(ended.status, GenerationStatus::Canceled, "{simulated:?}");
        let after = message.deliver(&world.generations).await;
        assert_eq!(after, Ok(WebhookReceipt::Stale), "{simulated:?}");
        assert_eq!(world.get(id).await, ended, "{simulated:?}");
    }
}

/// DSP-11: the webhook of an attempt that was given up for the next provider changes nothing.
#[tokio::test]
async fn dsp_11_a_webhook_after_a_failover_changes_nothing() {
    for simulated in ALL {
        let cut = ProviderSimOptions { cut_rate: 1.0, ..fast(simulated) };
        let world = World::start(vec![cut, fast(other(simulated))], |config| {
            config.models[0].on_unknown = UnknownPolicy::Failover;
            config.providers[1].poll_after = Some(SOON);
        })
        .await;
        *world.receiver.holds.lock().unwrap() = true;
        let id = world.create("a cat").await;
        let done = world.end(id).await;
        let next = crate::world::names(other(simulated)).0;
        assert_eq!(done.provider.as_deref(), Some(next), "{simulated:?}");
        let messages = world.messages(2).await;
        let late = messages.iter().find(|message| message.provider != next).unwrap();
        assert_eq!(late.deliver(&world.generations).await, Ok(WebhookReceipt::Stale), "{simulated:?}");
        assert_eq!(world.get(id).await, done);
    }
}

/// DSP-11, DSP-19: a signed message with the files of a success costs no further call: the only
/// ones are the submit and the fetch of the keys. One that nothing proves is confirmed by a poll.
#[tokio::test]
async fn dsp_11_dsp_19_a_signed_result_is_not_asked_for_again() {
    for (simulated, calls) in [(Simulated::Replicate, 2), (Simulated::Fal, 2), (Simulated::Higgsfield, 2)] {
        let (world, id, genuine) = held(simulated).await;
        world.until(id, |one| one.processing_since.is_some()).await;
        assert_eq!(genuine.deliver(&world.generations).await, Ok(WebhookReceipt::Polling));
        let done = world.end(id).await;
        assert_eq!(done.status, GenerationStatus::Completed, "{simulated:?}: {done:?}");
        assert!(world.storage.get(&done.files[0].key).await.unwrap().is_some());
        assert_eq!(world.sims[0].stats().all.calls, calls, "{simulated:?}");
    }
}

/// DSP-11, DSP-20: the address of a file in a signed message may not work any more. Then the
/// provider is asked, and nothing is lost.
#[tokio::test]
async fn dsp_11_dsp_20_a_reported_file_that_is_gone_is_asked_for() {
    let (world, id, genuine) = held(Simulated::Replicate).await;
    world.until(id, |one| one.processing_since.is_some()).await;
    let mut gone: serde_json::Value = serde_json::from_slice(&genuine.body).unwrap();
    gone["output"] = serde_json::json!([format!("http://{}/_files/gone", world.sims[0].addr())]);
    let message = signed(&gone.to_string(), &genuine);
    assert_eq!(message.deliver(&world.generations).await, Ok(WebhookReceipt::Polling));
    let done = world.end(id).await;
    assert_eq!((done.status, world.billed()), (GenerationStatus::Completed, 1), "{done:?}");
    assert_eq!(world.sims[0].stats().all.calls, 3, "the submit, the keys and one poll");
}

/// The message with another body, signed with the provider's own secret.
fn signed(body: &str, genuine: &Message) -> Message {
    let secret = StandardSecret::parse(&WebhookSigner::new(0).secret()).unwrap();
    let headers = standard::sign(&[secret], "msg_1", WallClock.now(), body.as_bytes()).unwrap();
    Message { headers, body: body.to_owned().into(), ..genuine.clone() }
}
