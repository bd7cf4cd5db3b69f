//! A proxy whose store becomes unavailable and comes back.

use std::time::Duration;

use hyper::Method;
use serde_json::json;
use tidegate_fixture::redis::RedisServer;
use tokio::time::{sleep, timeout};

use super::child::Proxy;
use super::post;
use super::service::Service;
use crate::ALONE;
use crate::caller::Caller;

const PATIENCE: Duration = Duration::from_secs(30);

/// IDM-21: without its store the proxy is not ready and refuses requests with a key, having sent
/// nothing; those without pass. When the store is back, so is the proxy.
#[tokio::test(flavor = "multi_thread")]
async fn idm_21_without_its_store() {
    let _alone = ALONE.lock().await;
    let mut redis = tokio::task::block_in_place(RedisServer::start);
    let service = Service::start(0).await;
    let dir = tempfile::tempdir().unwrap();
    let proxy = tokio::task::block_in_place(|| Proxy::start(dir.path(), &service, &redis.url(), ""));
    let (caller, admin) = (Caller::of(&proxy.address), Caller::of(&proxy.admin));
    assert_eq!(post(&caller, "before").await.unwrap().0, 201);
    tokio::task::block_in_place(|| redis.kill());
    let (status, text, _) = post(&caller, "during").await.unwrap();
    assert!(status == 503 && text.contains("IDEMPOTENCY_UNAVAILABLE"), "{status} {text}");
    assert_eq!(service.runs(), 1, "nothing was sent");
    let (status, _) = admin.call(Method::GET, "/readyz", &[], None).await.unwrap();
    assert_eq!(status, 503);
    let (status, text) = caller.call(Method::POST, "/items", &[], Some(&json!({}))).await.unwrap();
    assert_eq!((status, text.as_str()), (201, "run 2"));
    tokio::task::block_in_place(|| redis.restart());
    let back = async {
        while post(&caller, "during").await.unwrap().0 != 201 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, back).await.expect("it comes back");
    let (status, _) = admin.call(Method::GET, "/readyz", &[], None).await.unwrap();
    assert_eq!((status, service.runs()), (200, 3));
}
