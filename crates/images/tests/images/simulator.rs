//! Every adapter against its simulated provider, over loopback: jobs that are polled, reported,
//! refused, canceled and lost.

use serde_json::{Value, json};
use tidegate_images::webhook::standard::StandardSecret;
use tidegate_images::{
    FaultCause, Heat, JobRequest, JobStatus, LookUpOutcome, OutputFile, PollStep, ProviderJob,
    ReceivedWebhook, Secret, SubmitOutcome, Time, WebhookError, WebhookKeys,
};
use tidegate_sim::providers::signature::WebhookSigner;
use tidegate_sim::providers::webhook::WebhookFaults;
use tidegate_sim::{Provider as Simulated, ProviderSimOptions};

use crate::client::{ALL, Rig, TOKEN, fast};
use crate::documented::{fault, polled, submitted};

fn is_one_picture(files: &[OutputFile]) -> bool {
    matches!(files, [OutputFile::Url(url)] if url.ends_with(".png"))
}

/// DSP-13: with every provider a job is submitted, polled to its end, and has a picture.
#[tokio::test]
async fn dsp_13_jobs_are_submitted_and_polled() {
    for provider in ALL {
        let rig = Rig::start(fast(provider)).await;
        let job = rig.accepted("a cat").await;
        let ended = rig.end(&job).await;
        assert!(
            matches!(&ended, JobStatus::Succeeded(files) if is_one_picture(files)),
            "{provider:?}: {ended:?}"
        );
    }
}

/// DSP-13: Gemini and Imagen answer with the picture itself.
#[tokio::test]
async fn dsp_13_google_answers_with_pictures() {
    let rig = Rig::start(fast(Simulated::Google)).await;
    for model in ["gemini-2.5-flash-image", "imagen-4.0-generate-001"] {
        let outcome = rig.submit_input(model, &json!({ "prompt": "a cat" })).await;
        let SubmitOutcome::Finished { files, job: None } = outcome else { panic!("{outcome:?}") };
        let [OutputFile::Inline { media_type, data }] = files.as_slice() else { panic!("{files:?}") };
        assert!(media_type == "image/png" && data.starts_with(b"\x89PNG"));
        let refused = rig.submit_input(model, &json!({ "prompt": "[nsfw]" })).await;
        assert_eq!(submitted(&refused), "failed content nobody", "{model}");
        let failed = rig.submit_input(model, &json!({ "prompt": "[fail]" })).await;
        assert_eq!(submitted(&failed), "failed provider provider", "{model}");
    }
}

/// DSP-11: signed webhooks of Replicate, Google and fal verify with the key that the provider hands
/// out or was configured with, and a forged one before them does not.
#[tokio::test]
async fn dsp_11_signed_webhooks_arrive() {
    let webhook_faults = WebhookFaults { forged: 1.0, ..WebhookFaults::default() };
    for provider in [Simulated::Replicate, Simulated::Google, Simulated::Fal] {
        let rig = Rig::start(ProviderSimOptions { webhook_faults, ..fast(provider) }).await;
        let job = rig.accepted("a cat").await;
        let messages = rig.messages(2).await;
        let keys = if provider == Simulated::Google {
            let secret = StandardSecret::parse(&WebhookSigner::new(0).secret()).unwrap();
            WebhookKeys::Standard(vec![secret])
        } else {
            rig.keys().await
        };
        let receive = |index: usize| rig.adapter.receive(&messages[index].webhook(), &keys);
        assert_eq!(receive(0), Err(WebhookError::Forged), "{provider:?}");
        let Ok(ReceivedWebhook::Signed(report)) = receive(1) else {
            panic!("{provider:?}: {:?}", receive(1))
        };
        assert_eq!(report.job_id.as_ref(), Some(&job.id));
        assert!(
            matches!(&report.status, JobStatus::Succeeded(files) if is_one_picture(files)),
            "{provider:?}"
        );
    }
}

/// DSP-19: Higgsfield's webhook, also a forged one, says no more than which job to poll; the poll
/// says what became of it.
#[tokio::test]
async fn dsp_19_unsigned_webhooks_are_confirmed() {
    let webhook_faults = WebhookFaults { forged: 1.0, ..WebhookFaults::default() };
    let rig = Rig::start(ProviderSimOptions { webhook_faults, ..fast(Simulated::Higgsfield) }).await;
    let job = rig.accepted("a cat").await;
    let messages = rig.messages(2).await;
    for message in &messages {
        let receive =
            |token| rig.adapter.receive(&message.webhook(), &WebhookKeys::Token(Secret::new(token)));
        assert_eq!(receive(TOKEN), Ok(ReceivedWebhook::Unconfirmed { job_id: Some(job.id.clone()) }));
        assert_eq!(receive("another"), Err(WebhookError::Forged));
    }
    assert!(matches!(rig.poll(&job, PollStep::Status).await, JobStatus::Succeeded(_)));
}

