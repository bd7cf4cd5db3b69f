//! The throughput of a plain server, and of one with tokens, traces or open pages, in turns.

use serde::Serialize;
use tidegate_server::Server;
use tidegate_server::config::{ApiToken, TokenScope};

use super::sink::Sink;
use super::{Args, config, load};
use crate::goal::to_thousandths;
use crate::report::median;
use crate::scratch::Scratch;

/// The token of the server that has one.
const TOKEN: &str = "bench-token-of-no-other-use";

/// Lifecycles per second, for each turn.
#[derive(Debug, Default, Serialize)]
pub(super) struct OverheadReport {
    plain_per_s: Vec<f64>,
    token_per_s: Vec<f64>,
    traces_per_s: Vec<f64>,
    pages_per_s: Vec<f64>,
    /// The median of what is left of the plain throughput in each turn.
    pub with_token: f64,
    pub with_traces: f64,
    pub with_pages: f64,
}

/// What a server has beyond a plain one.
#[derive(Clone, Copy, Debug)]
enum Extra {
    Nothing,
    Token,
    Traces,
    Pages,
}

pub(super) async fn measure(args: &Args) -> Result<OverheadReport, String> {
    let mut report = OverheadReport::default();
    for turn in 1..=args.turns {
        eprintln!("turn {turn} of {}: plain, a token, traces, {} pages", args.turns, args.pages);
        report.plain_per_s.push(per_s(args, Extra::Nothing).await?);
        report.token_per_s.push(per_s(args, Extra::Token).await?);
        report.traces_per_s.push(per_s(args, Extra::Traces).await?);
        report.pages_per_s.push(per_s(args, Extra::Pages).await?);
    }
    let left = |with: &[f64]| {
        let ratios = with.iter().zip(&report.plain_per_s).map(|(with, plain)| with / plain);
        to_thousandths(median(ratios))
    };
    let (with_token, with_traces) = (left(&report.token_per_s), left(&report.traces_per_s));
    let with_pages = left(&report.pages_per_s);
    Ok(OverheadReport { with_token, with_traces, with_pages, ..report })
}

/// Measures a fresh server on a fresh store.
async fn per_s(args: &Args, extra: Extra) -> Result<f64, String> {
    let (scratch, sink) = (Scratch::new(&args.store)?, Sink::start().await?);
    let mut config = config(scratch.url(), &sink.base_url)?;
    let (mut headers, mut pages) = (String::new(), 0);
    match extra {
        Extra::Nothing => {}
        Extra::Token => {
            config.tokens = vec![ApiToken::new("bench", TOKEN, vec![TokenScope::Write])];
            headers = format!("authorization: Bearer {TOKEN}\r\n");
        }
        Extra::Traces => config.telemetry.otlp_endpoint = Some(sink.base_url.clone()),
        Extra::Pages => pages = args.pages,
    }
    let server = Server::start(config).await.map_err(|error| error.to_string())?;
    let per_s = load::run(server.addr, args, &headers, pages).await;
    server.shutdown().await;
    per_s.map(f64::round)
}
