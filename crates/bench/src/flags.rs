//! Flags shared by several benchmarks, so that the same flag means the same in each. A flag of a
//! single benchmark stays with it.

/// The load of benchmarks that measure whole lifecycles.
#[derive(Clone, Debug, clap::Args)]
pub struct LoadArgs {
    /// Seconds to measure, each time.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Producers, each waiting for its acceptance.
    #[arg(long, default_value_t = 64)]
    pub producers: usize,
    /// Groups.
    #[arg(long, default_value_t = 1_000)]
    pub groups: u64,
    /// Bytes that each operation sends.
    #[arg(long, default_value_t = 512)]
    pub payload: usize,
    /// Maximum number of operations accepted but not sent.
    #[arg(long, default_value_t = 2_000)]
    pub outstanding: u64,
}

/// The store that nodes share.
#[derive(Clone, Debug, clap::Args)]
pub struct SharedStoreArgs {
    /// The store: `redis://…` or `postgres://…`. Each run uses a prefix or a schema of its own in
    /// it and leaves it there.
    #[arg(long)]
    pub store: String,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::Bench;

    #[derive(Parser)]
    struct TestCli {
        #[command(subcommand)]
        bench: Bench,
    }

    fn said(words: &str) -> Option<Bench> {
        TestCli::try_parse_from(words.split(' ')).ok().map(|line| line.bench)
    }

    #[test]
    fn what_is_not_said_is_as_it_was_measured() {
        let loads =
            [said("bench operations"), said("bench cluster --store redis://x")].map(|bench| match bench {
                Some(Bench::Operations(args)) => args.load,
                Some(Bench::Cluster(args)) => args.load,
                other => panic!("{other:?}"),
            });
        for load in loads {
            assert_eq!((load.seconds, load.producers, load.groups), (10, 64, 1_000));
            assert_eq!((load.payload, load.outstanding), (512, 2_000));
        }
    }

    #[test]
    fn nodes_share_a_store_that_must_be_named() {
        for (name, nodes) in [("cluster", 3), ("rolling", 3), ("handover", 4), ("takeover", 4)] {
            assert!(said(&format!("bench {name}")).is_none(), "{name}");
            let (shared, found) = match said(&format!("bench {name} --store redis://x")) {
                Some(Bench::Cluster(args)) => (args.shared, args.nodes),
                Some(Bench::Rolling(args)) => (args.shared, args.nodes),
                Some(Bench::Handover(args)) => (args.shared, args.nodes),
                Some(Bench::Takeover(args)) => (args.shared, args.nodes),
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!((shared.store.as_str(), found), ("redis://x", nodes), "{name}");
        }
    }
}
