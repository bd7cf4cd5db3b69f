//! Random commands on a store and on the in-memory journal, compared step by step.

use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::bounds::DEPLOYMENTS_KEPT;
use tidegate_core::journal::{
    Deployment, DeploymentStage, DeploymentStep, ForeignObject, JournalLines, MemoryJournal, ObjectMapping,
    StepState,
};

use super::{SCOPE, check, deployment, marked};
use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;

/// The number of commands in a random sequence.
const COMMANDS: usize = 400;
/// Ids that sort by their bytes, whatever a language's collation says; one is empty.
const IDS: [&str; 8] = ["", "00", "01", "02", "a", "B", "ä", "deploy '%_{*}\u{1f980}"];
/// Scopes of which one is a prefix of another.
const SCOPES: [&str; 4] = [SCOPE, "guild:4177", "", "Zunft {x}:'*"];
const KINDS: [&str; 3] = ["role", "channel", "Rolle:x"];
const KEYS: [&str; 6] = ["desk", "Desk", "x:desk", "", "\"a\",\"b", "Büro — \u{1f980}"];
const NOTES: [&str; 4] = ["", "it's \"full\"\n\\", "50035: Invalid Form Body", "Größe \u{1f980}\u{7f}"];

fn word(rng: &mut TestRng, words: &[&str]) -> Arc<str> {
    Arc::from(*rng.pick(words))
}

fn some_word(rng: &mut TestRng) -> Option<Arc<str>> {
    rng.percent(60).then(|| word(rng, &NOTES))
}

fn time(rng: &mut TestRng) -> Time {
    if rng.percent(5) { Time::MAX } else { Time::from_micros(rng.below(1 << 60)) }
}

fn any_deployment(rng: &mut TestRng, id: Arc<str>) -> Deployment {
    let len = rng.below(40) as usize;
    Deployment {
        id,
        scope: word(rng, &SCOPES),
        fence: fence(rng),
        round: rng.below(1 << 32) as u32,
        stage: *rng.pick(&[DeploymentStage::Running, DeploymentStage::Done, DeploymentStage::Failed]),
        request: rng.bytes(len).into(),
        note: some_word(rng),
        started_at: time(rng),
        updated_at: time(rng),
    }
}

/// A small set of fences, so that most recur; some exceed the precision of a float.
fn fence(rng: &mut TestRng) -> u64 {
    if rng.percent(10) { tidegate_core::bounds::JOURNAL_FENCE_MAX - rng.below(3) } else { 8 + rng.below(5) }
}

fn any_lines(rng: &mut TestRng) -> JournalLines {
    let mut lines = JournalLines::default();
    for _ in 0..rng.below(12) {
        lines.steps.push(DeploymentStep {
            kind: word(rng, &KINDS),
            key: word(rng, &KEYS),
            nth: if rng.percent(5) { u32::MAX } else { rng.below(6) as u32 },
            action: word(rng, &["create", "update", ""]),
            fingerprint: word(rng, &["", "f0", "f1"]),
            state: *rng.pick(&[StepState::Planned, StepState::Applied, StepState::Failed]),
            operation: some_word(rng),
            foreign_id: some_word(rng),
            note: some_word(rng),
            at: time(rng),
        });
    }
    for _ in 0..rng.below(12) {
        let object = rng.percent(70).then(|| ForeignObject {
            id: word(rng, &NOTES),
            place: some_word(rng),
            fingerprint: word(rng, &["", "f0", "f1"]),
        });
        lines.mapped.push(ObjectMapping { kind: word(rng, &KINDS), key: word(rng, &KEYS), object });
    }
    lines
}

/// OPS-17: for any writes, in any order, by old and new fences, to existing deployments or not,
/// also with a line twice in one write, a store returns what the in-memory journal does; also after
/// a restart.
pub async fn the_journal_answers_as_its_book(backend: &dyn Backend) {
    let (mut rng, mut book) = (TestRng::seeded_or(171), MemoryJournal::default());
    let mut store = backend.open().await.expect_value("open the store");
    for command in 0..COMMANDS {
        let id = word(&mut rng, &IDS);
        if rng.percent(40) {
            let kept = any_deployment(&mut rng, Arc::clone(&id));
            let done = store.save_deployment(kept.clone()).await.expect_value("keep a deployment");
            assert_eq!(done, book.save_deployment(kept), "command {command}: keep {id:?}");
        } else {
            let (fence, lines) = (fence(&mut rng), any_lines(&mut rng));
            let done = store.write_journal(&id, fence, lines.clone()).await.expect_value("write lines");
            assert_eq!(done, book.write_lines(&id, fence, lines), "command {command}: write to {id:?}");
        }
        if command % 20 == 0 {
            check(&*store, &book, &IDS, &SCOPES, &format!("after command {command}")).await;
        }
        if rng.below(70) == 0 {
            drop(store);
            store = backend.open().await.expect_value("open the store again");
        }
    }
    check(&*store, &book, &IDS, &SCOPES, "at the end").await;
    // Those of another scope stay, and so do those that run.
    let running = deployment("+running", SCOPE, 1, DeploymentStage::Running);
    assert!(store.save_deployment(running.clone()).await.expect_value("keep one that runs"));
    book.save_deployment(running);
    for n in 0..DEPLOYMENTS_KEPT + 7 {
        let id = format!("-{n:04}");
        let kept = deployment(&id, SCOPE, 1, *rng.pick(&[DeploymentStage::Done, DeploymentStage::Failed]));
        assert!(store.save_deployment(kept.clone()).await.expect_value("keep one more"));
        book.save_deployment(kept);
        assert!(store.write_journal(&id, 1, marked(2, "m")).await.expect_value("write lines"));
        book.write_lines(&id, 1, marked(2, "m"));
    }
    let looked_at = ["+running", "-0000", "-0006", "-0007", "-0008", "-0106"];
    check(&*store, &book, &looked_at, &SCOPES, "when old ones have gone").await;
    check(&*store, &book, &IDS, &SCOPES, "when old ones have gone").await;
}

/// OPS-17: a completed write is durable, at whatever moment everything stops.
pub async fn what_was_journaled_is_durable(backend: &dyn Backend) {
    let (mut rng, mut book) = (TestRng::seeded_or(172), MemoryJournal::default());
    let store = backend.open().await.expect_value("open the store");
    for round in 0..12 {
        let kept = Deployment { fence: 8, ..any_deployment(&mut rng, "a".into()) };
        assert!(store.save_deployment(kept.clone()).await.expect_value("keep a deployment"));
        book.save_deployment(kept);
        let image = backend.crash_image().await.expect_value("take a crash image");
        check(&*image, &book, &["a"], &SCOPES, &format!("in the image after deployment {round}")).await;
        drop(image);
        let lines = any_lines(&mut rng);
        assert!(store.write_journal("a", 8, lines.clone()).await.expect_value("write lines"));
        book.write_lines("a", 8, lines);
        let image = backend.crash_image().await.expect_value("take a crash image");
        check(&*image, &book, &["a"], &SCOPES, &format!("in the image after lines {round}")).await;
    }
    drop(store);
    let store = backend.open().await.expect_value("open the store again");
    check(&*store, &book, &["a"], &SCOPES, "after a restart").await;
}
