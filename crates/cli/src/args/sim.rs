//! The arguments of `sim`, one struct per simulator.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Subcommand;
use tidegate_sim::shopify::plan::ShopPlan;
use tidegate_sim::shopify::version::Version;

use crate::sim::discord::DiscordSimArgs;
use crate::sim::providers::ProviderSimArgs;

const COUNTING: &str = "\
Every response echoes its request. Counts are at /_sim/stats, the log of writes is at /_sim/log.
A duplicate is a POST whose Idempotency-Key, or id in its JSON body, was seen before on the same
path. A repeated PUT or DELETE has no further effect and does not count as a duplicate.

Example:
  tidegate sim http --refill-per-s 5 --cut-rate 0.1";

const SHOPS: &str = "\
A shop is created by the first call to it: by the host acme.myshopify.com, by the path
/shops/acme/admin/api/…, otherwise by the token alone. Any token is accepted.
POST /_sim/shops/acme changes a shop's limits at run time. Counts, total and per shop, are at
/_sim/stats. docs/simulators.md describes the rules.

Example:
  tidegate sim shopify --plan plus --latency-ms 50 --cut-rate 0.01";

const GUILDS: &str = "\
Any token is accepted, and a guild is created by the first call to it. Counts are at /_sim/stats, a
guild is at /_sim/guilds/{id}; docs/simulators.md describes the other endpoints.

Example:
  tidegate sim discord --latency-ms 50 --cut-rate 0.02 --limit channel-create=5/2000";

const PROVIDERS: &str = "\
Any credential is accepted, or none with --reject-keys; any model exists, and every picture is drawn.
A prompt with [fail] in it fails, one with [nsfw] is refused. Of the calls only submits fail, or lose
their response after they were billed. Webhooks are sent to loopback addresses only, signed with a
key made from the seed. Counts are at /_sim/stats, jobs are at /_sim/jobs; docs/simulators.md describes the
rules.

Example:
  tidegate sim replicate --job-ms 500 --cut-rate 0.05 --webhook-lose-rate 0.2";

/// The simulators.
#[derive(Subcommand, Debug)]
pub(crate) enum SimCommand {
    /// A plain HTTP API that enforces a limit, injects failures and counts calls.
    #[command(after_help = COUNTING)]
    Http(HttpSimArgs),
    /// Shopify's Admin API for any number of shops: GraphQL limited by cost, REST by calls, bulk
    /// operations by slots.
    #[command(after_help = SHOPS)]
    Shopify(ShopifySimArgs),
    /// Discord's REST API for a bot that builds guilds, with its documented and hidden limits.
    #[command(after_help = GUILDS)]
    Discord(DiscordSimArgs),
    /// Replicate's predictions: polled, or reported by signed webhooks.
    #[command(after_help = PROVIDERS)]
    Replicate(ProviderSimArgs),
    /// Google's Gemini API: images in the response, videos as operations.
    #[command(after_help = PROVIDERS)]
    Google(ProviderSimArgs),
    /// fal's queue: polled, or reported by signed webhooks.
    #[command(after_help = PROVIDERS)]
    Fal(ProviderSimArgs),
    /// Higgsfield's requests: polled, or reported by webhooks that are not signed.
    #[command(after_help = PROVIDERS)]
    Higgsfield(ProviderSimArgs),
}

/// The options of every simulator: how slow and how unreliable it is.
#[derive(clap::Args, Debug)]
pub(crate) struct FaultArgs {
    /// The latency of each response.
    #[arg(long, default_value_t = 0, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    latency_ms: u64,
    /// The share of calls that fail without effect, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub fail_rate: f64,
    /// The share of calls whose response is dropped after the effect, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub cut_rate: f64,
    /// The random seed: with the same seed the same calls fail or lose their response.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
}

impl FaultArgs {
    pub(crate) const fn latency(&self) -> Duration {
        Duration::from_millis(self.latency_ms)
    }
}

/// The options of `sim http`.
#[derive(clap::Args, Debug)]
pub(crate) struct HttpSimArgs {
    /// The address to listen on; with port 0 the system chooses one.
    #[arg(long, default_value = "127.0.0.1:7410", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// The capacity of the limit, in calls; ignored without --refill-per-s.
    #[arg(long, default_value_t = 40, value_name = "N")]
    pub capacity: u64,
    /// The calls refilled per second; without it there is no limit.
    #[arg(long, value_name = "N")]
    pub refill_per_s: Option<f64>,
    #[command(flatten)]
    pub faults: FaultArgs,
}

/// The options of `sim shopify`.
#[derive(clap::Args, Debug)]
pub(crate) struct ShopifySimArgs {
    /// The address to listen on; with port 0 the system chooses one.
    #[arg(long, default_value = "127.0.0.1:7411", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
    /// The plan of every shop: standard, advanced, plus, enterprise.
    #[arg(long, default_value = "standard", value_name = "PLAN")]
    pub plan: ShopPlan,
    /// The oldest supported API version; requests for older ones get this one.
    #[arg(long, default_value_t = Version::OLDEST, value_name = "VERSION")]
    pub oldest_version: Version,
    /// How long a bulk operation takes.
    #[arg(long, default_value_t = 2_000, value_name = "MS", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub bulk_ms: u64,
    /// How many lines the result of a bulk operation has.
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    pub bulk_rows: u64,
    #[command(flatten)]
    pub faults: FaultArgs,
}
