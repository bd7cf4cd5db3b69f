//! How long a deployment takes, as its plan and its progress say, on the clock of the test.

use std::sync::Mutex;
use std::time::Duration;

use tidegate_discord::Id;
use tidegate_discord::deploy::{DeployRequest, NoopListener, ProgressEvent, ProgressListener};
use tidegate_discord::plan::Estimate;
use tidegate_sim::DiscordSimOptions;
use tokio::time::Instant;

use crate::foreign::{ForeignNode, ForeignServer};
use crate::scarce::channels;
use crate::world::{GUILD, SMALL, wanted};

const LARGE: &str = include_str!("../../../../examples/guilds/large.yaml");

/// Records when steps were applied, and how long the rest was expected to take by then.
pub(crate) struct TimedListener {
    begun: Instant,
    pub(crate) applied: Mutex<Vec<(String, Duration)>>,
    /// When, and what was left then.
    expected: Mutex<Vec<(Duration, Duration)>>,
}

impl TimedListener {
    pub(crate) fn new() -> Self {
        Self { begun: Instant::now(), applied: Mutex::default(), expected: Mutex::default() }
    }

    pub(crate) fn applied_at(&self, target: &str) -> Duration {
        let applied = self.applied.lock().unwrap();
        applied.iter().find(|(known, _)| known == target).unwrap_or_else(|| panic!("{target}: {applied:?}")).1
    }

    /// When the first step was applied, and the last one.
    fn first_and_last(&self) -> (Duration, Duration) {
        let applied = self.applied.lock().unwrap();
        (applied[0].1, applied[applied.len() - 1].1)
    }

    /// From the first call to the response to the last one.
    fn whole(&self) -> Duration {
        let begun = self.expected.lock().unwrap()[0].0;
        self.first_and_last().1 - begun
    }

    /// What was expected in this time: when, and how long from then on.
    fn expected_from(&self, from: Duration, to: Duration) -> Vec<(Duration, Duration)> {
        let expected = self.expected.lock().unwrap();
        expected.iter().copied().filter(|(at, _)| (from..to).contains(at)).collect()
    }
}

impl ProgressListener for TimedListener {
    fn on_event(&self, event: &ProgressEvent<'_>) {
        let now = self.begun.elapsed();
        match event {
            ProgressEvent::Applied { step, .. } => {
                self.applied.lock().unwrap().push((step.target.to_string(), now));
            }
            ProgressEvent::Expecting { left } => self.expected.lock().unwrap().push((now, *left)),
            _ => {}
        }
    }
}

/// OPS-19, OPS-26: the time that is left includes the waits for limits that the run has met.
#[tokio::test(start_paused = true)]
async fn ops_26_the_time_left_includes_the_waits() {
    let mut options = DiscordSimOptions::default();
    options.limits.set("channel-create", 3, 20_000).unwrap();
    let server = ForeignServer::new(&options);
    let node = ForeignNode::alone(&server).await;
    let listener = TimedListener::new();
    let many = channels((0..15).map(|n| format!("c{n}")));
    node.deployer.apply(&wanted(&many), &listener).await.unwrap();
    let (first, end) = listener.first_and_last();
    assert!(end > Duration::from_secs(75), "{end:?}");
    // The first response says how many calls a window has, and when it ends.
    for (at, left) in listener.expected_from(first, end) {
        let error = (at + left).abs_diff(end);
        assert!(error <= Duration::from_secs(25), "at {at:?}: {left:?} left, and it ended at {end:?}");
    }
}

/// The estimate of a plan.
async fn estimate(node: &ForeignNode, wanted: &DeployRequest) -> Estimate {
    let template = wanted.read().unwrap();
    let preview = node.deployer.plan(wanted, &template, &NoopListener).await.unwrap();
    preview.plan.estimate(&preview.limits)
}

/// Whether two times differ by at most a fifth of the second one.
fn is_close(expected: Duration, real: Duration) -> bool {
    expected.abs_diff(real) <= real / 5
}

/// OPS-26: of both example guilds, a plan knows within a fifth how long it takes once the limits of
/// its routes were learned, in another guild too; before that it says that it may take longer. A
/// first run knows it as soon as each route was called.
#[tokio::test(start_paused = true)]
async fn ops_26_a_plan_counts_with_learned_limits() {
    for (name, template) in [("small", SMALL), ("large", LARGE)] {
        let node = ForeignNode::alone(&ForeignServer::new(&DiscordSimOptions::default())).await;
        let (first, other) = (wanted(template), DeployRequest::new(Id(GUILD.0 + 1), template));
        assert!(estimate(&node, &first).await.routes_unknown > 0, "{name}");
        let listener = TimedListener::new();
        node.deployer.apply(&first, &listener).await.unwrap();
        let (begun, end) = listener.first_and_last();
        let whole = listener.whole();
        for (at, left) in listener.expected_from(begun + whole / 20, end) {
            let error = (at + left).abs_diff(end);
            assert!(error <= whole / 5, "{name}: at {at:?} {left:?} left, and it ended at {end:?}");
        }
        let expected = estimate(&node, &other).await;
        assert_eq!(expected.routes_unknown, 0, "{name}: {expected:?}");
        let listener = TimedListener::new();
        node.deployer.apply(&other, &listener).await.unwrap();
        let real = listener.whole();
        let expected = Duration::from_millis(expected.time_ms);
        println!("{name}: {expected:?} expected, {real:?} taken");
        assert!(is_close(expected, real), "{name}: {expected:?} expected, {real:?} taken");
    }
}
