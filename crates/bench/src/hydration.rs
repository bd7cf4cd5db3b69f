//! Hydration in one process: many callers of one entity, many entities at once, reads of the local
//! copy, and a scan of unknown ids. Compared with moka's `get_with` and with a map of mutexes under
//! the same loads, with a source that answers, one that is slow, and one that is silent.

mod crowd;
mod hits;
mod readers;
mod scan;
mod source;

use std::time::Duration;

use serde::Serialize;

use crate::goal::Goal;
use crate::machine::Machine;
use crate::report::Latency;
use crowd::CrowdFigure;
use hits::HitFigure;
use readers::Contender;
use scan::ScanFigure;
use source::SourceBehavior;

/// How long a caller waits in total.
const WAIT: Duration = Duration::from_millis(500);
/// Most entities that are remembered as not found, by ours and by moka.
const NEGATIVES_MAX: usize = 100_000;

/// Arguments of `bench hydration`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Callers of one entity at once, and entities that are read at once.
    #[arg(long, default_value_t = 10_000)]
    pub callers: usize,
    /// Reads of the local copy, in each of several turns.
    #[arg(long, default_value_t = 100_000)]
    pub hits: usize,
    /// Unknown ids that are read one after the other, by some readers at once.
    #[arg(long, default_value_t = 1_000_000)]
    pub scan: usize,
    /// How long the slow source takes, in milliseconds; below 500, or its callers give up.
    #[arg(long, default_value_t = 300)]
    pub slow_ms: u64,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    callers: usize,
    wait_timeout_ms: u64,
    /// All callers want one entity.
    one_entity: Vec<CrowdFigure>,
    /// Each caller wants another one.
    many_entities: Vec<CrowdFigure>,
    local_hits: Vec<HitFigure>,
    scan: Vec<ScanFigure>,
    goals: Vec<Goal>,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    if args.callers == 0 || args.hits == 0 || args.scan < scan::SAMPLES {
        return Err(format!("--callers and --hits must be at least 1, --scan {}", scan::SAMPLES));
    }
    let slow = Duration::from_millis(args.slow_ms);
    if slow >= WAIT {
        return Err(format!("--slow-ms must be below {}", WAIT.as_millis()));
    }
    let behaviors = [SourceBehavior::Answers, SourceBehavior::Slow(slow), SourceBehavior::Silent];
    let (mut one_entity, mut many_entities) = (Vec::new(), Vec::new());
    for behavior in behaviors {
        for contender in Contender::ALL {
            eprintln!("{} callers of one entity: {}, {}", args.callers, contender.name(), behavior.name());
            one_entity.push(crowd::measure(contender, behavior, args.callers, 1).await?);
        }
    }
    for contender in Contender::ALL {
        eprintln!("{} entities at once: {}", args.callers, contender.name());
        let behavior = SourceBehavior::Answers;
        many_entities.push(crowd::measure(contender, behavior, args.callers, args.callers).await?);
    }
    eprintln!("{} reads of the local copy", args.hits);
    let local_hits = hits::measure(args.hits).await?;
    let mut scanned = Vec::new();
    for contender in Contender::ALL {
        eprintln!("a scan of {} unknown ids: {}", args.scan, contender.name());
        scanned.push(scan::measure(contender, args.scan).await?);
    }
    let goals = goals(&one_entity, &local_hits, &scanned);
    Ok(Report {
        bench: "hydration",
        machine: Machine::detect(),
        callers: args.callers,
        wait_timeout_ms: u64::try_from(WAIT.as_millis()).unwrap_or(u64::MAX),
        one_entity,
        many_entities,
        local_hits,
        scan: scanned,
        goals,
    })
}

/// The goals, for our own figures, which are the first of each case.
fn goals(one_entity: &[CrowdFigure], hits: &[HitFigure], scan: &[ScanFigure]) -> Vec<Goal> {
    let of = |source: &str| {
        one_entity.iter().find(|figure| figure.contender == Contender::Tidegate && figure.source == source)
    };
    let questions = |source: &str| {
        of(source).map_or(f64::NAN, |figure| f64::from(u32::try_from(figure.questions).unwrap_or(u32::MAX)))
    };
    let wake_up = of("slow").and_then(|figure| figure.wake_up.as_ref()).map_or(f64::NAN, Latency::p99_ms);
    let hit = hits.iter().find(|figure| figure.contender == Contender::Tidegate);
    let grown = scan.iter().find(|figure| figure.contender == Contender::Tidegate);
    vec![
        Goal::at_most("questions for one entity, answered", 1.0, questions("answers")),
        Goal::at_most("questions for one entity, answered slowly: one and a retry", 2.0, questions("slow")),
        Goal::at_most("questions for one entity, not answered: one and a retry", 2.0, questions("silent")),
        Goal::at_most("wake-up of all callers at p99, in ms", 5.0, wake_up),
        Goal::at_most("a local hit, to moka's get", 2.0, hit.map_or(f64::NAN, |hit| hit.to_moka)),
        Goal::at_most(
            "memory after a scan, to that after its second tenth",
            1.1,
            grown.map_or(f64::NAN, |scan| scan.grown),
        ),
    ]
}
