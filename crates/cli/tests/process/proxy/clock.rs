//! A machine whose clock is set anew while a request is in work.

use std::time::Duration;

use tokio::time::sleep;

use super::child::Proxy;
use super::post;
use super::service::Service;
use crate::ALONE;
use crate::caller::Caller;
use crate::clocks::Clocks;

const HOUR_S: i64 = 3_600;
/// Longer than a process goes by what it read of its clock last.
const SEEN: Duration = Duration::from_secs(2);

/// IDM-7, IDM-5: a clock that jumps by an hour, ahead or back, neither ends the lease of a request
/// in work nor the time of an answer that is kept.
#[tokio::test(flavor = "multi_thread")]
async fn idm_7_a_clock_that_jumps_frees_no_key() {
    let _alone = ALONE.lock().await;
    for seconds in [HOUR_S, -HOUR_S] {
        let service = Service::start(1).await;
        let clocks = Clocks::new(1);
        let dir = tempfile::tempdir().unwrap();
        let proxy = tokio::task::block_in_place(|| {
            Proxy::start_in(dir.path(), service.addr, "file:data", "", clocks.environment(0))
        });
        let caller = Caller::of(&proxy.address);
        let first = caller.clone();
        let first = tokio::spawn(async move { post(&first, "k").await });
        service.wait_until_begun(1).await;
        clocks.set(0, seconds);
        sleep(SEEN).await;
        let (status, text, _) = post(&caller, "k").await.unwrap();
        assert!(status == 409 && text.contains("IDEMPOTENCY_KEY_PROCESSING"), "{status} {text}");
        service.release(1);
        let (status, answer, _) = first.await.unwrap().unwrap();
        assert_eq!(status, 201);
        assert_eq!(post(&caller, "k").await.unwrap(), (201, answer, true), "an hour has not passed");
        assert_eq!(service.runs(), 1);
    }
}
