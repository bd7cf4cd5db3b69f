//! The edge: unknown routes, request ids, bounds on heads and times.

use reqwest::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{World, answer, operation, read, within};

#[tokio::test]
async fn what_is_not_there_says_so_in_json() {
    within(async {
        let world = World::new().await;
        for path in ["/nothing", "/v1", "/v1/operations/x/y/z", "/v2/operations", "/assets/none.js"] {
            world.get(path).await.refused(404, "TG0021", None);
        }
        for (method, path) in [
            (Method::DELETE, "/v1/operations"),
            (Method::GET, "/v1/operations/batch/x/cancel"),
            (Method::POST, "/healthz"),
            (Method::DELETE, "/v1/limits/echo"),
            (Method::POST, "/"),
        ] {
            let answer = answer(world.request(method.clone(), path)).await;
            assert!([404, 405].contains(&answer.status), "{method} {path}: {answer:?}");
            answer.refused(answer.status, "TG0021", None);
        }
        let response = world.request(Method::DELETE, "/v1/operations").send().await.unwrap();
        assert_eq!(response.status(), 405);
        let allowed = response.headers()["allow"].to_str().unwrap().to_owned();
        assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
    })
    .await;
}

/// OPS-22: the caller's request id is used if it is valid, otherwise one is generated.
#[tokio::test]
async fn ops_22_request_ids_come_back() {
    within(async {
        let world = World::new().await;
        let send = |id: Option<String>| {
            let mut request = world.request(Method::POST, "/v1/operations").body(operation("g").to_string());
            if let Some(id) = id {
                request = request.header("x-request-id", id);
            }
            async {
                let response = request.send().await.unwrap();
                let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
                assert_eq!(read(response).await.status, 202);
                id
            }
        };
        assert_eq!(send(Some("mine-1".into())).await, "mine-1");
        assert_eq!(send(Some("x".repeat(255))).await, "x".repeat(255));
        assert!(send(Some("ä".into())).await.starts_with("req_"), "not ASCII");
        let (first, second) = (send(None).await, send(Some("x".repeat(256))).await);
        assert!(
            first.starts_with("req_") && second.starts_with("req_") && first != second,
            "{first} {second}"
        );
    })
    .await;
}

async fn raw(world: &World, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(world.server.addr).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

/// A head that is too long, or never ends, does not hold a connection.
#[tokio::test]
async fn heads_are_bounded_in_size_and_time() {
    within(async {
        let world = World::new().await;
        let with_headers = |count: usize| {
            let many: String = (0..count).map(|n| format!("h{n}: x\r\n")).collect();
            format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{many}\r\n")
        };
        let answer = raw(&world, with_headers(126).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let answer = raw(&world, with_headers(127).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431") && answer.contains("x-tidegate-error: TG0005"), "{answer}");
        assert!(answer.contains("The request has 129 headers; the most is 128."), "{answer}");
        let answer = raw(&world, with_headers(2_000).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
        let long = format!("GET / HTTP/1.1\r\nhost: localhost\r\nh: {}\r\n\r\n", "x".repeat(300_000));
        assert!(!raw(&world, long.as_bytes()).await.contains("200 OK"));
        // The read timeout of these tests is two seconds; without it this would never end.
        assert!(!raw(&world, b"GET / HTTP/1.1\r\nhost: loc").await.contains("200 OK"));
        let stalled = b"POST /v1/operations HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\nconnection: close\r\n\r\n{";
        let answer = raw(&world, stalled).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("did not arrive"), "{answer}");
    })
    .await;
}
