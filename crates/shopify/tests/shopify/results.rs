//! Results, line by line.

use tidegate_shopify::ShopifyErrorKind;
use tidegate_shopify::bulk::ResultUrl;

use crate::bulk::PRODUCTS;
use crate::scripted::{ScriptedReply, ScriptedServer};
use crate::world::{at, builder, client, memory, ms, sim};

/// LIM-17: a result of a million lines is read to its end, line by line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_17_a_million_lines_from_a_server() {
    const LINES: u64 = 1_000_000;
    let sim = sim(ms(10), LINES).await;
    let client = client(&memory(), &at(&sim, "acme"));
    let finished = client.bulk().query(PRODUCTS).await.unwrap().wait().await.unwrap();
    let mut lines = client.bulk().lines(finished.url.as_ref().unwrap()).await.unwrap();
    let mut count = 0;
    while let Some(_line) = lines.next_line().await.unwrap() {
        count += 1;
    }
    assert_eq!(count, LINES);
}

/// A result that breaks off, is missing or has too long a line is reported, without the URL; the
/// token is not sent along.
#[tokio::test]
async fn what_breaks_off_is_told_without_the_url() {
    let store = memory();
    let broken = ScriptedReply::Answer {
        status: 200,
        headers: vec![("x", "y".into())],
        body: "{}\n{\"a\":1}\n{\"b\"".to_owned(),
    };
    let server = ScriptedServer::start(move |_, asked| match asked.line.split(' ').nth(1) {
        Some("/lines?hunter2") => broken.clone(),
        Some("/cut?hunter2") => ScriptedReply::Cut,
        _ => ScriptedReply::status(404),
    })
    .await;
    let client = builder(&store, &server.url()).line_max(6).build().unwrap();
    let url = |path: &str| ResultUrl::new(format!("{}{path}?hunter2", server.url()));
    let mut lines = client.bulk().lines(&url("/lines")).await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().unwrap(), "{}");
    let error = lines.next_line().await.unwrap_err();
    let said = "The response cannot be read: line 2 of the result is longer than the limit of 6 bytes.";
    assert_eq!(error.to_string(), said);
    assert_eq!(lines.next_line().await.unwrap(), None, "nothing comes after that");
    for path in ["/cut", "/gone"] {
        let error = client.bulk().lines(&url(path)).await.unwrap_err();
        assert!(matches!(error.kind(), ShopifyErrorKind::Unreadable(_)), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
    for url in ["https://127.0.0.1/x", "file:///etc/passwd", "nonsense"] {
        assert!(client.bulk().lines(&ResultUrl::new(url)).await.is_err(), "{url}");
    }
    assert!(server.requests().iter().all(|asked| !asked.head.contains("shpat")));
}
