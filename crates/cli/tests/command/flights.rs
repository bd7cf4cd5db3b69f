//! `flight` against a server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::{World, tidegate};

/// Sends a GET and returns the response. The command itself asks for no entity.
fn get(addr: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// HYD-15: an entity that is asked for is listed, with who waits; a list goes on with its cursor.
#[tokio::test(flavor = "multi_thread")]
async fn hyd_15_open_flights_are_listed() {
    let world = World::new().await;
    let none = world.run(&["flight", "list"]).await;
    assert_eq!((none.expect_success(), none.err.trim()), ("", "nothing is being asked for"));
    for id in ["c-7", "c-8"] {
        let path = format!("/v1/entities/customer/{id}?on_miss=defer&wait_ms=0");
        let asked = tokio::task::block_in_place(|| get(world.server.addr, &path));
        assert!(asked.contains("deferred"), "{asked}");
    }
    let list = world.run(&["flight", "list", "--limit", "1"]).await;
    assert!(list.expect_success().starts_with("customer\tc-7\tdefault\tfull\t"), "{list:?}");
    let cursor = list.err.rsplit("--cursor ").next().unwrap().trim().to_owned();
    let rest = world.run(&["flight", "list", "--cursor", &cursor]).await;
    assert!(rest.expect_success().starts_with("customer\tc-8\t"), "{rest:?}");
    assert_eq!(rest.out.lines().count(), 1, "{rest:?}");
    let json = world.run(&["flight", "list", "--json"]).await.json();
    assert_eq!(
        (&json["flights"][0]["deferred"], &json["next_cursor"]),
        (&1.into(), &serde_json::Value::Null)
    );
    let wrong = world.run(&["flight", "list", "--cursor", "x"]).await;
    assert_eq!(wrong.exit, Some(1), "{wrong:?}");
}

/// HYD-14, HYD-19: the demo shows it working: a customer is read from the slow API, once for all
/// who want it.
#[test]
fn hyd_14_the_demo_reads_a_customer_once() {
    let mut demo = tidegate().args(["demo", "--for", "20", "--listen", "127.0.0.1:0"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(demo.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("tidegate demo: open http://").unwrap();
    let addr: SocketAddr = url.trim_end_matches('/').parse().unwrap();
    let path = "/v1/entities/customer/mine?wait_ms=10000";
    let reads: Vec<_> = (0..10).map(|_| std::thread::spawn(move || get(addr, path))).collect();
    for read in reads {
        let answer = read.join().unwrap();
        assert!(answer.contains(r#""state":"found""#) && answer.contains("/customers/mine"), "{answer}");
    }
    let calls = get(addr, "/v1/operations?upstream=slow&limit=200");
    demo.kill().unwrap();
    demo.wait().unwrap();
    assert!(calls.contains("op_"), "reads are operations: {calls}");
}
