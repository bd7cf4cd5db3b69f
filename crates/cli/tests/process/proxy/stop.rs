//! A proxy that is shut down while requests are in flight.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::child::Proxy;
use super::post;
use super::service::Service;
use crate::ALONE;
use crate::caller::Caller;

const IN_WORK: usize = 10;
const PATIENCE: Duration = Duration::from_secs(20);

/// IDM-17: nothing new is accepted, requests in flight finish and are stored, and it exits with 0;
/// the next proxy replays all of them.
#[tokio::test(flavor = "multi_thread")]
async fn idm_17_a_stop_lets_requests_in_work_finish_and_be_kept() {
    let _alone = ALONE.lock().await;
    let service = Service::start(IN_WORK).await;
    let dir = tempfile::tempdir().unwrap();
    let start = || tokio::task::block_in_place(|| Proxy::start(dir.path(), &service, "file:data", ""));
    let mut proxy = start();
    let asking: Vec<_> = (0..IN_WORK)
        .map(|n| {
            let caller = Caller::of(&proxy.address);
            tokio::spawn(async move { post(&caller, &format!("k{n}")).await })
        })
        .collect();
    service.wait_until_begun(IN_WORK).await;
    proxy.signal("TERM");
    let address = proxy.address.trim_start_matches("http://").to_owned();
    let closed = async {
        while TcpStream::connect(&address).await.is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, closed).await.expect("it takes no more connections");
    let (status, _) = Caller::of(&proxy.admin).call(hyper::Method::GET, "/readyz", &[], None).await.unwrap();
    assert_eq!(status, 503, "it says that it is about to stop");
    service.release(IN_WORK);
    let mut first = Vec::new();
    for asking in asking {
        let (status, text, replayed) = asking.await.unwrap().expect("an answer");
        assert_eq!((status, replayed), (201, false), "{text}");
        first.push(text);
    }
    assert!(proxy.wait_for_exit().await.success());
    let proxy = start();
    let caller = Caller::of(&proxy.address);
    for (n, text) in first.into_iter().enumerate() {
        assert_eq!(post(&caller, &format!("k{n}")).await.unwrap(), (201, text, true));
    }
    assert_eq!(service.runs(), IN_WORK);
}
