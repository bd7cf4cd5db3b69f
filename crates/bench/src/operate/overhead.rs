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

/// Lifecycles per second: of the plain server before the first and after each of the others, and of
/// those.
#[derive(Debug, Default, Serialize)]
pub(super) struct OverheadReport {
    plain_per_s: Vec<f64>,
    token_per_s: Vec<f64>,
    traces_per_s: Vec<f64>,
    pages_per_s: Vec<f64>,
    /// The median of what is left of the throughput of the plain servers before and after.
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

/// The speed of a machine drifts within a turn, so that each server is compared with a plain one
/// right before it and one right after it.
pub(super) async fn measure(args: &Args) -> Result<OverheadReport, String> {
    let mut report = OverheadReport::default();
    let mut left: [Vec<f64>; 3] = Default::default();
    let mut before = per_s(args, Extra::Nothing).await?;
    report.plain_per_s.push(before);
    for turn in 1..=args.turns {
        eprintln!("turn {turn} of {}: a token, traces, {} pages", args.turns, args.pages);
        for (extra, left) in [Extra::Token, Extra::Traces, Extra::Pages].into_iter().zip(&mut left) {
            let with = per_s(args, extra).await?;
            let after = per_s(args, Extra::Nothing).await?;
            left.push(with / f64::midpoint(before, after));
            report.of(extra).push(with);
            report.plain_per_s.push(after);
            before = after;
        }
    }
    let [with_token, with_traces, with_pages] = left.map(|left| to_thousandths(median(left.into_iter())));
    Ok(OverheadReport { with_token, with_traces, with_pages, ..report })
}

impl OverheadReport {
    fn of(&mut self, extra: Extra) -> &mut Vec<f64> {
        match extra {
            Extra::Nothing => &mut self.plain_per_s,
            Extra::Token => &mut self.token_per_s,
            Extra::Traces => &mut self.traces_per_s,
            Extra::Pages => &mut self.pages_per_s,
        }
    }
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
