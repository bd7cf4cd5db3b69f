//! The arguments of `sim`: one simulator each.

use std::net::SocketAddr;

use clap::Subcommand;
use tidegate_sim::shopify::plan::ShopPlan;
use tidegate_sim::shopify::version::Version;

use crate::sim::discord::DiscordSimArgs;

const COUNTING: &str = "\
Every call is answered with what it was. Counts are at /_sim/stats, and every write is at /_sim/log.
A duplicate is a POST with an Idempotency-Key, or an id in its JSON body, that was there before on the same path.
A repeated PUT or DELETE does no more than the first one and counts as none.

Example:
  tidegate sim http --refill-per-s 5 --cut-rate 0.1";

const SHOPS: &str = "\
A shop is made when it is first called: by the host acme.myshopify.com, by the path /shops/acme/admin/api/…, else by the
token alone. Any token will do. POST /_sim/shops/acme changes its limits while calls run; counts are at /_sim/stats, for
each shop as well. docs/simulators.md has the rules.

Example:
  tidegate sim shopify --plan plus --latency-ms 50 --cut-rate 0.01";

const GUILDS: &str = "\
Any token and any guild is there when it is first named. Counts are at /_sim/stats, a guild is at /_sim/guilds/{id}, and what
else can be asked and changed is told in docs/simulators.md.

Example:
  tidegate sim discord --latency-ms 50 --cut-rate 0.02 --limit channel-create=5/2000";

/// Which simulator.
#[derive(Subcommand, Debug)]
pub(crate) enum SimCommand {
    /// A plain HTTP API that enforces a limit, fails as it is told, and counts.
    #[command(after_help = COUNTING)]
    Http(HttpSimArgs),
    /// Shopify's Admin API for any number of shops: GraphQL by cost, REST by calls, bulk operations by places.
    #[command(after_help = SHOPS)]
    Shopify(ShopifySimArgs),
    /// Discord's REST API for a bot that builds guilds, with its limits, told and hidden.
    #[command(after_help = GUILDS)]
    Discord(DiscordSimArgs),
}

/// How it behaves.
#[derive(clap::Args, Debug)]
pub(crate) struct HttpSimArgs {
    /// Where it listens; port 0 lets the system choose.
    #[arg(long, default_value = "127.0.0.1:7410", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// What its limit holds, in calls; counts only with --refill-per-s.
    #[arg(long, default_value_t = 40, value_name = "N")]
    pub capacity: u64,
    /// What comes back of it each second; without it there is no limit.
    #[arg(long, value_name = "N")]
    pub refill_per_s: Option<f64>,
    /// How long each answer takes.
    #[arg(long, default_value_t = 0, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub latency_ms: u64,
    /// How often a call fails without effect, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub fail_rate: f64,
    /// How often the answer is dropped after the effect, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub cut_rate: f64,
    /// Which calls fail and which are cut: the same number, the same calls.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
}

/// How it behaves.
#[derive(clap::Args, Debug)]
pub(crate) struct ShopifySimArgs {
    /// Where it listens; port 0 lets the system choose.
    #[arg(long, default_value = "127.0.0.1:7411", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// The plan of every shop: standard, advanced, plus, enterprise.
    #[arg(long, default_value = "standard", value_name = "PLAN")]
    pub plan: ShopPlan,
    /// The version that answers when an older one is asked for.
    #[arg(long, default_value_t = Version::OLDEST, value_name = "VERSION")]
    pub oldest_version: Version,
    /// How long a bulk operation takes.
    #[arg(long, default_value_t = 2_000, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub bulk_ms: u64,
    /// How many lines the result of a bulk operation has.
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    pub bulk_rows: u64,
    /// How long each answer takes.
    #[arg(long, default_value_t = 0, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub latency_ms: u64,
    /// How often a call fails without effect, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub fail_rate: f64,
    /// How often the answer is dropped after the effect, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub cut_rate: f64,
    /// Which calls fail, which are cut and how much each returns: the same number, the same calls.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
}
