//! LIM-28: links of an upstream to itself lead through the proxy, so that a client that follows
//! them stays paced.

use reqwest::redirect::Policy;
use reqwest::{Client, Method};

use super::ProxySetup;
use super::upstream::{ScriptedReply, Upstream};
use crate::support::within;

/// A page that links to the next one, by the upstream's own name.
fn page(upstream: &Upstream) -> ScriptedReply {
    let at = upstream.addr;
    ScriptedReply::Answer(
        format!(
            "HTTP/1.1 201 Created\r\ncontent-length: 0\r\nlocation: http://{at}/orders/7\r\n\
             link: <http://{at}/orders?page=2>; rel=\"next\", <http://elsewhere/>; rel=\"help\"\r\n\r\n"
        )
        .into_bytes(),
    )
}

/// LIM-28: `Link` and `Location` below the base URL point to the proxy by the name that the client
/// uses; if that is switched off they are unchanged.
#[tokio::test]
async fn lim_28_links_stay_behind_the_proxy() {
    within(async {
        let door = ProxySetup::new("", []).await;
        door.upstream.push_reply(page(&door.upstream));
        let response = door.request(Method::GET, "/proxy/up/orders").send().await.unwrap();
        let here = format!("http://{}/proxy/up", door.server.addr);
        assert_eq!(response.headers()["location"], format!("{here}/orders/7").as_str());
        let link = format!("<{here}/orders?page=2>; rel=\"next\", <http://elsewhere/>; rel=\"help\"");
        assert_eq!(response.headers()["link"], link.as_str());

        door.upstream.push_reply(page(&door.upstream));
        let behind = "GET /proxy/up/orders HTTP/1.1\r\nhost: localhost:1\r\nx-forwarded-proto: https\r\nconnection: close\r\n\r\n";
        let told = door.raw(behind).await;
        assert!(told.contains("location: https://localhost:1/proxy/up/orders/7\r\n"), "{told}");

        let door = ProxySetup::new("[pacing]\nrewrite_links = false\n", []).await;
        door.upstream.push_reply(page(&door.upstream));
        let response = door.request(Method::GET, "/proxy/up/orders").send().await.unwrap();
        let there = format!("http://{}/orders/7", door.upstream.addr);
        assert_eq!(response.headers()["location"], there.as_str());
    })
    .await;
}

/// LIM-28: a client that follows redirects comes back through the proxy.
#[tokio::test]
async fn lim_28_a_redirect_is_followed_through_the_proxy() {
    within(async {
        let door = ProxySetup::new("", []).await;
        let moved = "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: /new?a=1\r\n\r\n";
        door.upstream.push_reply(ScriptedReply::Answer(moved.as_bytes().to_vec()));
        let client = Client::builder().no_proxy().redirect(Policy::limited(3)).build().unwrap();
        let response = client.get(format!("http://{}/proxy/up/old", door.server.addr)).send().await.unwrap();
        assert_eq!(response.url().path(), "/proxy/up/new");
        assert!(response.headers().contains_key("x-tidegate-operation"));
        let lines: Vec<_> = door.upstream.requests().iter().map(|seen| seen.line().to_owned()).collect();
        assert_eq!(lines, ["GET /old HTTP/1.1", "GET /new?a=1 HTTP/1.1"]);
    })
    .await;
}
