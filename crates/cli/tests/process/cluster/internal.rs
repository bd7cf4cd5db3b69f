//! The routes among nodes, without a configured secret: nobody on this machine gets in who cannot
//! read the store, neither a process nor a web page, and the nodes themselves do.

use hyper::Method;

use super::load;
use super::node_clients::partition_of;
use super::nodes::{Nodes, PARTITIONS};
use super::store::Store;
use crate::ALONE;

/// Groups that are enough for both nodes to own some.
const GROUPS: usize = 12;

type Headers<'a> = &'a [(&'a str, &'a str)];

async fn status(nodes: &Nodes, node: usize, method: Method, path: &str, headers: Headers<'_>) -> u16 {
    let body = (method == Method::POST).then(|| load::operation("wide", "forged", 1));
    nodes.doors.at(node).call(method, path, headers, body.as_ref()).await.expect("a whole answer").0
}

async fn only_nodes_get_in(store: Store) {
    let mut nodes = Nodes::start(2, store).await;
    let strangers: [Headers<'_>; 4] = [
        &[],
        &[("authorization", "Bearer 00000000000000000000000000000000")],
        &[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")],
        &[("host", "evil.example")],
    ];
    let calls = [
        (Method::POST, "v1/operations"),
        (Method::GET, "v1/operations"),
        (Method::POST, "v1/groups/forged/pause"),
        (Method::PUT, "v1/limits/limited/requests"),
        (Method::GET, "proxy/wide/x"),
        (Method::GET, "metrics"),
    ];
    for headers in strangers {
        assert_eq!(status(&nodes, 0, Method::GET, "/internal/hello", headers).await, 403, "{headers:?}");
        for partition in 0..PARTITIONS {
            for (method, call) in &calls {
                let path = format!("/internal/{partition}/{call}");
                let found = status(&nodes, partition % 2, method.clone(), &path, headers).await;
                assert_eq!(found, 403, "{method} {path} {headers:?}");
            }
        }
    }
    assert_eq!(nodes.wide.stats().calls, 0, "nothing was sent for a stranger");
    // Whoever reads the secret is let in, but never by way of a browser.
    let secret = nodes.store.node_secret().await;
    let known = ("authorization", &*secret);
    let hello = async |headers: Headers<'_>| status(&nodes, 0, Method::GET, "/internal/hello", headers).await;
    assert_eq!(hello(&[known]).await, 200);
    assert_eq!(hello(&[known, ("host", "evil.example")]).await, 403);
    assert_eq!(hello(&[known, ("sec-fetch-site", "cross-site")]).await, 403);
    // And the nodes pass calls on to each other as before.
    let own = nodes.partitions_of(0, 0).await;
    let mut passed_on = 0;
    for group in 0..GROUPS {
        let operation = load::operation("wide", &format!("g{group}"), 0);
        let (id, _) = nodes.doors.at(0).submit(&operation).await;
        assert_eq!(nodes.doors.at(1).wait_until_ended(&id).await, "succeeded");
        passed_on += usize::from(!own.contains(&partition_of(&id)));
    }
    assert!((1..GROUPS).contains(&passed_on), "{passed_on} of {GROUPS} were passed on");
    assert_eq!(nodes.wide.stats().calls, GROUPS as u64);
}

/// On both stores, side by side.
#[tokio::test(flavor = "multi_thread")]
async fn only_nodes_use_the_routes_among_nodes() {
    let _alone = ALONE.lock().await;
    for day in [Store::redis(), Store::postgres()].map(|store| tokio::spawn(only_nodes_get_in(store))) {
        day.await.unwrap();
    }
}