/// DSP-7: what each provider refuses and how its jobs fail, by status and body.
#[tokio::test]
async fn dsp_7_errors_have_their_cause() {
    for provider in ALL {
        let rig = Rig::start(fast(provider)).await;
        for (prompt, cause) in [("[nsfw]", "failed content nobody"), ("[fail]", "failed provider provider")] {
            let job = rig.accepted(prompt).await;
            assert_eq!(polled(&Ok(rig.end(&job).await)), cause, "{provider:?}");
        }
        let unknown = ProviderJob::new("models/a/operations/b", rig.model);
        assert_eq!(rig.poll(&unknown, PollStep::Status).await, JobStatus::Missing, "{provider:?}");
        let input: Value =
            if provider == Simulated::Google { json!({ "instances": [{}] }) } else { json!({}) };
        match rig.submit_input(rig.model, &input).await {
            // fal finds it when it runs.
            SubmitOutcome::Accepted { job, .. } => {
                assert_eq!(
                    (polled(&Ok(rig.end(&job).await)).as_str(), provider),
                    ("failed input nobody", Simulated::Fal)
                );
            }
            refused => assert_eq!(submitted(&refused), "failed input nobody", "{provider:?}"),
        }
        let mut rig = rig;
        rig.key = Secret::new("");
        assert_eq!(submitted(&rig.submit("a cat").await), "failed auth key", "{provider:?}");
    }
}

/// DSP-7: too many submits are throttled, with the wait where the provider says one; a failing
/// provider is at fault, and a cut connection leaves the submit unknown.
#[tokio::test]
async fn dsp_7_limits_and_faults_of_submits() {
    let table = [
        (Simulated::Replicate, true, Heat::Key, "unknown"),
        (Simulated::Google, true, Heat::Account, "provider"),
        (Simulated::Fal, false, Heat::Account, "provider"),
        (Simulated::Higgsfield, false, Heat::Account, "unknown"),
    ];
    for (provider, has_wait, heat, failure) in table {
        let rig = Rig::start(ProviderSimOptions { rpm: 1, burst: 1, ..fast(provider) }).await;
        rig.accepted("a cat").await;
        let SubmitOutcome::Failed(throttled) = rig.submit("a dog").await else { panic!("{provider:?}") };
        let FaultCause::Throttled { after, .. } = throttled.cause else { panic!("{throttled}") };
        assert_eq!((after.is_some(), throttled.cause.heat()), (has_wait, heat), "{provider:?}");
        assert!(after.is_none_or(|wait| (20..=60).contains(&wait.as_secs())), "{provider:?}: {after:?}");
        let rig = Rig::start(ProviderSimOptions { fail_rate: 1.0, ..fast(provider) }).await;
        assert_eq!(
            submitted(&rig.submit("a cat").await),
            format!("failed {failure} provider"),
            "{provider:?}"
        );
        let rig = Rig::start(ProviderSimOptions { cut_rate: 1.0, ..fast(provider) }).await;
        let SubmitOutcome::Failed(cut) = rig.submit("a cat").await else { panic!("{provider:?}: not cut") };
        assert_eq!((fault(&cut).as_str(), cut.cause.heat()), ("failed unknown provider", Heat::Provider));
        assert!(cut.cause.may_be_billed());
    }
}

/// DSP-13: a cancel is passed on, where the provider has one.
#[tokio::test]
async fn dsp_13_jobs_are_canceled() {
    for provider in [Simulated::Replicate, Simulated::Fal, Simulated::Higgsfield] {
        let slow = ProviderSimOptions {
            takes: std::time::Duration::from_secs(60),
            max_concurrent: 1,
            ..fast(provider)
        };
        let rig = Rig::start(slow).await;
        rig.accepted("a cat, which runs").await;
        let job = rig.accepted("a dog, which waits").await;
        let request = rig.adapter.cancel(&job, &rig.key).unwrap().expect("it can be canceled");
        rig.send(request, |_| ()).await;
        assert_eq!(rig.end(&job).await, JobStatus::Canceled, "{provider:?}");
    }
}

/// DSP-13: a submit that was accepted and got no response is found in Replicate's list, and is
/// polled to its end.
#[tokio::test]
async fn dsp_13_replicate_finds_a_lost_submit() {
    let rig = Rig::start(ProviderSimOptions { cut_rate: 1.0, ..fast(Simulated::Replicate) }).await;
    let input = json!({ "prompt": "a cat", "seed": 4711 });
    assert_eq!(submitted(&rig.submit_input(rig.model, &input).await), "failed unknown provider");
    rig.submit_input(rig.model, &json!({ "prompt": "a cat", "seed": 4712 })).await;
    let (after, before) = (Time::ZERO, Time::MAX);
    let request = rig.adapter.look_up(after, before, &rig.key).unwrap().expect("Replicate has a list");
    let job = JobRequest { model: rig.model, input: &input, webhook: None, attempt: "att-1" };
    let found = rig.send(request, |reply| rig.adapter.read_look_up(&job, reply)).await;
    let LookUpOutcome::Page { jobs, next: None, .. } = found else { panic!("{found:?}") };
    let [(job, _)] = jobs.as_slice() else { panic!("{jobs:?}") };
    assert!(matches!(rig.end(job).await, JobStatus::Succeeded(_)));
}
