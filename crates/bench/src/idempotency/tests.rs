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
    assert_eq!(args.store, "file:tidegate-bench");
    assert_eq!((args.seconds, args.connections, args.turns), (10, 64, 3));
    assert_eq!(args.requests_for_memory, 200_000);
    assert!(!args.no_peers && args.serve.is_none());
}

#[tokio::test]
async fn a_load_that_wrk_cannot_make_is_refused_in_a_sentence() {
    for words in [["--seconds", "0"], ["--turns", "0"], ["--connections", "1"]] {
        let args = TestCli::parse_from(["bench", words[0], words[1]]).args;
        let refused = run(args).await.unwrap_err();
        assert_eq!(refused, "--seconds and --turns must be at least 1, --connections at least 2");
    }
}
