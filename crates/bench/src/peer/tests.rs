//! Which peers are accepted, and the messages with which others are refused.

use clap::{Parser, ValueEnum};

use super::*;

#[derive(Parser)]
struct TestCli {
    #[command(flatten)]
    args: Args,
}

#[test]
fn several_peers_may_be_named() {
    let line = TestCli::parse_from(["bench", "--peer", "bullmq", "--peer", "pg-boss"]);
    assert_eq!(line.args.peer, [Peer::Bullmq, Peer::PgBoss]);
    assert_eq!(TestCli::parse_from(["bench"]).args.peer, []);
    assert!(TestCli::try_parse_from(["bench", "--peer", "sidekiq"]).is_err());
}

#[test]
fn a_peer_is_named_as_its_package_is() {
    for peer in Peer::value_variants() {
        assert_eq!(peer.to_possible_value().unwrap().get_name(), peer.name());
    }
}

#[test]
fn a_peer_fits_where_it_can_run() {
    let fits = |peer: Peer, url: &str| peer.check(StoreSite::of(url)).is_ok();
    let table = [
        ("file:bench", [true, false, false, false]),
        ("memory:", [false, false, false, false]),
        ("redis://h", [false, true, true, false]),
        ("rediss://h:1/2?prefix=x", [false, true, true, false]),
        ("redis+cluster://h,i", [false, false, false, false]),
        ("redis://h?cluster=true", [false, false, false, false]),
        ("postgres://u@h/d", [false, true, false, true]),
        ("postgresql://u@h/d", [false, true, false, true]),
    ];
    for (url, expected) in table {
        let found = [Peer::Effectum, Peer::Bullmq, Peer::Groupmq, Peer::PgBoss].map(|peer| fits(peer, url));
        assert_eq!(found, expected, "{url}");
    }
}

/// A peer that does not fit is refused before another is built, and without repeating the URL,
/// which may contain a password.
#[test]
fn a_peer_that_does_not_fit_is_refused_in_a_sentence() {
    let refused = prepare(&[Peer::Bullmq, Peer::Groupmq], "postgres://me:hunter2@h/d").unwrap_err();
    assert_eq!(
        refused,
        "the peer groupmq does not run on PostgreSQL: give it one Redis server (redis://…) with --store, or leave it out"
    );
    let refused = prepare(&[Peer::Bullmq], "redis+cluster://:hunter2@h,i").unwrap_err();
    assert_eq!(
        refused,
        "the peer bullmq does not run on a Redis Cluster: give it one Redis server (redis://…) or PostgreSQL \
         (postgres://…) with --store, or leave it out"
    );
}
