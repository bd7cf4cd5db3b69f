//! Connections that ask for nothing, at both ports of the proxy.

use hyper::Method;
use tokio::time::timeout;

use super::child::Proxy;
use super::post;
use super::service::Service;
use crate::caller::Caller;
use crate::door::silent::{CONNECTIONS, MANY, PROMPT, SILENT, all_closed, open};

/// More than the admin port takes.
const ADMINS: usize = 80;

/// Whoever asks is answered at once, and who does not is closed in time.
#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_do_not_stop_the_proxy() {
    let service = Service::start(0).await;
    let dir = tempfile::tempdir().unwrap();
    let more = format!("connections_max = {CONNECTIONS}\nread_timeout = \"1s\"\n");
    let proxy = Proxy::start(dir.path(), &service, "memory:", &more);
    for (what, first) in SILENT {
        let silent = open(&proxy.address, MANY, first).await;
        let at_admin = open(&proxy.admin, ADMINS, first).await;
        let posted = timeout(PROMPT, async { post(&Caller::of(&proxy.address), "k").await }).await;
        assert_eq!(posted.ok().flatten().map(|(status, ..)| status), Some(201), "{what}");
        let admin = Caller::of(&proxy.admin);
        let health = timeout(PROMPT, admin.call(Method::GET, "/healthz", &[], None)).await;
        assert_eq!(health.ok().flatten().map(|(status, _)| status), Some(200), "{what}");
        assert!(all_closed(silent).await && all_closed(at_admin).await, "{what}");
    }
}
