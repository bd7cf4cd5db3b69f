//! A proxy whose service has not started yet.

use tokio::net::TcpSocket;

use super::child::Proxy;
use super::post;
use super::service::Service;
use crate::caller::Caller;

/// IDM-18: the log says once that the service is unreachable, with the cause, and once that it is
/// back.
#[tokio::test(flavor = "multi_thread")]
async fn idm_18_away_and_back_are_told_once() {
    // Bound and not listening: its port is nobody else's, and connections are refused.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let upstream = socket.local_addr().unwrap();
    let mut proxy = Proxy::before(dir.path(), upstream, "memory:", "");
    let caller = Caller::of(&proxy.address);
    for _ in 0..3 {
        let (status, text, _) = post(&caller, "k").await.unwrap();
        assert!(status == 502 && text.contains("refused the connection"), "{status} {text}");
    }
    let _service = Service::on(socket.listen(16).unwrap(), 0);
    for _ in 0..2 {
        assert_eq!(post(&caller, "k").await.unwrap().0, 201);
    }
    proxy.signal("TERM");
    proxy.wait_for_exit().await;
    let lines: Vec<String> = proxy.log.iter().collect();
    let told = |words: &str| lines.iter().filter(|line| line.contains(words)).collect::<Vec<_>>();
    let away = told("the service behind the proxy cannot be reached");
    assert!(away.len() == 1 && away[0].contains("Connection refused"), "{lines:?}");
    assert_eq!(told("the service behind the proxy can be reached again").len(), 1, "{lines:?}");
}
