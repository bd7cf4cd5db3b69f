//! LIM-28: `/proxy/{upstream}/…`, against an upstream whose every byte is known.

mod clients;
mod encodings;
mod failing;
mod going;
mod links;
mod nodes;
mod requests;
mod streams;
pub(crate) mod upstream;

use std::collections::BTreeMap;

use reqwest::{Client, Method, RequestBuilder, Response};
use tidegate_server::Server;
use tidegate_server::config::{Config, Overrides};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Answer, answer, within};
use upstream::{ScriptedReply, Upstream};

const TOKENS: &str = "[[token]]\nname = \"app\"\nvalue_env = \"APP_TOKEN\"\nscopes = [\"write\"]\n\
                      [[token]]\nname = \"ops\"\nvalue_env = \"OPS_TOKEN\"\nscopes = [\"read\", \"operate\"]\n";

/// A server in front of it.
struct ProxySetup {
    server: Server,
    upstream: Upstream,
    client: Client,
}

impl ProxySetup {
    /// Starts the server; `more` is inserted right after the upstream's own keys.
    async fn new(more: &str, next: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let upstream = Upstream::start(next).await;
        let server = Server::start(config("memory:", upstream.addr, more)).await.unwrap();
        Self { server, upstream, client: Client::builder().no_proxy().build().unwrap() }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.server.addr))
    }

    async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await
    }

    /// The operation that a response names.
    async fn operation(&self, response: &Response) -> serde_json::Value {
        let id = response.headers()["x-tidegate-operation"].to_str().unwrap();
        self.get(&format!("/v1/operations/{id}")).await.json
    }

    /// Sends these bytes and returns everything received.
    async fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.server.addr).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn config(store: &str, upstream: std::net::SocketAddr, more: &str) -> Config {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ndrain_s = 5\nread_timeout_s = 5\n[store]\nurl = \"{store}\"\n\
         [[upstream]]\nname = \"up\"\nbase_url = \"http://{upstream}\"\n{more}"
    );
    let known = BTreeMap::from([
        ("UP_TOKEN", "the-upstreams-own-credential"),
        ("APP_TOKEN", "a-token-of-the-application"),
        ("OPS_TOKEN", "a-token-of-an-operator"),
    ]);
    let env = |name: &str| known.get(name).map(|value| (*value).to_owned());
    Config::parse("test.toml", &text, &env, &Overrides::default(), &[]).unwrap()
}

/// LIM-28: the client gets the upstream's own response: status, headers, every byte, and the
/// operation's id. A client with a cookie jar gets no cookie, and may send one of its own.
#[tokio::test]
async fn lim_28_the_answer_is_the_upstreams_own() {
    within(async {
        let bytes = [
            b"HTTP/1.1 299 Odd\r\ncontent-length: 5\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nx-request-id: theirs\r\n\
              connection: x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\nx-tidegate-error: TG0001\r\ncontent-type: image/odd\r\n\
              cache-control: max-age=7\r\netag: \"e\"\r\n\r\n"
                .to_vec(),
            vec![0, 255, 254, 10, 13],
        ]
        .concat();
        let door = ProxySetup::new("", [ScriptedReply::Answer(bytes)]).await;
        let response = door.request(Method::GET, "/proxy/up/x").header("cookie", "a=1").send().await.unwrap();
        assert_eq!(response.status(), 299);
        let headers = response.headers().clone();
        for (name, value) in
            [("x-request-id", "theirs"), ("content-type", "image/odd"), ("cache-control", "max-age=7"), ("etag", "\"e\""), ("content-security-policy", "sandbox")]
        {
            assert_eq!(headers[name], value);
        }
        for name in ["x-hop", "keep-alive", "x-tidegate-error", "referrer-policy", "set-cookie"] {
            assert!(!headers.contains_key(name), "{name} in {headers:?}");
        }
        let operation = door.operation(&response).await;
        assert_eq!(&response.bytes().await.unwrap()[..], [0, 255, 254, 10, 13]);
        // It is an operation like any other, in its own group; secrets are not stored.
        assert_eq!((&operation["kind"], &operation["state"]), (&"http".into(), &"succeeded".into()));
        assert!(operation["group"].as_str().unwrap().starts_with("up/"), "{operation}");
        assert_eq!(operation["result"]["status"], 299);
        assert!(!operation.to_string().contains("a=1"), "{operation}");
    })
    .await;
}

/// LIM-28: responses without a body, whatever length they declare.
#[tokio::test]
async fn lim_28_answers_without_a_body() {
    within(async {
        let next = [
            upstream::answer("HTTP/1.1 200 OK\r\ncontent-length: 4711\r\netag: \"e\"\r\n\r\n"),
            upstream::answer("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
            upstream::answer("HTTP/1.1 304 Not Modified\r\netag: \"e\"\r\n\r\n"),
            upstream::answer("HTTP/1.1 204 No Content\r\n\r\n"),
            upstream::answer("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
            upstream::answer("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        ];
        let door = ProxySetup::new("", next).await;
        let length = |response: &Response| {
            response.headers().get("content-length").map(|len| len.to_str().unwrap().to_owned())
        };
        let head = door.request(Method::HEAD, "/proxy/up/x").send().await.unwrap();
        assert_eq!((head.status().as_u16(), length(&head).as_deref()), (200, Some("4711")));
        let head = door.request(Method::HEAD, "/proxy/up/x").send().await.unwrap();
        assert_eq!((head.status().as_u16(), length(&head)), (200, None));
        let same =
            door.request(Method::GET, "/proxy/up/x").header("if-none-match", "\"e\"").send().await.unwrap();
        assert_eq!((same.status().as_u16(), length(&same)), (304, None));
        assert_eq!(same.headers()["etag"], "\"e\"");
        assert_eq!(door.operation(&same).await["state"], "succeeded", "it is an answer");
        for (status, body) in [(204, ""), (200, ""), (200, "abc")] {
            let response = door.request(Method::DELETE, "/proxy/up/x").send().await.unwrap();
            assert_eq!(response.status(), status);
            assert_eq!(response.text().await.unwrap(), body);
        }
    })
    .await;
}

/// LIM-28: a redirect to another host is left to the client.
#[tokio::test]
async fn lim_28_a_redirect_is_an_answer() {
    within(async {
        let found = "HTTP/1.1 302 Found\r\nlocation: http://elsewhere/\r\ncontent-length: 0\r\n\r\n";
        let door = ProxySetup::new("", [upstream::answer(found)]).await;
        let told = door.raw("GET /proxy/up/x HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
        assert!(
            told.starts_with("HTTP/1.1 302 Found\r\n") && told.contains("location: http://elsewhere/\r\n"),
            "{told}"
        );
    })
    .await;
}
