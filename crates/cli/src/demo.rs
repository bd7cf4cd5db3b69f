//! `demo`: a server on this machine with simulated upstreams, which enforce their limits and fail
//! now and then, under a load that comes in waves.

mod pictures;

use std::net::SocketAddr;
use std::time::Duration;

use tidegate_server::config::{Overrides, SourceConfig};
use tidegate_server::{Config, Server};
use tidegate_sim::{HttpSim, HttpSimOptions};
use tidegate_upstream::http::{LimitConfig, LimitKind, UpstreamConfig};

use crate::args::DemoArgs;
use crate::error::CliError;
use crate::load;
use crate::output::Output;
use crate::signals::Signals;

const CAPACITY: u32 = 20;
const REFILL_PER_S: u32 = 100;
const AT_ONCE: u32 = 4;

pub(crate) async fn run(args: DemoArgs, output: &Output) -> Result<(), CliError> {
    let mut signals = Signals::new()?;
    let dir = tempfile::tempdir()
        .map_err(|error| CliError::new(format!("Cannot create a temporary directory: {error}.")))?;
    let echo = simulator(HttpSimOptions {
        capacity: CAPACITY.into(),
        refill_per_s: Some(REFILL_PER_S.into()),
        latency: Duration::from_millis(20),
        fail_rate: 0.02,
        cut_rate: 0.000_5,
        seed: 7,
        ..HttpSimOptions::default()
    })
    .await?;
    let slow = simulator(HttpSimOptions {
        latency: Duration::from_millis(400),
        fail_rate: 0.05,
        seed: 8,
        ..HttpSimOptions::default()
    })
    .await?;
    let studio = pictures::SimulatedProviders::start().await?;
    let config = config(args.listen, dir.path(), echo.addr(), slow.addr(), &studio)?;
    let server = Server::start(config).await?;
    print_banner(&server, output);
    let load = tokio::spawn(load::run(server.addr));
    let painting = tokio::spawn(pictures::create_generations(server.addr));
    let end = async {
        match args.seconds {
            Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = signals.next() => {}
        () = end => {}
        error = server.failed() => return Err(error.into()),
    }
    load.abort();
    painting.abort();
    let counts = server.counts().await?;
    signals.run_until_signal(server.shutdown()).await?;
    output.print_status(&studio.summary());
    let stats = echo.stats();
    output.print_status(&format!(
        "done: {} succeeded, {} failed, {} left. echo saw {} calls, {} over its limit, {} repeated because a response was lost.",
        counts.succeeded,
        counts.failed,
        counts.queued + counts.waiting + counts.running + counts.unknown,
        stats.calls,
        stats.overstepped,
        stats.duplicates,
    ));
    Ok(())
}

async fn simulator(options: HttpSimOptions) -> Result<HttpSim, CliError> {
    HttpSim::start(options)
        .await
        .map_err(|error| CliError::new(format!("Cannot start the simulator: {error}.")))
}

fn config(
    listen: SocketAddr,
    folder: &std::path::Path,
    echo: SocketAddr,
    slow: SocketAddr,
    studio: &pictures::SimulatedProviders,
) -> Result<Config, CliError> {
    let store = format!("file:{}", folder.display());
    let over = Overrides { listen: Some(listen), store_url: Some(store), workers: None };
    // Environment variables are meant for the user's own server, so the demo ignores them.
    let env = |name: &str| (name == pictures::KEY_VARIABLE).then(|| "demo:key".to_owned());
    let text = studio.config(listen, &folder.join("results"));
    let config = Config::parse("demo", &text, &env, &over, &[]);
    let mut config = config.map_err(|problems| CliError::usage(problems.to_string()))?;
    let limit = |name: &str, kind| vec![LimitConfig::new(name, kind)];
    let drip = LimitKind::Drip { capacity: CAPACITY.into(), refill_per_s: REFILL_PER_S.into() };
    let mut first = UpstreamConfig::new("echo", format!("http://{echo}"));
    first.limits = limit("requests", drip);
    let mut second = UpstreamConfig::new("slow", format!("http://{slow}"));
    second.limits = limit("slots", LimitKind::AtOnce { at_once: AT_ONCE });
    config.upstreams = vec![first, second];
    config.sources = vec![SourceConfig::new("customer", "slow", "/customers/{id}")];
    Ok(config)
}

fn print_banner(server: &Server, output: &Output) {
    let page = format!("http://{}/", server.addr);
    let lines = [
        format!("tidegate demo: open {page}"),
        format!(
            "  echo  a simulated API with a limit of {REFILL_PER_S} calls per second and a burst of {CAPACITY}, which fails now and then"
        ),
        format!("  slow  a simulated API that allows {AT_ONCE} calls in flight"),
        "  pictures from simulated Replicate, Google, fal and Higgsfield, which fail now and then".to_owned(),
        "  The load comes in waves for 40 groups; each group keeps its order.".to_owned(),
        "Look at:".to_owned(),
        "  the limits: nearly used up during a wave, then full again".to_owned(),
        "  shop:01: paused by an operator for the first minute; no other group waits for it".to_owned(),
        "  a held group: a connection was cut after the request was sent, so an operator must record"
            .to_owned(),
        "  the outcome; after half a minute the demo does it for you".to_owned(),
        format!("  {page}flights: 25 readers want one customer, and slow is asked for it once"),
        format!("  the pictures: {page}generations, the providers: {page}providers"),
        "Try:".to_owned(),
        format!("  curl {page}v1/entities/customer/c-7?wait_ms=5000"),
        format!(
            "  tidegate generation create --model flux --prompt \"a cat\" --server http://{}",
            server.addr
        ),
        format!("  tidegate group list --server http://{}", server.addr),
        format!("  tidegate op list --state failed --server http://{}", server.addr),
        "Stop it with ctrl-c.".to_owned(),
    ];
    for line in lines {
        output.print_status(&line);
    }
}
