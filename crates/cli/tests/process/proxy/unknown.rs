//! Requests that may have been done: what the proxy says about them, and what an operator can do.

use hyper::Method;
use serde_json::json;

use super::child::Proxy;
use super::service::Service;
use crate::caller::Caller;
use crate::child::tidegate;

/// IDM-18, IDM-22: after a gateway's 504 a held key is not sent again, and its client gets the
/// answer that an operator recorded.
#[tokio::test(flavor = "multi_thread")]
async fn idm_18_idm_22_an_operator_records_what_happened() {
    let service = Service::failing_first(504).await;
    let dir = tempfile::tempdir().unwrap();
    let choices = "on_unknown = \"hold\"\nkey_alphabet = \"printable\"\n";
    let proxy = Proxy::start(dir.path(), &service, "memory:", choices);
    assert!(proxy.on_unknown.starts_with("hold: a repeat after an unknown outcome gets 409"));
    let caller = Caller::of(&proxy.address);
    let post = async || {
        let headers = [("idempotency-key", "order:7")];
        caller.call_full(Method::POST, "/pay", &headers, Some(&json!({}))).await.unwrap()
    };
    assert_eq!(post().await.0, 504);
    let (status, _, text) = post().await;
    assert!(status == 409 && text.contains("IDEMPOTENCY_OUTCOME_UNKNOWN"), "{status} {text}");
    let complete = || {
        let recorded = ["--status", "201", "--header", "location: /orders/7", "--body", "{\"id\":7}"];
        let mut command = tidegate();
        command.args(["key", "complete", "order:7", "--server", &proxy.admin]).args(recorded);
        command.output().unwrap()
    };
    let output = tokio::task::block_in_place(complete);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("completed") && said.contains("status 201, a body of 8 bytes"), "{said}");
    let (status, headers, text) = post().await;
    assert_eq!((status, text.as_str()), (201, "{\"id\":7}"));
    let header = |name: &str| headers[name].to_str().unwrap();
    assert_eq!(
        (header("idempotent-replayed"), header("location"), header("content-type")),
        ("true", "/orders/7", "application/json")
    );
    assert_eq!(service.runs(), 1, "it was sent once");
    let again = tokio::task::block_in_place(complete);
    let said = String::from_utf8(again.stderr).unwrap();
    assert!(!again.status.success() && said.starts_with("error[TG0013]: "), "{said}");
    assert!(said.contains("has a response already"), "{said}");
}

/// IDM-18: by default a repeat runs again, and the proxy says so when it starts and in its help.
#[tokio::test(flavor = "multi_thread")]
async fn idm_18_the_default_says_that_a_repeat_may_run_again() {
    let service = Service::failing_first(504).await;
    let dir = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(dir.path(), &service, "memory:", "");
    let said = &proxy.on_unknown;
    assert!(
        said.contains("may run again") && said.contains("on_unknown = \"hold\" where money moves"),
        "{said}"
    );
    let caller = Caller::of(&proxy.address);
    assert_eq!(super::post(&caller, "k").await.unwrap().0, 504);
    assert_eq!(super::post(&caller, "k").await.unwrap(), (201, "run 2".into(), false));
    let help = tokio::task::block_in_place(|| tidegate().args(["proxy", "--help"]).output().unwrap());
    let help = String::from_utf8(help.stdout).unwrap().replace('\n', " ");
    assert!(help.contains("a repeat may run again") && help.contains("on_unknown = \"hold\""), "{help}");
}
