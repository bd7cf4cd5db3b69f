//! What a browser on this machine sends for other sites, and what it may do with the answer of an
//! upstream.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Response};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::caller::Caller;
use crate::child::{RunningServer, StartingServer, configure};

const PAGE: &str = "<script>fetch('/v1/operations')</script>";
const TOKEN: &str = "the-token-of-an-operator";
/// A name and the token, as a browser sends again what was typed into its login form.
const LOGIN: &str = "Basic b3BlcmF0b3I6dGhlLXRva2VuLW9mLWFuLW9wZXJhdG9y";

type Headers<'a> = &'a [(&'a str, &'a str)];

/// What browsers say when another site has them call.
const FOREIGN: [Headers<'static>; 6] = [
    &[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "cors")],
    &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")],
    &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "script")],
    &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe")],
    &[("origin", "https://evil.example")],
    &[("origin", "null")],
];
const LINK: Headers<'static> =
    &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];

/// An upstream that lets every site read its answers, and answers with a page that runs a script.
async fn upstream() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, calls) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&calls);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let calls = Arc::clone(&counted);
            let handle = hyper::service::service_fn(move |_| {
                calls.fetch_add(1, Ordering::SeqCst);
                let answer = Response::builder()
                    .header("content-type", "text/html")
                    .header("content-security-policy", "img-src 'none'")
                    .header("access-control-allow-origin", "*")
                    .header("access-control-expose-headers", "x-secret")
                    .header("x-secret", "1");
                async move { Ok::<_, Infallible>(answer.body(Full::new(Bytes::from(PAGE))).unwrap()) }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), handle));
        }
    });
    (addr, calls)
}

struct BrowserSetup {
    caller: Caller,
    calls: Arc<AtomicUsize>,
    _running: RunningServer,
    _dir: TempDir,
}

impl BrowserSetup {
    async fn new(more: &str) -> Self {
        let (addr, calls) = upstream().await;
        let dir = tempfile::tempdir().unwrap();
        configure(
            dir.path(),
            4,
            &format!("{more}[[upstream]]\nname = \"mine\"\nbase_url = \"http://{addr}\"\n"),
        );
        let started = StartingServer::new(dir.path(), "warn", Some(("OPERATOR", TOKEN)));
        let running = tokio::task::block_in_place(|| RunningServer::of(started));
        Self { caller: Caller::of(&running.address), calls, _running: running, _dir: dir }
    }

    async fn status(&self, method: Method, path: &str, headers: Headers<'_>) -> u16 {
        self.caller.call(method, path, headers, None).await.expect("a whole answer").0
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

fn methods() -> [Method; 7] {
    use Method as M;
    [M::GET, M::HEAD, M::OPTIONS, M::POST, M::PUT, M::PATCH, M::DELETE]
}

/// Without tokens, whatever its method: nothing is sent to the upstream with its credential for
/// another site.
#[tokio::test(flavor = "multi_thread")]
async fn other_sites_do_not_call_through_the_proxy() {
    let world = BrowserSetup::new("").await;
    for method in methods() {
        for headers in FOREIGN.into_iter().chain([LINK, &[("host", "evil.example")]]) {
            let status = world.status(method.clone(), "/proxy/mine/customers", headers).await;
            assert_eq!(status, 403, "{method} {headers:?}");
        }
    }
    for headers in FOREIGN {
        for path in ["/v1/operations", "/v1/events", "/metrics", "/", "/nothing/here"] {
            assert_eq!(world.status(Method::GET, path, headers).await, 403, "{path} {headers:?}");
        }
    }
    assert_eq!(world.calls(), 0);
    // A link to a page may be followed, from wherever; one to a call may not.
    assert_eq!(world.status(Method::GET, "/", LINK).await, 200);
    assert_eq!(world.status(Method::GET, "/v1/operations", LINK).await, 403);
    // What a person types, what the page itself asks for, and what is no browser.
    for headers in [&[("sec-fetch-site", "none")] as Headers<'_>, &[("sec-fetch-site", "same-origin")], &[]] {
        assert_eq!(world.status(Method::GET, "/proxy/mine/customers", headers).await, 200, "{headers:?}");
    }
    assert_eq!(world.calls(), 3);
}

/// With tokens a browser sends again what was typed into its login form, also for other sites.
#[tokio::test(flavor = "multi_thread")]
async fn other_sites_do_not_use_a_login() {
    let token = "[[token]]\nname = \"operator\"\nvalue_env = \"OPERATOR\"\n\
        scopes = [\"read\", \"write\", \"operate\"]\n";
    let world = BrowserSetup::new(token).await;
    let login = ("authorization", LOGIN);
    for method in methods() {
        for headers in FOREIGN {
            let headers: Vec<_> = headers.iter().copied().chain([login]).collect();
            let status = world.status(method.clone(), "/proxy/mine/customers", &headers).await;
            assert_eq!(status, 403, "{method} {headers:?}");
        }
    }
    assert_eq!(world.calls(), 0);
    assert_eq!(world.status(Method::GET, "/proxy/mine/customers", &[]).await, 401);
    assert_eq!(world.status(Method::GET, "/proxy/mine/customers", &[login]).await, 200);
}

/// An upstream's page has no part in Tidegate's, and lets nobody read it under Tidegate's name.
#[tokio::test(flavor = "multi_thread")]
async fn an_upstreams_answer_is_sandboxed() {
    let world = BrowserSetup::new("").await;
    let (status, headers, body) =
        world.caller.call_full(Method::GET, "/proxy/mine/page.html", &[], None).await.unwrap();
    assert_eq!((status, &*body), (200, PAGE));
    let all = |name: &str| -> Vec<_> {
        headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(all("content-security-policy"), ["img-src 'none'", "sandbox"]);
    assert_eq!(all("x-content-type-options"), ["nosniff"]);
    assert_eq!(all("x-secret"), ["1"]);
    let shared = headers.keys().find(|name| name.as_str().starts_with("access-control-"));
    assert_eq!(shared, None);
}
