//! What adapters read in documented responses: in the shapes that the providers document, and with
//! the errors that mislead by their status alone.

use http::HeaderMap;
use serde_json::{Value, json};
use tidegate_images::fault::{FaultCause, Heat, ThrottleScope};
use tidegate_images::{
    Fal, Google, Higgsfield, JobRequest, LookUpOutcome, PollStep, Provider, ProviderJob, ProviderReply,
    ProviderResponse, Replicate, SubmitOutcome, fal, google, higgsfield, replicate,
};

use crate::documented::{
    Example, RECEIVED_AT, bytes, fault, fixture, generic, headers, polled, providers, reply, submitted, time,
};

/// Reads every example of a file, and reports all that mean something else.
fn read_all(provider: &dyn Provider, model: &str, path: &str) {
    let examples: Vec<Example> = fixture(path);
    assert!(examples.len() > 3, "{path} would prove little");
    let mut wrong = Vec::new();
    for example in examples {
        let model = example.model.as_deref().unwrap_or(model);
        let headers = headers(example.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let body = bytes(&example.body);
        let reply = reply(example.status, &headers, &body);
        let job = ProviderJob::new("id", model);
        let input = json!({ "prompt": "a cat" });
        let request = JobRequest { model, input: &input, webhook: None, attempt: "1" };
        let meaning = match example.call.as_str() {
            "submit" => submitted(&provider.read_submit(&request, &reply)),
            "poll" => polled(&provider.read_poll(&job, PollStep::Status, &reply)),
            "result" => polled(&provider.read_poll(&job, PollStep::Result, &reply)),
            other => panic!("{other}"),
        };
        if meaning != example.expect {
            wrong.push(format!("{}: {meaning:?} instead of {:?}", example.name, example.expect));
        }
    }
    assert!(wrong.is_empty(), "{path}:\n{}", wrong.join("\n"));
}

/// DSP-7, DSP-13: Replicate's responses and errors.
#[test]
fn dsp_13_replicate_is_read_as_documented() {
    let provider = Replicate::new(replicate::BASE_URL);
    for path in ["replicate/submit.json", "replicate/errors.json", "replicate/poll.json"] {
        read_all(&provider, "black-forest-labs/flux-schnell", path);
    }
}

/// DSP-7, DSP-13: Google's responses and errors, of Gemini, Imagen and Veo.
#[test]
fn dsp_13_google_is_read_as_documented() {
    let provider = Google::new(google::BASE_URL, google::JWKS_URL);
    for path in ["google/submit.json", "google/errors.json", "google/poll.json"] {
        read_all(&provider, "", path);
    }
}

/// DSP-7, DSP-13: fal's responses and errors.
#[test]
fn dsp_13_fal_is_read_as_documented() {
    let provider = Fal::new(fal::BASE_URL, fal::JWKS_URL);
    for path in ["fal/submit.json", "fal/poll.json"] {
        read_all(&provider, "fal-ai/flux/dev", path);
    }
}

/// DSP-7, DSP-13: Higgsfield's responses and errors.
#[test]
fn dsp_13_higgsfield_is_read_as_documented() {
    let provider = Higgsfield::new(higgsfield::BASE_URL);
    for path in ["higgsfield/submit.json", "higgsfield/poll.json"] {
        read_all(&provider, "higgsfield-ai/soul/standard", path);
    }
}

/// DSP-13: a plain submit and poll API is read by configuration alone.
#[test]
fn dsp_13_a_configured_provider_is_read() {
    read_all(&generic(), "flux", "generic/responses.json");
}

/// DSP-7: whom each cause heats. Wrong input ends the generation and heats nobody; what may exist
/// may be billed.
#[test]
fn dsp_7_only_faults_of_the_provider_heat_it() {
    let throttled = |scope| FaultCause::Throttled { after: None, scope };
    let table = [
        (FaultCause::Input, Heat::Nobody, true, false),
        (FaultCause::Content, Heat::Nobody, true, false),
        (FaultCause::Refused, Heat::Nobody, false, false),
        (FaultCause::Unexplained, Heat::Nobody, false, false),
        (FaultCause::Deadline, Heat::Nobody, false, false),
        (FaultCause::Auth, Heat::Key, false, false),
        (throttled(ThrottleScope::Key), Heat::Key, false, false),
        (throttled(ThrottleScope::Account), Heat::Account, false, false),
        (FaultCause::Credit, Heat::Account, false, false),
        (FaultCause::Provider, Heat::Provider, false, false),
        (FaultCause::NotSent, Heat::Provider, false, false),
        (FaultCause::Unknown, Heat::Provider, false, true),
    ];
    for (cause, heat, ends, billed) in table {
        assert_eq!(
            (cause.heat(), cause.ends_generation(), cause.may_be_billed()),
            (heat, ends, billed),
            "{cause:?}"
        );
    }
}

/// DSP-7: with every provider, a request that was not sent is told apart from one without an
/// answer, and half of a success is no success. A poll that fails says nothing about its job.
#[test]
fn dsp_7_not_sent_and_unknown_are_told_apart() {
    let none = HeaderMap::new();
    let half = ProviderResponse {
        status: 200,
        headers: &none,
        body: br#"{"id":"a","request_id":"a","name":"models/m/operations/a","job":{"id":"a"}}"#,
        is_complete: false,
        received_at: time(RECEIVED_AT),
    };
    let input = json!({ "prompt": "a cat" });
    for (provider, model) in providers() {
        let job = JobRequest { model, input: &input, webhook: None, attempt: "1" };
        let submit = |reply| submitted(&provider.read_submit(&job, &reply));
        assert_eq!(submit(ProviderReply::NotSent("refused")), "failed not_sent provider");
        assert_eq!(submit(ProviderReply::NoAnswer("timed out")), "failed unknown provider");
        assert_eq!(submit(ProviderReply::Response(half)), "failed unknown provider");
        let complete = ProviderResponse { is_complete: true, ..half };
        assert!(submit(ProviderReply::Response(complete)).starts_with("accepted "), "{}", provider.name());
        let known = ProviderJob::new("models/m/operations/a", model);
        let poll = |reply| polled(&provider.read_poll(&known, PollStep::Status, &reply));
        assert_eq!(poll(ProviderReply::NoAnswer("timed out")), "poll failed provider provider");
        assert_eq!(poll(ProviderReply::Response(half)), "poll failed provider provider");
    }
}

/// DSP-13: a submit whose response was lost is found in Replicate's list by its model and input.
#[test]
fn dsp_13_a_lost_submit_is_found_in_the_list() {
    let provider = Replicate::new(replicate::BASE_URL);
    let one = |id: &str, model: &str, input: Value| json!({ "id": id, "model": model, "version": "hidden", "status": "processing", "input": input });
    let page = json!({
        "next": "https://api.replicate.com/v1/predictions?cursor=x", "previous": null,
        "results": [
            one("other-seed", "a/b", json!({ "prompt": "a cat", "seed": 8 })),
            one("found", "a/b", json!({ "prompt": "a cat", "seed": 7, "width": 512 })),
            one("other-model", "a/c", json!({ "prompt": "a cat", "seed": 7 })),
            one("less-input", "a/b", json!({ "prompt": "a cat" })),
        ],
    });
    let input = json!({ "prompt": "a cat", "seed": 7 });
    let job = JobRequest { model: "a/b", input: &input, webhook: None, attempt: "1" };
    let (none, body) = (HeaderMap::new(), bytes(&page));
    let LookUpOutcome::Page { jobs, next, .. } = provider.read_look_up(&job, &reply(200, &none, &body))
    else {
        panic!("no page")
    };
    assert_eq!(jobs.iter().map(|(job, _)| job.id.as_str()).collect::<Vec<_>>(), ["found"]);
    assert_eq!(next.as_deref(), Some("https://api.replicate.com/v1/predictions?cursor=x"));
    let elsewhere = bytes(&json!({ "next": "https://evil.test/v1/predictions", "results": [] }));
    let LookUpOutcome::Page { is_conclusive: false, next: None, .. } =
        provider.read_look_up(&job, &reply(200, &none, &elsewhere))
    else {
        panic!("a page of another host is followed")
    };
    let LookUpOutcome::Failed(why) = provider.read_look_up(&job, &reply(500, &none, b"")) else {
        panic!("an error is a page")
    };
    assert_eq!(fault(&why), "failed provider provider");
}

/// What is kept between submit and poll survives being stored.
#[test]
fn a_job_is_stored_and_read_back() {
    let provider = Fal::new(fal::BASE_URL, fal::JWKS_URL);
    let examples: Vec<Example> = fixture("fal/submit.json");
    let (none, body) = (HeaderMap::new(), bytes(&examples[0].body));
    let input = json!({});
    let request = JobRequest { model: "fal-ai/flux/dev", input: &input, webhook: None, attempt: "1" };
    let SubmitOutcome::Accepted { job, .. } = provider.read_submit(&request, &reply(200, &none, &body))
    else {
        panic!("not accepted")
    };
    assert!(job.status_url.is_some() && job.result_url.is_some() && job.cancel_url.is_some());
    let stored = serde_json::to_string(&job).unwrap();
    assert_eq!(serde_json::from_str::<ProviderJob>(&stored).unwrap(), job);
    let short: ProviderJob = serde_json::from_value(json!({ "id": "a", "model": "m" })).unwrap();
    assert_eq!(short, ProviderJob::new("a", "m"));
}
