//! Defaults and refusals.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct TestCli {
    #[command(flatten)]
    args: Args,
}

#[test]
fn what_is_not_said_is_as_the_goals_have_it() {
    let args = TestCli::parse_from(["bench"]).args;
    assert_eq!((args.nodes, args.shops, args.seconds), (4, 50, 25));
    assert_eq!((args.warm_up, args.backlog, args.latency_ms), (8, 5, 50));
    assert!(args.store.is_none() && !args.no_peer);
}

#[tokio::test]
async fn a_load_that_makes_no_sense_is_refused_in_a_sentence() {
    for words in [["--seconds", "0"], ["--nodes", "0"], ["--shops", "9"], ["--backlog", "0"]] {
        let args = TestCli::parse_from(["bench", words[0], words[1]]).args;
        let refused = run(args).await.unwrap_err();
        assert_eq!(refused, "--nodes, --seconds and --backlog must be at least 1, --shops at least 10");
    }
}
